// The page in Debian's Chromium against the service itself. Every case waits for what it expects, never for time.
//
//   node browser.mjs CAIRN DIRECTORY [CASE...]     starts a service of its own there; prints ok / not ok
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { chromium } from 'playwright-core';
import { attacks, fan, hostile, hostileAll, seed, Service } from './seed.mjs';

const [program, dir, ...only] = process.argv.slice(2), cairn = resolve(program);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 20000;
const full = process.env.FULL === 'yes'; // every string, both themes, three widths
const names = attacks.map(t => t.trim()).filter(t => Buffer.byteLength(t) <= 128 && !/[|\t]/.test(t)).slice(0, full ? undefined : 12), named = names.length; // as names of runs, which takes a run each
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];

// ---- the service

let server, url = '', token = '';
async function start(listen = '127.0.0.1:0') {
  const mine = server = spawn(cairn, ['serve', '--store', 'sqlite:' + join(dir, 'store.db'), '--listen', listen, '--token-file', join(dir, 'token'), '--drain', '0', ...(process.env.CAIRN_PAGE_DIR ? ['--page-dir', process.env.CAIRN_PAGE_DIR] : [])], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, CAIRN_CONFINE: 'none' } });
  let said = '';
  await new Promise((ready, failed) => {
    mine.stderr.on('data', text => { said += text; if (/token of the first start/.test(said)) ready(); });
    mine.on('exit', code => failed(new Error('the server ended with ' + code + ': ' + said)));
  });
  mine.removeAllListeners('exit');
  url = /^listening on (\S+)/m.exec(said)[1];
  token = readFileSync(join(dir, 'token'), 'utf8').trim();
}
const stop = signal => new Promise(ended => { server.once('exit', ended); server.kill(signal); });

// ---- the browser

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
let complaints = [];
async function open(path, { width = 1440, height = 900, theme = 'light', signedIn = true, as = token } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('console', m => { if (m.type() === 'error' && !page.expectErrors) complaints.push('console: ' + m.text()); });
  page.on('pageerror', e => complaints.push('error: ' + e.message));
  await page.addInitScript(() => addEventListener('securitypolicyviolation', e => console.error('CSP violation: ' + e.violatedDirective + ' ' + e.blockedURI)));
  if (signedIn) await context.setExtraHTTPHeaders({ Authorization: 'Bearer ' + as });
  else page.expectErrors = true; // a browser complains about every 401
  await page.goto(url + path);
  return page;
}
const check = (holds, what) => { if (!holds) throw new Error(what); };
const same = (is, should, what) => { if (is !== should) throw new Error(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`); };
async function until(holds, what) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error('never: ' + what);
    await new Promise(r => setTimeout(r, 50));
  }
}
const text = (page, selector) => page.locator(selector).first().innerText();
async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })).violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.html.slice(0, 120) + ' ' + (n.any[0]?.message ?? '')).join(' | ')}`));
  check(found.length === 0, `axe, ${what}: ${found.join('\n    ')}`);
}

// ---- cases

