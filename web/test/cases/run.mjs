// One run: its views, its past, why, and the proof of its log.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { accessible, at, cairn, check, dir, ids, open, same, service, text, token, until, url } from '../harness.mjs';

export default {
  async a_long_chain_begins_where_it_failed_in_a_size_to_read() {
    const made = await service.start({ metadata: { planId: 'chain', planVersion: '1.0', schemaVersion: 'v1.2' }, steps: Array.from({ length: 150 }, (_, i) => ({ stepId: 's' + i, dependsOn: i ? ['s' + (i - 1)] : [], ...(i === 90 ? { kind: 'shell', with: { command: 'exit 1' } } : { kind: 'noop' }) })) });
    await service.ended(made.runId);
    const page = await open('/runs/' + made.runId), pane = await page.locator('.graph').boundingBox();
    await until(async () => { const at = await page.locator('[data-node="s90"]').boundingBox(); return at && at.x > pane.x && at.x + at.width < pane.x + pane.width && at.height > 20; }, 'the failed step is seen');
    await page.context().close();
  },
  async what_a_loop_is_made_of_is_a_list_with_the_log_of_each_item() {
    const items = ['eu', 'us', 'sa', 'af', 'me', '<b>x</b>'], playbook = { apiVersion: 'noetl.io/v2', kind: 'Playbook', metadata: { name: 'regions', path: 'demo/regions' }, workload: { regions: items }, workflow: [{ step: 'each', loop: { in: '{{ regions }}', iterator: 'region', spec: { mode: 'sequential' } }, tool: { name: 'copy', kind: 'shell', cmds: "echo 'copying {{ iter.region }}' >&2; [ '{{ iter.region }}' != sa ] || exit 4; echo done", spec: { policy: { rules: [{ else: { then: { do: 'continue' } } }] } } } }] };
    const { runId } = await service.start(playbook);
    await service.ended(runId);
    const page = await open('/runs/' + runId);
    await page.click('[data-node="each"].stack');
    await page.locator('.member').nth(5).waitFor(); // a stack opens to what is in it
    same(await page.locator('.member').first().getAttribute('data-item'), '3', 'what went wrong comes first');
    check(/exit 4/.test(await text(page, '.member')), 'and says so: ' + await text(page, '.member'));
    check((await page.locator('.members').innerText()).includes('<b>x</b>'), 'values are text');
    await page.click('.member >> nth=0');
    check(/EXIT_NONZERO/.test(await text(page, '.one')), 'its error');
    await accessible(page, 'items of a loop');
    await page.click('.one button:has-text("Logs")');
    await page.locator('.log :text("copying sa")').waitFor();
    check(/item=3/.test(page.url()), 'the item is in the address');
    await page.reload();
    await page.locator('.log :text("copying sa")').waitFor();
    await page.fill('.pick input', '2');
    await page.keyboard.press('Tab');
    await page.locator('.log :text("copying us")').waitFor();
    await accessible(page, 'log of an item');
    // at a moment of the past: what had happened by then
    const began = (await service.ask('GET', `/v1/runs/${encodeURIComponent(runId)}/events?limit=200`)).items.find(e => e.event_type === 'loop.iteration.started' && e.iteration === 2).seq;
    await page.goto(url + `/runs/${runId}?step=each&show=items&at=${began}`);
    await page.locator('.pastbar .by').waitFor();
    await until(async () => /running\s*1/.test(await text(page, '.drawer .seg')) && /waiting\s*3/.test(await text(page, '.drawer .seg')), 'two done, one runs, three wait');
    await page.context().close();
  },
  async when_a_run_was_paused_is_a_column_and_items_have_lanes() {
    const { runId } = await service.start({ name: 'column', nodes: [{ id: 'a', bash: 'while [ ! -e ' + join(dir, 'column') + ' ]; do sleep 0.05; done' }, { id: 'b', depends_on: ['a'], bash: 'true' }] });
    await service.signal(runId, 'PAUSE', { reason: 'the window' });
    await service.until(runId, r => r.status === 'PAUSED', 'its pause');
    writeFileSync(join(dir, 'column'), '');
    await service.until(runId, r => r.steps[0].status === 'SUCCESS', 'the end of what ran');
    await service.signal(runId, 'RESUME');
    await service.ended(runId);
    const page = await open(`/runs/${runId}/timeline`);
    await page.locator('.pausecol:has-text("paused")').waitFor();
    const a = await page.locator('.pausecol').boundingBox(), b = await page.locator('.tlrow:has([data-step="b"]) .b.done').boundingBox();
    check(b.x >= a.x + a.width - 4, 'what waited begins where the column ends');
    await accessible(page, 'timeline with a pause');
    await page.goto(url + at('geocode') + '/timeline');
    await page.locator('.tlrow:has([data-step="lookup"]) .part').first().waitFor();
    await page.goto(url + at('orders') + '?step=load&show=attempts');
    await page.locator(`.kv button:has-text("${ids.orders}:load:2")`).waitFor(); // what a receiver tells a repetition by
    await page.context().close();
  },
  async a_list_of_child_runs_is_a_stack_that_leads_to_each() {
    const child = 'name: child\nnodes:\n  - id: x\n    bash: |\n      case "$ARGUMENTS" in fail-*) exit 1;; esac\n      echo "ok: $ARGUMENTS"\n';
    writeFileSync(join(dir, 'child.yaml'), child);
    writeFileSync(join(dir, 'parent.yaml'), 'name: parent\nnodes:\n  - {id: s, workflow: child, fan_out: {items: ["a", "fail-b", "c"], max_parallel: 2}}\n');
    execFileSync(cairn, ['run', 'parent.yaml', '--server', url, '--token-file', join(dir, 'token'), '--run-id', 'fanned', '--progress', 'none'], { cwd: dir, stdio: 'ignore' });
    const page = await open('/runs/fanned');
    await page.locator('[data-node="s"].stack:has-text("3 of 3 runs")').waitFor();
    same(await page.locator('[data-node="s"] .cells .f').count(), 1, 'the one that failed');
    await page.click('[data-node="s"]');
    await page.click('[data-item="2"]');
    await page.click('.one a.link');
    await page.locator('.chip.failed').waitFor();
    same(new URL(page.url()).pathname, '/runs/fanned.s.1.2', 'its run');
    await page.context().close();
  },
  async a_picture_that_is_too_large_has_a_map() {
    const page = await open(at('warehouse')), moved = () => page.evaluate(() => document.querySelector('.world').style.transform);
    await page.locator('.node').first().waitFor();
    await page.keyboard.press('0');
    for (let i = 0; i < 4; i++) await page.click('#zoom [aria-label="Zoom in"]');
    await page.locator('.mini').waitFor();
    const before = await moved(), box = await page.locator('.mini canvas').boundingBox();
    await page.mouse.click(box.x + 3, box.y + box.height / 2);
    await until(async () => (await moved()) !== before, 'the picture goes where the map was pressed');
    await until(async () => { const node = await page.locator('[data-node="plan-day"]').boundingBox(), pane = await page.locator('.graph').boundingBox(); return node.x >= pane.x && node.x < pane.x + pane.width; }, 'its beginning is seen');
    for (let i = 0; i < 8; i++) await page.click('#zoom [aria-label="Zoom out"]');
    await page.locator('.mini').waitFor({ state: 'hidden' });
    await page.context().close();
  },
  async on_a_phone_what_has_no_room_is_one_press_away() {
    const { runId } = await service.start({ name: 'on-a-phone', nodes: [{ id: 'long', bash: 'sleep 600' }] });
    const page = await open('/runs/' + runId, { width: 390, height: 844 });
    await page.click('.acts-more');
    await accessible(page, 'what to do, on a phone');
    await page.click('dialog button:has-text("Cancel…")');
    await page.locator('dialog:has-text("Cancel on-a-phone?")').waitFor();
    await page.keyboard.press('Escape');
    await service.signal(runId, 'CANCEL');
    await page.locator('.chip.cancelled').waitFor();
    await page.context().close();
  },
  async a_run_says_why_before_any_tab() {
    const page = await open(at('orders'));
    await page.locator('[data-node="load"]').waitFor();
    check(/load failed at attempt 3 of 3|load failed at attempt 4 of 4/.test(await text(page, '.cause')), 'the cause: ' + await text(page, '.cause'));
    same(await page.locator('.node').count(), 8, 'steps in the graph');
    await until(async () => /chain of \d\d records/.test(await text(page, '.facts')), 'the chain was checked here');
    await accessible(page, 'graph');
    await page.click('[data-node="load"]');
    await page.locator('.verdict').waitFor();
    check(/attempts are used up/.test(await text(page, '.verdict')), 'the verdict');
    await until(() => page.evaluate(() => document.activeElement?.textContent === 'load'), 'the title has the focus');
    await accessible(page, 'drawer, why');
    await page.click('.drawer [role=tab]:has-text("Logs")');
    await page.locator('.log .a31').waitFor();
    check(/relation "orders_2026_11"/.test(await text(page, '.log .a31')), 'colours are classes');
    await accessible(page, 'drawer, logs');
    await page.click('.drawer [role=tab]:has-text("Input")');
    await page.locator('.given:has-text("psql")').waitFor();
    await accessible(page, 'drawer, input');
    await page.goto(url + at('orders') + '?step=report&show=input');
    await page.locator('.pair:has-text("$INPUTS.day"):has-text("CAIRN_REF_1")').waitFor(); // as written, and as it was given
    check(/CAIRN_REF_1\s+2026-11-15/.test(await text(page, '.refs')), 'the value: ' + await text(page, '.refs'));
    await page.goto(url + at('orders') + '?step=load');
    for (const tab of ['Input', 'Output', 'Attempts']) await page.click(`.drawer [role=tab]:has-text("${tab}")`);
    same(await page.locator('.drawer .card').count() >= 3, true, 'attempts');
    await page.keyboard.press('Escape');
    await until(async () => !(await page.locator('.drawer').count()), 'the drawer closes');
    await until(() => page.evaluate(() => document.activeElement?.getAttribute('data-node') === 'load'), 'the node has the focus again');
    await page.context().close();
  },
  async every_tab_of_a_run_shows_it() {
    const page = await open(at('orders') + '/timeline');
    await page.locator('.b.failed').first().waitFor();
    check((await page.locator('.b.backoff').count()) >= 2, 'waits between attempts');
    await accessible(page, 'timeline');
    await page.keyboard.press('3');
    await page.locator('.evt[data-seq="1.0"]').waitFor();
    await until(async () => /links hold/.test(await text(page, '.filter')), 'the chain');
    await page.locator('.evt[data-seq="1.0"]').click();
    check(/"workflow_started"/.test(await text(page, '.raw pre')), 'the record as it is');
    await accessible(page, 'events');
    await page.keyboard.press('4');
    await page.locator('.strow[data-step="load"]').waitFor();
    await accessible(page, 'steps');
    await page.keyboard.press('5');
    await page.locator('.doc').waitFor();
    check(/orders-import/.test(await text(page, '.doc')), 'the document');
    await accessible(page, 'input and output');
    await page.keyboard.press('6');
    await page.locator('.sig').first().waitFor();
    check(/The run has ended/.test(await page.locator('.cols').innerText()), 'what cannot be sent says why');
    await accessible(page, 'signals');
    await page.goto(url + at('orders') + '/why');
    await page.locator('.verdict').waitFor();
    await accessible(page, 'why');
    await page.context().close();
  },
  async a_step_is_found_and_how_long_it_usually_takes_is_shown() {
    const page = await open(at('warehouse'));
    await page.locator('.node').nth(30).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('Mart-');
    await until(async () => (await page.locator('.node:not(.off)').count()) === 3, 'three of forty');
    await accessible(page, 'find a step');
    await page.keyboard.press('Enter');
    await page.locator('.drawer h2:has-text("mart-")').waitFor();
    const first = await text(page, '.drawer h2');
    await until(() => page.evaluate(() => document.activeElement?.id === 'find-step'), 'one goes on looking');
    await page.keyboard.press('Enter');
    await until(async () => (await text(page, '.drawer h2')) !== first, 'the next one');
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('.node.off').count()) === 0, 'Escape: all of them');
    const document = { name: 'habit', nodes: [{ id: 'one', bash: 'true' }, { id: 'two', depends_on: ['one'], bash: 'true' }] };
    await service.ended((await service.start(document)).runId);
    const { runId } = await service.start(document);
    await service.ended(runId);
    await page.goto(url + `/runs/${runId}/timeline`);
    await page.click('.axis .usual');
    await until(async () => (await page.locator('.b.ghost').count()) === 2, 'a shadow of the run before for each step');
    check(/^usually \d.*: the middle of 1 run before/.test(await page.locator('.b.ghost').first().getAttribute('title')), 'in words');
    await page.click('.axis .usual');
    await until(async () => (await page.locator('.b.ghost').count()) === 0, 'they go again');
    await page.context().close();
  },
  async the_past_is_a_place() {
    const page = await open(at('orders'));
    await page.locator('[data-node="load"]').waitFor();
    await until(async () => (await page.locator('.tk').count()) >= 20, 'a tick for every record');
    await page.keyboard.press('[');
    await page.locator('.pastbar').waitFor();
    await page.goto(url + at('orders') + '?at=3');
    await page.locator('.node.s-done[data-node="extract"]').waitFor();
    await page.locator('.node.s-waiting[data-node="load"]').waitFor();
    check(await page.locator('.acts .pri').isDisabled(), 'actions are off');
    same(await text(page, '.cli .mono'), `cairn graph ${ids.orders.slice(0, 8)}@3`, 'the command names the moment');
    await accessible(page, 'past');
    await page.click('[data-node="load"]');
    await until(async () => /waits for/.test(await text(page, '.verdict')), 'why of that moment');
    await page.keyboard.press('Escape');
    await page.locator('.track').focus();
    await page.keyboard.press('ArrowRight');
    await until(() => page.url().includes('at=4'), 'one moment on');
    await page.keyboard.press('n');
    await until(async () => !page.url().includes('at=') && !(await page.locator('.pastbar').count()), 'now');
    await page.goto(url + at('orders') + '?at=6');
    await page.click('text=Fork from here…');
    await page.locator('.preview').waitFor();
    await accessible(page, 'fork');
    await page.context().close();
  },
  async moments_and_why_are_folded_in_the_browser() {
    const page = await open('/queues'), asked = [], json = path => service.ask('GET', path);
    page.on('request', r => asked.push(new URL(r.url()).pathname + new URL(r.url()).search));
    await page.addInitScript(() => { // what the worker of the fold is asked, and what it says
      const Real = Worker;
      window.folds = new Map();
      window.Worker = class extends Real {
        constructor(script, options) {
          super(script, options);
          if (options?.name === 'fold') this.addEventListener('message', e => { window.folds.get(e.data.id).answer = e.data.value; });
        }
        postMessage(question, ...more) {
          if (question.what) window.folds.set(question.id, { what: question.what, at: question.at, step: question.target.step });
          super.postMessage(question, ...more);
        }
      };
    });
    // Every answer so far is the one that the server has for that moment.
    const compared = async () => {
      const folds = (await page.evaluate(() => [...window.folds.values()])).filter(f => f.what !== 'verify');
      for (const { what, at: moment, step, answer } of folds) {
        const theirs = await json(`/v1/runs/${ids.orders}${step ? '/steps/' + step : ''}${what === 'why' ? '/why' : ''}?at=${moment}`);
        check(isDeepStrictEqual(answer, theirs), `${what} at ${moment}: ${JSON.stringify(answer).slice(0, 400)}, not ${JSON.stringify(theirs).slice(0, 400)}`);
      }
      return folds.map(f => f.what + f.at);
    };
    await page.goto(url + at('orders'));
    await page.locator('[data-node="load"]').waitFor();
    await until(async () => (await page.locator('.tk').count()) >= 20, 'a tick for every record');
    const program = () => asked.filter(path => /cairn-\w+\.wasm|fold\.worker|\/bundle/.test(path));
    same(program().length, 0, 'what the first view loads of the fold: ' + program());
    // Every moment of the bar, also those inside of a record, from the end to the start; each is what the server says of it.
    const moments = [];
    for (;;) {
      const where = () => page.evaluate(() => new URL(location.href).searchParams.get('at')), before = await where();
      await page.keyboard.press('[');
      await page.locator('.pastbar .by').waitFor();
      const moment = await where();
      if (moment === before) break;
      moments.push(moment);
      await until(async () => (await text(page, '.pastbar')).includes(`after event ${moment} of`), 'the moment ' + moment);
      same(await text(page, '.pastbar .by'), 'folded in this browser', 'who folded ' + moment);
    }
    await page.locator('.node.s-waiting[data-node="load"]').waitFor();
    check(moments.length > 15 && moments.some(m => m.includes('.')), 'moments, also inside of records: ' + moments);
    const folded = await compared();
    check(moments.every(m => folded.includes('snapshot' + m)), 'each of them was folded here');
    for (const moment of ['3', moments.find(m => m.includes('.'))]) {
      await page.goto(url + at('orders') + `?step=load&at=${moment}`);
      await page.locator('.drawer .by').waitFor();
      same(await page.locator('.drawer .by').textContent(), 'folded in this browser', 'who said why');
      check((await compared()).includes('why' + moment), 'why at ' + moment);
    }
    const past = asked.filter(path => /[?&]at=/.test(path) && path.startsWith('/v1/'));
    same(past.length, 0, 'moments that the server was asked for: ' + past);
    same(program().filter(path => /\/bundle/.test(path)).length, 3, 'the log is read once for each time that the page is opened: ' + program());
    // Who may not read the log whole gets the server's answer, and no complaint.
    const operator = await service.ask('POST', '/v1/tokens', { roles: ['Operator'], name: 'reader' });
    await page.context().setExtraHTTPHeaders({ Authorization: 'Bearer ' + operator.token });
    await page.goto(url + at('orders') + '?step=load&at=3');
    await page.locator('.drawer .by').waitFor();
    same(await text(page, '.pastbar .by') + ', ' + await page.locator('.drawer .by').textContent(), "the server's answer, the server's answer", 'who folded');
    await page.goto(url + '/integrity');
    await page.context().setExtraHTTPHeaders({ Authorization: 'Bearer ' + token });
    // A log that is too large for an answer.
    page.expectErrors = true; // a browser complains about every 413
    await page.route('**/v1/runs/*/bundle', route => route.fulfill({ status: 413, contentType: 'application/problem+json', body: '{"code":"BUNDLE_TOO_LARGE","detail":"the bundle is larger than an answer may be"}' }));
    await page.goto(url + at('orders') + '?at=3');
    await page.locator('.pastbar .by').waitFor();
    same(await text(page, '.pastbar .by'), "the server's answer", 'who folded');
    await page.locator('.node.s-waiting[data-node="load"]').waitFor();
    await page.goto(url + at('orders') + '?at=999');
    await page.locator('.pastbar:has-text("Event 999 cannot be shown")').waitFor();
    await page.context().close();
  },
  async a_log_that_has_grown_is_read_again_for_its_new_moments() {
    const { runId } = await service.start({ name: 'grows', nodes: [{ id: 'first', bash: 'true' }, { id: 'gate', depends_on: ['first'], approval: { message: 'Go on?' } }, { id: 'last', depends_on: ['gate'], bash: 'true' }] });
    const waiting = await service.until(runId, r => r.substatus === 'WAITING_APPROVAL' || r.steps.some(s => s.stepId === 'gate' && s.status === 'RUNNING'), 'its gate');
    const page = await open('/queues'), bundles = [];
    page.on('request', r => { if (r.url().endsWith('/bundle')) bundles.push(r.url()); });
    await page.goto(url + '/runs/' + runId);
    const moment = async n => {
      await page.evaluate(seq => { history.pushState(null, '', '?at=' + seq); dispatchEvent(new PopStateEvent('popstate')); }, n);
      await page.locator(`.pastbar:has-text("after event ${n} of"):has-text("folded in this browser")`).waitFor();
    };
    await page.locator('.node.s-approval[data-node="gate"]').waitFor();
    await moment(2);
    await moment(1);
    same(bundles.length, 1, 'bundles for two moments');
    await page.keyboard.press('n');
    await service.signal(runId, 'APPROVE', { stepId: 'gate', reason: 'yes' });
    const ended = await service.ended(runId);
    await page.locator('.node.s-done[data-node="last"]').waitFor();
    check(ended.lastEventSeq > waiting.lastEventSeq + 2, 'events came');
    await moment(ended.lastEventSeq - 1);
    same(bundles.length, 2, 'bundles, with one for what is new');
    await page.context().close();
  },
  async a_ledger_that_was_changed_is_found_by_the_engine_in_the_browser() {
    const answer = await fetch(url + `/v1/runs/${ids.orders}/bundle`, { headers: { Authorization: 'Bearer ' + token } }), bytes = Buffer.from(await answer.arrayBuffer());
    // Nothing but the chain of the ledger can find it: the list of hashes is made to fit.
    const header = bytes.indexOf('runs/1/ledger.jsonl\0'), size = parseInt(bytes.toString('latin1', header + 124, header + 135), 8), ledger = bytes.subarray(header + 512, header + 512 + size);
    const hash = () => createHash('sha256').update(ledger).digest('hex'), line = bytes.indexOf(hash()), place = ledger.indexOf('"at":"20') + 8;
    check(header > 0 && line > 0 && place > 8, 'there is something to change');
    ledger.write(ledger[place] === 0x39 ? '8' : '9', place);
    bytes.write(hash(), line);
    writeFileSync(join(dir, 'ledger.cairn'), bytes);
    const page = await open('/integrity?run=' + ids.orders);
    await page.locator('.verdict').waitFor();
    check(/\d+ events and \d+ ledger entries hold/.test(await text(page, '.kv')), 'the whole log holds: ' + await text(page, '.kv'));
    await page.setInputFiles('input[type=file]', join(dir, 'ledger.cairn'));
    await until(async () => /the engine's own check: ledger entry \d+/.test(await page.locator('.page').innerText()), 'the entry that was changed');
    // The same from a server that gives a changed log: Integrity and the run itself say so.
    await page.route('**/v1/runs/*/bundle', route => route.fulfill({ contentType: 'application/vnd.cairn.bundle', body: bytes }));
    await page.goto(url + '/integrity?run=' + ids.orders);
    await page.locator('.verdict:has-text("not what was written: ledger entry")').waitFor();
    await page.goto(url + at('orders') + '?at=3');
    await page.locator('.banner.bad:has-text("ledger entry")').waitFor();
    await page.context().close();
  },
  async a_log_is_proved_here_and_a_bundle_without_a_server() {
    const page = await open('/integrity?run=' + ids.orders);
    await page.locator('.verdict').waitFor();
    check(/is whole/.test(await text(page, '.verdict')), 'whole: ' + await text(page, '.verdict'));
    check(/the same/.test(await text(page, '.kv')) && /good, by key/.test(await text(page, '.kv')), 'head and signature');
    await accessible(page, 'integrity');
    const answer = await fetch(url + `/v1/runs/${ids.orders}/bundle`, { headers: { Authorization: 'Bearer ' + token } });
    const bytes = Buffer.from(await answer.arrayBuffer());
    writeFileSync(join(dir, 'good.cairn'), bytes);
    const bad = Buffer.from(bytes), place = bad.indexOf('"rows\\": 18244');
    check(place > 0, 'there is something to change');
    bad.write('9', place + 9);
    writeFileSync(join(dir, 'bad.cairn'), bad);
    await page.setInputFiles('input[type=file]', join(dir, 'good.cairn'));
    await until(async () => /intact, signed by/.test(await text(page, '.verdict')), 'the bundle is intact');
    await page.locator('.bundle-log .evt').first().waitFor();
    await page.setInputFiles('input[type=file]', join(dir, 'bad.cairn'));
    await until(async () => /not what was written/.test(await text(page, '.verdict')), 'the change is found');
    check(/chain is broken at event 4/.test(await page.locator('.page').innerText()), 'and its place');
    await page.context().close();
  },
};
