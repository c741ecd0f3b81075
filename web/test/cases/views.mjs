// Views that are no run: each a journey, with axe and without a complaint.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessible, at, cairn, check, dir, ids, open, same, service, text, token, until, url } from '../harness.mjs';

export default {
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
  async work_goes_on_where_it_was_when_a_session_ends_in_the_middle_of_it() {
    const guest = await service.ask('POST', '/v1/tokens', { roles: ['Engineer'], name: 'guest' }), { runId } = await service.start({ name: 'middle', nodes: [{ id: 'gate', approval: { message: 'Go on?' } }] });
    await service.until(runId, r => r.steps.some(s => s.status === 'RUNNING'), 'its gate');
    const page = await open('/runs/' + runId, { signedIn: false });
    await page.fill('.sign-in input', guest.token);
    await page.keyboard.press('Enter');
    await page.click('.acts button:has-text("Cancel…")');
    await page.fill('dialog:has-text("Cancel middle?") input', 'half a sentence');
    await service.ask('DELETE', '/v1/tokens/' + guest.id);
    await page.click('dialog:has-text("Cancel middle?") button[type=submit]');
    await page.locator('.sign-in input').waitFor();
    await accessible(page, 'sign-in over the page');
    await page.keyboard.press('Escape');
    await page.locator('.sign-in input').click();
    await page.keyboard.type(token); // it has the focus, though another dialog was open
    await page.keyboard.press('Enter');
    await page.locator('.chip.cancelled').waitFor();
    check(/half a sentence/.test(await text(page, '.cause')), 'what was asked before was done: ' + await text(page, '.cause'));
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
        for (const view of ['inbox', 'definitions', 'schedules', 'compare', 'queues', 'outbox', 'alerts', 'audit', 'store', 'integrity', 'runs']) {
          await page.click(`.nav a[href="/${view}"]:not(.brand)`);
          await settled();
          if (['runs', 'inbox', 'definitions'].includes(view)) check(!(await page.locator('.main :text("may not see this")').count()), `${role} sees ${view}`);
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
  async a_step_that_is_held_waits_for_a_person_too() {
    const { runId } = await service.start({ metadata: { planId: 'held-here', planVersion: '1.0', schemaVersion: 'v1.2', onStepFailure: 'hold' }, steps: [{ stepId: 'upload', kind: 'shell', dependsOn: [], with: { command: "echo '<i>no key</i>' >&2; exit 1" } }] });
    await service.until(runId, r => r.steps.some(s => s.held), 'a held step');
    const page = await open('/runs?show=need');
    await page.locator(`[data-row="${runId}"]:has-text("failed and waits for you")`).waitFor();
    await page.click('.seg button:has-text("Running")');
    await until(async () => (await page.locator('.seg button[aria-pressed=true]:has-text("Running")').count()) && !(await page.locator(`[data-row="${runId}"]`).count()), 'it does not count as running');
    await page.click('.nav a[href="/inbox"]:not(.brand)');
    const card = page.locator('article:has-text("held-here")');
    await card.locator('text=<i>no key</i>').waitFor();
    await accessible(page, 'inbox with a held step');
    await card.locator('button:has-text("Skip…")').click();
    await page.fill('dialog input', 'the bucket is gone');
    const typed = await page.locator('dialog input').nth(1).count();
    if (typed) await page.locator('dialog input').nth(1).fill(runId.slice(0, 8));
    await page.click('dialog button[type=submit]');
    await service.ended(runId);
    await card.locator('text=answered').waitFor(); // it stays where it was
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
  async a_definition_whose_name_has_slashes_has_an_address_that_can_be_read_again() {
    const playbook = (path, text) => ({ apiVersion: 'noetl.io/v2', kind: 'Playbook', metadata: { name: 'p', path }, workflow: [{ step: 'one', desc: text, tool: { kind: 'noop' } }] });
    for (const [path, text] of [['demo/p', 'first'], ['demo/p', 'second'], ['demo/of/source', 'third']]) await service.ended((await service.start(playbook(path, text))).runId);
    const page = await open('/definitions');
    await page.click('td a.nm:has-text("demo/p")');
    await page.locator('.ver').nth(1).waitFor();
    same(new URL(page.url()).pathname, '/definitions/demo/p', 'the address');
    await page.locator('.cm-content:has-text("second")').waitFor(); // the newest
    await page.click('.ver >> nth=1');
    await page.locator('.cm-content:has-text("first")').waitFor();
    await page.click('.seg button:has-text("Graph")');
    await page.locator('[data-node="one"]').waitFor();
    const address = new URL(page.url()).pathname;
    check(/^\/definitions\/demo\/p\/[0-9a-f]{7}\/graph$/.test(address), 'name, version and part: ' + address);
    await page.reload();
    await page.locator('[data-node="one"]').waitFor();
    check(await page.locator('.ver').nth(1).getAttribute('aria-pressed') === 'true', 'the same version');
    check(/demo\/p/.test(await text(page, '.crumb')), 'the crumb names it');
    await page.goto(url + '/definitions');
    await page.click('td a.nm:has-text("demo/of/source")'); // a name that ends like a part
    await page.locator('.ver').first().waitFor();
    await page.reload();
    await page.locator('h1:has-text("demo/of/source")').waitFor();
    await page.context().close();
  },
  async a_document_is_checked_and_drawn_as_it_is_typed() {
    const page = await open('/definitions?new');
    page.expectErrors = /status of 422/; // of a document that is none while it is typed
    await page.locator('.will [data-node="shout"]').waitFor();
    const editor = page.locator('.start .cm-content'), theme = () => page.evaluate(() => document.documentElement.dataset.theme), before = await theme();
    await editor.click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('  - id: third\nid: t g r ? y');
    same(new URL(page.url()).pathname + (await theme()) + (await page.locator('dialog[open]').count()), '/definitions' + before + 0, 'letters of a document are no keys of the page');
    await page.locator('.start [role=status] .mono:has-text("line ")').first().waitFor();
    check(await page.locator('.start button[type=submit]').isDisabled(), 'what is wrong is not started');
    same(await page.locator('.will [data-node]').count(), 2, 'the picture of before stays');
    await accessible(page, 'mistakes in a document');
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    await page.keyboard.type('{"name": "typed", "nodes": [{"id": "one", "bash": "true"}, {"id": "two", "bash": "true", "depends_on": ["one"]}, {"id": "three", "bash": "true", "depends_on": ["two"]}]}');
    await page.locator('.will:has-text("3 steps would run") [data-node="three"]').waitFor();
    await page.locator('text=Valid: typed').waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    check(await page.evaluate(() => document.activeElement?.closest('.start') && !document.activeElement.closest('.editor')), 'Escape and Tab lead out of the editor');
    await page.context().close();
  },
  async a_step_that_waits_for_an_event_says_so_and_gets_it_from_here() {
    const { runId } = await service.start({ name: 'order', inputs: { order: '17' }, nodes: [{ id: 'charge', bash: 'echo order-$INPUTS.order' }, { id: 'paid', depends_on: ['charge'], event: { name: 'payment.received', correlation: '$charge.output' }, timeout: 86400000 }, { id: 'ship', depends_on: ['paid'], bash: 'echo $paid.output.data.amount' }] });
    const page = await open('/runs/' + runId);
    await page.locator('[data-node="paid"].s-event').waitFor();
    check(/paid waits for payment\.received of order-17 · gives up in 23h/.test(await text(page, '.cause')), 'the cause: ' + await text(page, '.cause'));
    await page.click('.cause .link');
    await page.locator('.chain:has-text("Event from outside"):has-text("order-17")').waitFor();
    await accessible(page, 'a step that waits for an event');
    await page.click('#tab-timeline');
    await page.locator('.b.event').waitFor();
    const list = await open('/runs');
    await list.locator(`[data-row="${runId}"] .st.event`).waitFor();
    check(/paid waits for an event, 23h \d\dm left/.test(await text(list, `[data-row="${runId}"] .now`)), 'in the list: ' + await text(list, `[data-row="${runId}"] .now`));
    await list.context().close();
    await page.click('.chain button:has-text("Send it…")');
    same(await page.locator('dialog input').evaluateAll(all => all.map(i => i.value).join(' ')), 'payment.received order-17', 'what it waits for is filled in');
    await accessible(page, 'send an event');
    await page.fill('dialog textarea', 'no json');
    await page.click('dialog button[type=submit]');
    await page.locator('dialog .err:has-text("is no JSON")').waitFor();
    await page.fill('dialog textarea', '{"amount": 4200}');
    check(/cairn event send payment\.received --correlation order-17 --json/.test(await page.locator('dialog .cli').innerText()), 'the command');
    await page.keyboard.press('Control+Enter');
    const run = await service.ended(runId);
    check(/4200/.test(JSON.stringify(run.steps.find(s => s.stepId === 'ship').result)), 'with what the event said');
    await page.goto(url + '/incoming?show=DELIVERED');
    await page.locator('tr:has-text("payment.received"):has-text("order-17") a.link').waitFor();
    await page.click('button:has-text("Look")');
    await page.locator('.json:has-text("4200")').waitFor();
    await accessible(page, 'events from outside');
    await page.goto(url + '/incoming?show=KEPT');
    await page.locator('text=Every event was taken').waitFor();
    await page.context().close();
  },
  async a_schedule_shows_its_times_its_ticks_and_its_grid() {
    const document = JSON.stringify({ name: 'nightly-import', inputs: { day: '' }, nodes: [{ id: 'extract', bash: 'true' }, { id: 'load', depends_on: ['extract'], bash: "[ '$INPUTS.day' != 2026-10-25 ]" }, { id: 'report', depends_on: ['load'], bash: 'true' }] });
    await service.ask('PUT', '/v1/schedules/nightly', { document, schedule: { cron: '30 2 * * *', zone: 'Europe/Berlin', fold: 'twice', inputs: { day: '${schedule.date}' } } });
    const page = await open('/schedules');
    const row = page.locator('tr', { hasText: 'nightly' });
    await row.waitFor();
    check(/30 2 \* \* \*\s*Europe\/Berlin/.test(await row.innerText()) && /none yet/.test(await row.innerText()), 'the row: ' + await row.innerText());
    same(await text(page, '.cli .mono'), 'cairn schedule ls', 'the command');
    await accessible(page, 'schedules');
    await row.locator('button:has-text("Pause")').click();
    await page.fill('dialog input', 'the warehouse moves');
    await page.click('dialog button:has-text("Pause")');
    await page.locator('tr:has-text("the warehouse moves") button:has-text("Resume")').click();
    await row.locator('button:has-text("Pause")').waitFor();
    await page.click('td a.nm');
    await page.locator('.fires tbody tr').nth(9).waitFor();
    same(await page.locator('.crumb').innerText().then(t => t.replace(/\s+/g, ' ')), 'Schedules / nightly', 'the way back');
    // The night when the clock shows 02:30 twice, and the one that has none.
    await page.fill('.date', '2027-10-30');
    await page.locator('.fires:has-text("the first of two"):has-text("the second of two")').waitFor();
    await page.fill('.date', '2027-03-27');
    await page.locator('.fires tr:has-text("Sun 2027-03-28 03:00 +02:00"):has-text("the clock is set forward")').waitFor();
    await accessible(page, 'schedule');
    // A backfill lists what would run before it runs: across the night that has the time twice.
    await page.click('button:has-text("Backfill…")');
    await page.fill('dialog input[type=datetime-local] >> nth=0', '2026-10-24T00:00');
    await page.fill('dialog input[type=datetime-local] >> nth=1', '2026-10-27T00:00');
    await page.locator('.preview-times:has-text("4 runs"):has-text("the clock was set: +01:00 was +02:00")').waitFor();
    check(/cairn schedule backfill nightly --since 2026-10-24T00:00:00 --until 2026-10-27T00:00:00/.test(await page.locator('dialog .cli').innerText()), 'the command of what is about to be done');
    await accessible(page, 'backfill');
    await page.click('dialog button:has-text("Run 4 times")');
    await page.locator('[aria-label=Backfills]:has-text("4 of 4 runs begun")').waitFor();
    await until(async () => (await page.locator('.matrix tbody td a').count()) === 12 && (await page.locator('.matrix .c-failed').count()) === 2, 'four runs of three steps, two of which failed');
    await page.locator('.tickrow:has-text("backfill")').nth(3).waitFor();
    await page.click('text=Only what differs');
    same((await page.locator('.matrix tbody th').allInnerTexts()).join(' '), 'load report', 'steps that did not always end the same way');
    await page.locator('.matrix thead a').last().focus();
    await page.keyboard.press('ArrowDown');
    check(/^load: done in/.test(await page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '')), 'arrows lead into the grid');
    await accessible(page, 'grid');
    await page.click('.matrix .c-failed');
    await page.locator('.drawer .verdict:has-text("load")').waitFor();
    await page.goto(url + '/definitions/nightly-import/latest/grid');
    await page.locator('.matrix .c-failed').first().waitFor();
    await page.click('.seg button:has-text("Graph")');
    await page.locator('[data-node="report"].s-waiting').waitFor();
    await accessible(page, 'graph of a definition');
    await page.goto(url + '/schedules/nightly');
    await page.click('button:has-text("Run now…")');
    await page.fill('dialog textarea', '{"day": "tuesday"}');
    await page.click('dialog button:has-text("Run now")');
    await page.locator('[data-node="report"].s-done').waitFor();
    check(/^\/runs\/nightly/.test(decodeURIComponent(new URL(page.url()).pathname)), 'the run of it: ' + page.url());
    await page.goto(url + '/schedules/nightly');
    await page.click('button:has-text("Remove…")');
    await page.click('dialog button:has-text("Remove")');
    await page.locator('text=Nothing starts by itself').waitFor();
    await accessible(page, 'no schedules');
    await page.context().close();
  },
  async two_runs_are_compared() {
    const page = await open(`/compare?a=${ids.ordersBefore}&b=${ids.orders}`);
    await page.locator('.verdict').waitFor();
    check(/load: not there → failed/.test(await text(page, '.verdict')), 'the sentence: ' + await text(page, '.verdict'));
    await accessible(page, 'compare');
    await page.context().close();
  },
  async operators_see_queues_outbox_alerts_and_audit() {
    const page = await open('/queues');
    await page.locator('td:has-text("default")').first().waitFor();
    await page.locator('table[aria-label=Hosts] tr:has-text("This server")').waitFor();
    check(/ready/.test(await text(page, 'table[aria-label=Engines]')), 'the engine is ready');
    await accessible(page, 'queues');
    // A queue is made, changed and removed; what a number means is said before it is sent.
    await page.click('button:has-text("New queue…")');
    await page.fill('dialog input[name=name]', 'no such name!');
    check(await page.locator('dialog button[type=submit]').isDisabled(), 'a name that is none');
    await page.fill('dialog input[name=name]', 'nightly');
    await page.fill('dialog input[name=maxRunning]', '2');
    await page.selectOption('dialog select[name=policy]', 'REJECT');
    check(/2 runs at a time. When there are more: starts are refused/.test(await text(page, 'dialog')), 'what it means');
    check(/cairn queue set nightly .*policy=REJECT/.test(await text(page, 'dialog .cli')), 'its command');
    await accessible(page, 'queue form');
    await page.click('dialog button[type=submit]');
    const row = page.locator('tr:has-text("nightly")');
    await row.locator('text=0 of 2').waitFor();
    await row.locator('button:has-text("Change…")').click();
    await page.fill('dialog input[name=maxRunning]', '30');
    same(await text(page, 'dialog .cli .mono'), 'cairn queue set nightly --set maxRunning=30', 'only what is changed');
    await page.keyboard.press('Control+Enter');
    await row.locator('text=0 of 30').waitFor();
    await row.locator('button:has-text("Remove…")').click();
    await page.click('dialog button[type=submit]');
    await until(async () => !(await row.count()), 'the queue is gone');
    // Limits of the tenant, and back.
    await page.click('button:has-text("Limits…")');
    await page.fill('dialog input[name=runsInFlight]', '500');
    await page.click('dialog button[type=submit]');
    await page.locator('text=in flight of 500').waitFor();
    await page.click('button:has-text("Limits…")');
    await page.fill('dialog input[name=runsInFlight]', '0');
    await page.click('dialog button[type=submit]');
    await page.locator('text=in flight, no limit').waitFor();
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
  async every_view_is_used_by_keys_alone() {
    const page = await open('/runs'), press = async (...keys) => { for (const k of keys) await page.keyboard.press(k); };
    await page.locator('[data-row]').first().waitFor();
    // Tab until something that fits has the focus, as somebody does who has no pointer.
    const tab = async (selector, what = selector) => {
      for (let i = 0; i < 90; i++) {
        if (await page.evaluate(s => !!document.activeElement?.matches(s), selector)) return;
        await page.keyboard.press('Tab');
      }
      throw new Error('Tab never leads to ' + what);
    };
    const named = (text, selector = 'button') => page.evaluate(([t, s]) => { for (const e of document.querySelectorAll(s)) if (e.textContent.trim().startsWith(t)) e.dataset.key = t; }, [text, selector]).then(() => `[data-key="${text}"]`);
    const to = async (key, path) => { await page.evaluate(() => document.activeElement?.blur()); await press('g', key); await page.locator(`.nav a[href="${path}"][aria-current=page]`).waitFor(); await until(async () => !(await page.locator('.main .skeleton').count()), path + ' is read'); };
    // Runs: chosen, and asked about together.
    await press('j', 'x', 'k', 'x');
    await page.locator('.bulk:has-text("2 runs")').waitFor();
    await tab(await named('Cancel…', '.bulk button'));
    await press('Enter');
    await page.locator('dialog:has-text("Cancel 2 runs?")').waitFor();
    await press('Escape', 'Escape');
    await until(async () => !(await page.locator('dialog, .bulk').count()), 'nothing is chosen any more');
    // A run: its graph, the step over it, its past.
    await page.goto(url + at('orders'));
    await page.locator('[data-node="load"]').waitFor();
    await tab('.node');
    await press('ArrowRight', 'ArrowRight');
    await press('Enter');
    await page.locator('.drawer h2').waitFor();
    await tab('.drawer [role=tab]');
    await press('ArrowRight');
    await until(() => page.url().includes('show=logs'), 'the next tab of the step');
    await press('Escape');
    await until(async () => !(await page.locator('.drawer').count()), 'Escape closes the step');
    await tab('[role=slider]');
    await press('ArrowLeft', 'ArrowLeft');
    await page.locator('.pastbar .by').waitFor();
    await press('f');
    await page.locator('dialog .preview').waitFor();
    await press('Escape', 'n');
    await until(() => !page.url().includes('at='), 'n is now');
    for (const [key, part] of [['2', 'timeline'], ['3', 'events'], ['4', 'steps'], ['5', 'io'], ['6', 'signals']]) { await press(key); await until(() => page.url().endsWith('/' + part), key); }
    // Inbox: a question, answered.
    const gate = await service.start({ name: 'by-keys', nodes: [{ id: 'gate', approval: { message: 'By keys?' } }] });
    await service.until(gate.runId, r => r.steps.some(s => s.status === 'RUNNING'), 'its gate');
    await to('i', '/inbox');
    await page.locator('.gate:has-text("By keys?")').waitFor();
    await page.locator('.gate:has-text("By keys?") input').evaluate(e => { e.dataset.key = 'answer'; });
    await tab('[data-key=answer]');
    await page.keyboard.type('typed');
    await press('Tab', 'Enter');
    same((await service.ended(gate.runId)).status, 'COMPLETED', 'the run of the answer');
    // Definitions: one is opened, another started.
    await to('d', '/definitions');
    await tab('td a.nm');
    await press('Enter');
    await page.locator('.ver').first().waitFor();
    await tab('.seg button[aria-pressed=false]');
    await press('Enter');
    await until(() => /\/definitions\/.+\/\w+$/.test(page.url()), 'another part of it');
    // Events, queues, alerts, audit, store, integrity, compare.
    await to('e', '/incoming');
    await tab(await named('Send an event…'));
    await press('Enter');
    await page.locator('dialog input[name=name]').waitFor();
    await tab('dialog input[name=name]');
    await page.keyboard.type('by.keys');
    await press('Control+Enter');
    await page.locator('tr:has-text("by.keys")').waitFor();
    await to('q', '/queues');
    await page.locator('tr:has-text("default")').waitFor();
    await tab(await named('Pause…'));
    await press('Enter');
    await page.locator('dialog:has-text("Pause the queue default?")').waitFor();
    await tab('dialog button[type=submit]');
    await press('Enter');
    await page.locator('tr:has-text("paused")').waitFor();
    await tab(await named('Resume'));
    await press('Enter');
    await page.locator('tr:has-text("open")').waitFor();
    await to('a', '/alerts');
    await tab('.seg button[aria-pressed=false]');
    await press('Enter');
    await until(() => page.url().includes('show=seen'), 'another list of alerts');
    await to('u', '/audit');
    await page.locator('tbody tr').nth(1).waitFor();
    await tab('.query input');
    await page.keyboard.type('run');
    await tab('tbody button');
    await press('Enter');
    await page.locator('.json').waitFor();
    await to('v', '/integrity');
    await tab('.query input');
    await page.keyboard.type(ids.orders);
    await press('Enter');
    await page.locator('.verdict:has-text("is whole")').waitFor();
    await to('c', '/compare');
    await tab('input[placeholder="RUN or RUN@EVENT"]');
    await press('Control+a');
    await page.keyboard.type(ids.orders + '@4');
    await press('Enter');
    await page.locator('.verdict').waitFor();
    await until(() => page.url().includes('@4'), 'two moments');
    for (const [key, path] of [['o', '/outbox'], ['h', '/schedules'], ['s', '/store']]) await to(key, path);
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
};