let service, ids;
const odd = { 'odd-rtl': { name: 'תהליך הזמנות יומי', nodes: [{ id: 'first', bash: 'true' }] }, 'odd-long': { name: 'a-name-without-end-'.repeat(6), nodes: [{ id: 'step-' + 'x'.repeat(110), bash: 'true' }] } };
const at = name => '/runs/' + ids[name];
const cases = {
  async a_token_is_asked_for_and_a_wrong_one_is_refused() {
    const page = await open('/runs', { signedIn: false });
    await page.locator('.sign-in input').waitFor();
    await page.fill('.sign-in input', 'cairn_wrong');
    await page.keyboard.press('Enter');
    await page.locator('.sign-in .err').waitFor();
    await accessible(page, 'sign-in');
    await page.fill('.sign-in input', token);
    await page.keyboard.press('Enter');
    await page.locator('[data-row]').first().waitFor();
    await page.locator('.fresh.live').waitFor();
    await page.reload();
    await page.locator('[data-row]').first().waitFor();
    await page.goto(url + '/definitions?new');
    await page.locator('text=Valid: hello').waitFor();
    await page.click('.start button:has-text("Start")'); // a request that changes something, by the session alone
    await page.locator('[data-node="shout"].s-done').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('sign out');
    await page.keyboard.press('Enter');
    await page.locator('.sign-in input').waitFor();
    const { ticket } = await service.ask('POST', '/v1/tickets', {});
    await page.goto('about:blank');
    await page.goto(url + '/#ticket=' + ticket);
    await page.locator('[data-row]').first().waitFor();
    check(!page.url().includes('ticket'), 'the ticket does not stay in the address');
    const late = await open('/#ticket=' + ticket, { signedIn: false });
    check(/ticket .* was used before/.test(await late.locator('.sign-in .err').innerText()), 'a ticket that was used says so');
    await page.context().close();
  },
  async a_role_without_values_walks_every_view_and_asks_nothing_denied_twice() {
    const left = await service.start({ metadata: { planId: 'files', planVersion: '1.0', schemaVersion: 'v1.2' }, steps: [{ stepId: 'a', kind: 'shell', with: { command: 'echo one >$ARTIFACTS_DIR/one.txt; echo kept' }, artifacts: [{ path: 'one.txt', kind: 'text' }] }] });
    await service.ended(left.runId);
    for (const [role, run, step] of [['Operator', left.runId, 'a'], ['Auditor', ids.orders, 'load']]) {
      const as = execFileSync(cairn, ['token', 'new', 'walker', '--role', role, '--server', url, '--token-file', join(dir, 'token')], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split('\n')[0];
      const page = await open(`/runs/${run}?step=${step}&show=output`, { as }), denied = [];
      page.expectErrors = true; // a browser complains about every 403
      page.on('response', r => { if (r.status() === 403) denied.push(new URL(r.url()).pathname); });
      const settled = () => until(async () => !(await page.locator('.main .skeleton').count()), role + ': ' + page.url() + ' is read');
      for (let round = 0; round < 2; round++) {
        if (!await page.locator('.drawer').count()) await page.evaluate(to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }, `/runs/${run}?step=${step}&show=output`);
        for (const tab of ['Why', 'Logs', 'Input', 'Attempts', 'Output']) {
          await page.click(`.drawer [role=tab]:has-text("${tab}")`);
          await settled();
          check(!/\(redacted\)/.test(await text(page, '.drawer')), `${role}, ${tab}: the server's word for it is shown`);
        }
        if (run === left.runId) check(/not visible to your role/.test(await text(page, '.drawer')), 'the output says that it is kept back');
        await page.click('.drawer [aria-label=Close]');
        for (const tab of ['timeline', 'events', 'steps', 'io', 'signals', 'graph']) {
          await page.click('#tab-' + tab);
          await page.locator(`#tab-${tab}[aria-selected=true]`).waitFor();
          await settled();
          if (tab === 'io') check(/not visible to your role/.test(await text(page, '[aria-label=Input]')), role + ': the input says that it is kept back');
          if (tab === 'graph' && run === ids.orders) check(await page.locator('.acts button:has-text("Fork")').isDisabled(), role + ' may not fork');
        }
        for (const view of ['inbox', 'definitions', 'compare', 'queues', 'outbox', 'alerts', 'audit', 'store', 'integrity', 'runs']) {
          await page.click(`.nav a[href="/${view}"]:not(.brand)`);
          await settled();
        }
      }
      check(!(await page.locator('text=This view cannot be shown').count()), 'no view fails');
      same(denied.filter((p, i) => denied.indexOf(p) !== i).join(' '), '', role + ': denied more than once');
      await page.context().close();
    }
    const page = await open(`/runs/${left.runId}?step=a&show=output`); // who may see it keeps the file
    const [kept] = await Promise.all([page.waitForEvent('download'), page.click('.drawer button:has-text("one.txt")')]);
    same(readFileSync(await kept.path(), 'utf8'), 'one\n', 'the file');
    check(/one\.txt\s*4 B/.test(await text(page, '.drawer .dep')), 'name and size: ' + await text(page, '.drawer .dep'));
    await page.context().close();
  },
  async a_long_chain_begins_where_it_failed_in_a_size_to_read() {
    const made = await service.start({ metadata: { planId: 'chain', planVersion: '1.0', schemaVersion: 'v1.2' }, steps: Array.from({ length: 150 }, (_, i) => ({ stepId: 's' + i, dependsOn: i ? ['s' + (i - 1)] : [], ...(i === 90 ? { kind: 'shell', with: { command: 'exit 1' } } : { kind: 'noop' }) })) });
    await service.ended(made.runId);
    const page = await open('/runs/' + made.runId), pane = await page.locator('.graph').boundingBox();
    await until(async () => { const at = await page.locator('[data-node="s90"]').boundingBox(); return at && at.x > pane.x && at.x + at.width < pane.x + pane.width && at.height > 20; }, 'the failed step is seen');
    await page.context().close();
  },
  async runs_are_listed_filtered_and_chosen() {
    const page = await open('/runs');
    await page.locator(`[data-row="${ids.orders}"]`).waitFor();
    const row = page.locator(`[data-row="${ids.orders}"]`);
    check(/relation "orders_2026_11" does not exist/.test(await row.innerText()), 'the row says why');
    check(!/\[31m/.test(await row.innerText()), 'no escape sequence');
    await accessible(page, 'runs');
    await page.click('.seg button:has-text("Failed")');
    await until(async () => !(await page.locator('.runrow .st.done').count()) && await row.count(), 'failed runs only');
    check(page.url().includes('show=failed'), 'the filter is in the address');
    await page.fill('#q', 'plan~orders');
    await page.keyboard.press('Enter');
    await until(() => page.url().includes('q=plan'), 'the query is in the address');
    await until(async () => (await page.locator('[data-row]').count()) === 1, 'one run matches');
    same(await text(page, '.cli .mono'), "cairn ls '(plan~orders) (status=FAILED)'", 'the command of what is seen');
    page.expectErrors = true; // a browser complains about every 400
    await page.fill('#q', 'status=lost');
    await page.keyboard.press('Enter');
    await page.locator('.err').waitFor();
    await page.goto(url + '/runs');
    await page.locator('[data-row]').first().waitFor();
    await row.hover();
    await row.locator('input[type=checkbox]').check();
    await page.click('.bulk button:has-text("Cancel")');
    check(/left out/.test(await page.locator('dialog').innerText()), 'what is refused is said first');
    await accessible(page, 'bulk dialog');
    await page.keyboard.press('Escape');
    await page.context().close();
  },
  async a_new_run_waits_in_a_pill_and_nothing_moves() {
    const page = await open('/runs');
    await page.locator('[data-row]').first().waitFor();
    await page.locator('.fresh.live').waitFor();
    const first = await page.locator('[data-row]').first().getAttribute('data-row');
    const made = await service.start({ name: 'pill', nodes: [{ id: 'a', bash: 'true' }] });
    await page.locator('.pill').waitFor();
    same(await page.locator('[data-row]').first().getAttribute('data-row'), first, 'the first row');
    await page.click('.pill');
    await page.locator(`[data-row="${made.runId}"]`).waitFor();
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
  async a_gate_is_answered_and_the_run_goes_on() {
    const page = await open('/inbox');
    await page.locator('.gate').first().waitFor();
    await accessible(page, 'inbox');
    await page.fill('.gate input', 'checked by hand');
    await page.click('.gate button:has-text("Approve")');
    await page.locator('.answered').waitFor();
    check(/checked by hand/.test(await text(page, '.answered')), 'the record of the decision');
    await service.ended(ids.release);
    await page.goto(url + at('release') + '/signals');
    await page.locator('.decision').waitFor();
    await page.context().close();
  },
  async a_run_is_started_by_form() {
    const page = await open('/definitions?new');
    await page.locator('text=Valid: hello').waitFor();
    await page.fill('.start input', 'browser');
    await accessible(page, 'start');
    await page.click('.start button:has-text("Start")');
    await page.locator('[data-node="shout"].s-done').waitFor();
    const id = new URL(page.url()).pathname.split('/')[2];
    const run = await service.ended(id);
    check(/HELLO, BROWSER/.test(JSON.stringify(run.steps)), 'with its input');
    await page.goto(url + '/definitions');
    await page.locator('td a.nm').first().waitFor();
    await accessible(page, 'definitions');
    await page.goto(url + '/definitions/orders-import');
    await page.locator('.ver').first().waitFor();
    await accessible(page, 'definition');
    await page.context().close();
  },
  async two_runs_are_compared() {
    const page = await open(`/compare?a=${ids.ordersBefore}&b=${ids.orders}`);
    await page.locator('.verdict').waitFor();
    check(/load: not there → failed/.test(await text(page, '.verdict')), 'the sentence: ' + await text(page, '.verdict'));
    await accessible(page, 'compare');
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
  async operators_see_queues_outbox_alerts_and_audit() {
    const page = await open('/queues');
    await page.locator('td:has-text("default")').first().waitFor();
    await accessible(page, 'queues');
    for (const [path, wanted] of [['/outbox', 'Every event is delivered'], ['/alerts', 'No alert is open'], ['/audit', 'run.start']]) {
      await page.goto(url + path);
      await page.locator(`text=${wanted}`).first().waitFor();
      await accessible(page, path);
    }
    await page.context().close();
  },
  async everything_is_reached_by_keys_alone() {
    const page = await open('/runs');
    await page.locator('[data-row]').first().waitFor();
    await page.keyboard.press('Tab');
    check(await page.evaluate(() => document.activeElement?.className === 'skip'), 'the skip link comes first');
    for (const [keys, path] of [['gi', '/inbox'], ['gq', '/queues'], ['gr', '/runs']]) {
      for (const k of keys) await page.keyboard.press(k);
      await until(() => new URL(page.url()).pathname === path, 'g leads to ' + path);
    }
    await page.keyboard.press('?');
    await page.locator('dialog[open]').waitFor();
    await accessible(page, 'keys');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('orders');
    await until(async () => /orders-import/.test(await page.locator('#pal-list').innerText().catch(() => '')), 'the palette finds it');
    await accessible(page, 'palette');
    await page.keyboard.press('Escape');
    await page.locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await until(() => /^\/runs\/./.test(new URL(page.url()).pathname), 'Enter opens a run');
    await page.locator('.node').first().waitFor();
    await page.keyboard.press('2');
    await until(() => page.url().endsWith('/timeline'), '2 is the timeline');
    await page.keyboard.press('Escape');
    await until(() => new URL(page.url()).pathname === '/runs', 'Escape leads back');
    await page.context().close();
  },
  async what_people_wrote_is_text() {
    check(attacks.length === 200, attacks.length + ' attacks');
    const page = await open(at('attack') + '/io'), ran = () => page.evaluate(() => window.pwned);
    const has = async (selector, list, where) => { // every one of them, as text
      await until(async () => (await page.locator(selector).first().textContent().catch(() => '')).length > 2000, where + ' is there');
      const shown = await page.locator(selector).first().textContent();
      const missing = list.filter(t => !shown.includes(JSON.stringify(t)) && !shown.includes(t));
      check(missing.length === 0, `${where}: ${missing.length} are not shown as they are: ${missing.slice(0, 3).join(' ')}`);
    };
    const rolled = async (selector, where) => { // all of a long list, a screen at a time: nothing of it runs, and each is there
      await page.locator(selector).first().waitFor();
      const seen = await page.evaluate(async selector => {
        let all = '';
        const box = document.querySelector(selector);
        for (let top = 0; top <= box.scrollHeight; top += Math.max(200, box.clientHeight - 60)) { box.scrollTop = top; await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))); all += box.textContent + '\n'; }
        return all;
      }, selector);
      const missing = attacks.filter(t => !seen.includes(t) && !seen.includes(t.replaceAll('\t', ' ')));
      check(missing.length === 0, `${where}: ${missing.length} lines are not shown as they are: ${missing.slice(0, 3).join(' ')}`);
    };
    await has('[aria-label=Input]', attacks, 'the input');
    await page.goto(url + at('attack') + '?step=say&show=output');
    await has('.drawer', attacks, 'the output');
    await page.goto(url + at('attack') + '?step=say&show=logs');
    await rolled('.virtual.log', 'the log');
    await page.goto(url + at('attack') + '?step=fail');
    await until(async () => (await page.locator('.cause').textContent()).includes(attacks[2]), 'the error');
    for (const path of ['/events', '/timeline', '/steps', '/why', '/signals']) {
      await page.goto(url + at('attack') + path);
      await page.locator('h1').first().waitFor();
      await until(async () => !(await page.locator('.skeleton').count()), path + ' is read');
      check((await page.locator('h1').first().textContent()).includes(attacks[0]), 'the name as it is in ' + path);
    }
    await page.goto(url + '/runs?q=' + encodeURIComponent('run="named-*"'));
    await page.locator('[data-row]').first().waitFor();
    await until(() => page.evaluate(() => { const t = document.querySelector('.table'); t.scrollTop = t.scrollHeight; return document.querySelectorAll('[data-row]').length; }).then(n => n >= named), 'all names are listed');
    const listed = await page.locator('.table').textContent();
    for (const name of names) check(listed.includes(name), 'the name ' + name);
    check(!(await ran()), 'nothing of it ran');
    await page.context().close();
  },
  async names_of_any_length_and_direction_stay_in_their_place() {
    const page = await open('/runs?q=' + encodeURIComponent('run="odd-*"'), { width: 390, height: 844 });
    await page.locator('[data-row]').nth(1).waitFor();
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the list scrolls sideways');
    for (const id of ['odd-rtl', 'odd-long']) {
      await page.goto(url + '/runs/' + id + '?step=' + encodeURIComponent(odd[id].nodes[0].id));
      await page.locator('.drawer h2, .drawer .title').first().waitFor();
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), id + ' scrolls sideways');
      check((await page.locator('.drawer').textContent()).includes(odd[id].nodes[0].id), 'the name of the step');
    }
    await page.context().close();
  },
  async a_store_says_what_it_is_full_of_and_the_audit_has_the_newest_first() {
    const page = await open('/store');
    await page.locator('.usage i').first().waitFor();
    check(/Nothing to fix/.test(await text(page, '[aria-label=Doctor]')), 'the doctor');
    check(/events a day/.test(await text(page, '[aria-label=Growth]')), 'growth');
    await accessible(page, 'store');
    await page.goto(url + '/audit');
    await page.locator('tbody tr').nth(2).waitFor();
    const times = await page.locator('tbody time').evaluateAll(all => all.map(t => t.getAttribute('datetime')));
    check(times.every((t, i) => i === 0 || t <= times[i - 1]), 'newest first: ' + times.slice(0, 4));
    await page.context().close();
  },
  async a_signal_is_sent_by_the_form_of_its_schema() {
    const { runId } = await service.start({ name: 'formed', inputs: { day: 'monday' }, nodes: [{ id: 'gate', approval: { message: 'Go on?' } }, { id: 'after', depends_on: ['gate'], bash: 'echo $INPUTS.day' }] });
    const page = await open(`/runs/${runId}/signals`);
    await page.click('.sig button:has-text("Change inputs")');
    await page.locator('dialog textarea[name=params]').waitFor();
    await accessible(page, 'signal form');
    await page.fill('dialog textarea', 'no json');
    await page.click('dialog button:has-text("Change inputs")');
    await page.locator('dialog .err:has-text("is no JSON")').waitFor();
    await page.fill('dialog textarea', '{"day": "friday"}');
    await page.fill('dialog input[name=reason]', 'the day moved');
    await page.keyboard.press('Control+Enter');
    await page.locator('.decision:has-text("UPDATE_PARAMS")').waitFor();
    await service.signal(runId, 'APPROVE', { stepId: 'gate' });
    const run = await service.ended(runId);
    check(/friday/.test(JSON.stringify(run.steps)), 'with the new input');
    await page.context().close();
  },
  async refusals_say_what_they_are() {
    const page = await open('/queues');
    page.expectErrors = true; // a browser complains about each
    for (const [status, code, detail, wanted] of [[403, 'AUTHZ_DENIED', 'your token may not see runs of production', 'may not see'], [404, 'NOT_FOUND', 'there is no run', 'There is nothing here'], [410, 'GONE', 'it was removed on 12 Oct', 'Removed'], [500, 'INTERNAL', 'the disk is full', 'could not answer']]) {
      await page.route('**/v1/runs/' + ids.orders, route => route.fulfill({ status, contentType: 'application/problem+json', body: JSON.stringify({ status, code, detail, title: code }) }));
      await page.goto(url + at('orders'));
      await page.locator(`.empty:has-text("${wanted}")`).waitFor();
      await accessible(page, String(status));
      await page.unroute('**/v1/runs/' + ids.orders);
    }
    // 409: another person was quicker; the dialog says so and stays
    const { runId } = await service.start({ name: 'quick', nodes: [{ id: 'gate', approval: { message: 'Go on?' } }] });
    await service.until(runId, r => r.steps.some(s => s.status === 'RUNNING'), 'its gate');
    await page.goto(url + '/runs/' + runId + '?step=gate');
    await page.locator('.gate').waitFor();
    await page.route('**/signals', route => route.request().method() === 'POST' ? route.fulfill({ status: 409, contentType: 'application/problem+json', body: JSON.stringify({ status: 409, code: 'SIGNAL_REJECTED', detail: 'gate was answered by anna 3 s ago' }) }) : route.continue());
    await page.click('.gate button:has-text("Approve")');
    await page.locator('.gate .err:has-text("answered by anna")').waitFor();
    // 401 in the middle: the sign-in lies over the page
    await page.context().setExtraHTTPHeaders({});
    await page.goto(url + '/runs');
    await page.locator('.sign-in input').waitFor();
    await page.context().close();
  },
  async words_that_nobody_knows_are_shown_as_they_are() {
    const page = await open('/queues');
    await page.route('**/v1/runs/' + ids.orders, async route => {
      const answer = await route.fetch(), run = await answer.json();
      await route.fulfill({ response: answer, json: { ...run, status: 'RUNNING', substatus: 'TELEPORTING' } });
    });
    await page.route('**/v1/runs/' + ids.orders + '/events', route => route.fulfill({ contentType: 'text/event-stream', body: 'id: 1\nevent: FluxCapacitorCharged\ndata: {"prevSeq":0,"eventType":"FluxCapacitorCharged","runSeq":1,"emittedAt":"2026-01-01T00:00:00Z","payload":{"gigawatts":1.21}}\n\nevent: end\ndata: {}\n\n' }));
    await page.goto(url + at('orders') + '/events');
    await page.locator('.evt:has-text("FluxCapacitorCharged")').waitFor();
    check(/TELEPORTING/.test(await text(page, '.chip')), 'the substatus');
    await page.locator('.evt:has-text("FluxCapacitorCharged")').click();
    check(/1\.21/.test(await text(page, '.raw pre')), 'the record');
    await page.context().close();
  },
  async what_is_not_there_says_so() {
    const page = await open('/queues');
    page.expectErrors = true; // a browser complains about every 404
    await page.goto(url + '/runs/no-such-run-at-all');
    await page.locator('text=There is nothing here').waitFor();
    await page.goto(url + '/nowhere');
    await page.locator('text=There is no such page').waitFor();
    await page.goto(url + '/runs/' + ids.orders.slice(0, 8));
    await until(() => page.url().includes(ids.orders), 'the full id replaces a short one');
    await page.context().close();
  },
  async a_connection_that_was_cut_goes_on_with_nothing_lost() {
    const page = await open('/runs');
    page.expectErrors = true;
    await page.locator('.fresh.live').waitFor();
    await stop('SIGKILL');
    await page.locator('.fresh.stale, .fresh.offline').first().waitFor();
    await page.locator('.fresh.offline').waitFor();
    await start(new URL(url).host);
    await page.click('.fresh .link').catch(() => {}); // it may have come back by itself
    await page.locator('.fresh.live').waitFor();
    const made = await service.start({ name: 'after-the-cut', nodes: [{ id: 'a', bash: 'true' }] });
    await until(async () => { if (await page.locator('.pill').count()) await page.click('.pill').catch(() => {}); return page.locator(`[data-row="${made.runId}"]`).count(); }, 'the run after the cut');
    await page.context().close();
  },
};

if (full)
  cases.every_view_in_both_themes_and_three_widths = async () => {
    const views = ['/runs', at('orders'), at('orders') + '?step=load', at('orders') + '/timeline', at('orders') + '/events?at=6', at('orders') + '/steps', at('orders') + '/io', at('orders') + '/signals', at('orders') + '/why', at('warehouse'), at('geocode') + '?step=lookup', '/inbox', '/definitions', '/definitions?new', '/compare?b=' + ids.orders, '/queues', '/outbox', '/alerts', '/audit', '/store', '/integrity?run=' + ids.orders];
    for (const theme of ['light', 'dark']) for (const [width, height] of [[1440, 900], [900, 760], [390, 844]]) for (const view of views) {
      const page = await open(view, { width, height, theme });
      await page.locator('h1').first().waitFor();
      await until(async () => !(await page.locator('.skeleton').count()), 'all of it is there: ' + view);
      await accessible(page, `${view} ${theme} ${width}`);
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} scrolls sideways at ${width}`);
      if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `${view.replace(/\W+/g, '-').replace(/[0-9a-f]{8}-[0-9a-f-]+/, 'run')}-${theme}-${width}.png`) });
      await page.context().close();
    }
  };
if (full)
  cases.ten_thousand_steps_and_their_events_are_usable = async () => {
    const run = (await service.start(fan(10000))).runId;
    await service.until(run, r => r.status === 'COMPLETED', 'its end');
    const page = await open('/runs/' + run);
    await page.locator('.node.stack').waitFor();
    const measured = await page.evaluate(() => ({ ready: Math.round(performance.now()), memory: Math.round((performance.memory?.usedJSHeapSize ?? 0) / 1e6) }));
    console.log(`# 10,000 steps: the graph after ${measured.ready} ms, heap ${measured.memory} MB`);
    await page.keyboard.press('3');
    await page.locator('.evt[data-seq="1.0"]').waitFor();
    const frames = await page.evaluate(async () => {
      const box = document.querySelector('.virtual'), out = [];
      let last = performance.now();
      for (let i = 0; i < 120; i++) { box.scrollTop += 900; await new Promise(requestAnimationFrame); const now = performance.now(); out.push(now - last); last = now; }
      return out.sort((a, b) => a - b);
    });
    console.log(`# events: frames p50 ${frames[60].toFixed(0)} ms, longest ${frames[119].toFixed(0)} ms`);
    await page.context().close();
  };

let failed = 0;
try {
  await start();
  service = new Service(url, token);
  ids = await seed(service, ['orders', 'release', 'geocode', 'warehouse']);
  ids.attack = (await service.start(hostileAll())).runId;
  for (let i = 0; i < named; i++) await service.start({ name: names[i], nodes: [{ id: 'a', bash: 'true' }] }, { runId: 'named-' + i });
  for (const [runId, document] of Object.entries(odd)) await service.start(document, { runId });
  await service.ended(ids.attack);
  for (const [name, run] of Object.entries(cases)) {
    if (only.length && !only.includes(name)) continue;
    complaints = [];
    const begun = Date.now();
    try {
      await run();
      check(complaints.length === 0, complaints.join('\n    '));
      console.log(`ok ${name} (${Date.now() - begun} ms)`);
    } catch (error) {
      failed++;
      console.log(`not ok ${name}: ${error.message.split('\n').slice(0, 12).join('\n    ')}`);
      for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: join(dir, name + '.png') }).catch(() => {});
    }
    for (const context of browser.contexts()) await context.close();
  }
} finally {
  await browser.close();
  if (server && server.exitCode === null) await stop('SIGKILL');
}
process.exit(failed ? 1 : 0);
