// What people and programs may write, what is refused, and what is not there.
import { accessible, at, check, ids, names, odd, open, service, text, until, url } from '../harness.mjs';
import { attacks } from '../seed.mjs';

export default {
  async what_people_wrote_is_text() {
    check(attacks.length === 200, attacks.length + ' attacks');
    check(names.length > 180, names.length + ' of them may be names');
    for (let i = 0; i < names.length; i += 20) await Promise.all(names.slice(i, i + 20).map((name, k) => service.start({ name, nodes: [{ id: 'a', noop: true }] }, { runId: 'named-' + (i + k) })));
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
    await has('.doc', attacks, 'the document, with its tags');
    await page.goto(url + at('attack') + '?step=say&show=output');
    await has('.drawer', attacks, 'the output');
    await page.goto(url + at('attack') + '?step=say&show=logs');
    await rolled('.virtual.log', 'the log');
    await page.goto(url + at('attack') + '?step=fail');
    await until(async () => (await page.locator('.cause').textContent()).includes(attacks[2]), 'the error');
    // As errors: each of them is the last word of a step that failed.
    await service.ended(ids.fails);
    await page.goto(url + '/runs/' + ids.fails + '/steps');
    await page.locator('.strow[data-step="f0"]').waitFor();
    const told = await page.evaluate(async () => {
      const box = document.querySelector('.sttable'), all = new Map();
      for (let top = 0; top <= box.scrollHeight; top += 300) { box.scrollTop = top; await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))); for (const row of document.querySelectorAll('.strow[data-step]')) all.set(row.dataset.step, row.querySelector('.c-w').textContent); }
      return Object.fromEntries(all);
    });
    const plain = t => t.replace(/[\s\u2028\u202c\u202e]+/g, ' ').trim(), lost = attacks.filter((t, i) => !plain(told['f' + i] ?? '').includes(plain(t)));
    check(lost.length === 0, `${lost.length} errors are not shown as they are: ${lost.slice(0, 3).map(t => JSON.stringify([t, told['f' + attacks.indexOf(t)]])).join(' ')}`);
    await page.goto(url + '/runs/' + ids.fails + '?step=f3&show=attempts');
    await until(async () => (await page.locator('.drawer dd.failed').textContent()).includes(attacks[3]), 'the error of an attempt');
    for (const path of ['/events', '/timeline', '/steps', '/why', '/signals']) {
      await page.goto(url + at('attack') + path);
      await page.locator('h1').first().waitFor();
      await until(async () => !(await page.locator('.skeleton').count()), path + ' is read');
      check((await page.locator('h1').first().textContent()).includes(attacks[0]), 'the name as it is in ' + path);
    }
    await page.goto(url + '/runs?q=' + encodeURIComponent('run="named-*"'));
    await page.locator('[data-row]').first().waitFor();
    await until(() => page.evaluate(() => { const t = document.querySelector('.table'); t.scrollTop = t.scrollHeight; return document.querySelectorAll('[data-row]').length; }).then(n => n >= names.length), 'all names are listed');
    const listed = await page.locator('.table').textContent();
    for (const name of names) check(listed.includes(name), 'the name ' + name);
    // As items of a loop, and as what each was given; and as the name of a definition that is no path.
    const loop = await service.start({ apiVersion: 'noetl.io/v2', kind: 'Playbook', metadata: { name: 'p', path: '../' + attacks[0] }, workload: { all: [] }, workflow: [{ step: 'each', loop: { in: '{{ all }}', iterator: 'one', spec: { mode: 'parallel', max_in_flight: 20 } }, tool: { kind: 'noop', input: { text: '{{ iter.one }}' } } }] }, { inputs: { all: attacks } });
    await service.ended(loop.runId);
    await page.goto(url + '/runs/' + loop.runId + '?step=each&show=items');
    await page.locator('.member').nth(90).waitFor();
    const items = await page.locator('.members').textContent();
    await page.click('.drawer button:has-text("Next")');
    await page.locator('[data-item="150"]').waitFor();
    const shown = items + await page.locator('.members').textContent(), unseen = attacks.filter(t => !shown.includes(t));
    check(unseen.length === 0, `${unseen.length} items are not shown as they are: ${unseen.slice(0, 3).join(' ')}`);
    await page.click('.member >> nth=0');
    await page.locator('.one').waitFor();
    await page.click('.one button:has-text("What it was given")');
    await page.locator('.given').first().waitFor();
    await page.goto(url + '/definitions');
    await page.click(`td a.nm:has-text("../${attacks[0]}")`);
    await page.locator('.ver').first().waitFor();
    await page.reload();
    await page.locator(`h1:has-text("../${attacks[0]}")`).waitFor();
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
  // WE-2.1.2i: a substatus is opaque, whatever it holds: behind the state in the list, over the run and after it ended.
  async words_that_nobody_knows_are_shown_as_they_are() {
    const page = await open('/queues');
    for (const [status, substatus] of [['RUNNING', 'temporal/WORKFLOW_TASK_BACKLOG'], ['PAUSED', 'mock/<b>half</b> asleep'], ['PENDING', 'ünbekannt'], ['COMPLETED', 'conductor/ARCHIVED'], ['TELEPORTED', '']]) {
      const told = run => ({ ...run, status, substatus: substatus || null }), shown = substatus || status;
      await page.route('**/v1/runs?*', async route => { const answer = await route.fetch(), list = await answer.json(); await route.fulfill({ response: answer, json: { ...list, items: list.items.map(told) } }); });
      await page.route('**/v1/runs/' + ids.orders, async route => { const answer = await route.fetch(); await route.fulfill({ response: answer, json: told(await answer.json()) }); });
      await page.goto(url + '/runs?q=plan~orders');
      await page.locator(`[data-row="${ids.orders}"] .st`).waitFor();
      check((await text(page, `[data-row="${ids.orders}"] .st`)).includes(shown), 'in the list: ' + await text(page, `[data-row="${ids.orders}"] .st`));
      await page.goto(url + at('orders'));
      await page.locator('.chip').first().waitFor();
      check((await text(page, '.chip')).includes(shown), 'over the run: ' + await text(page, '.chip'));
      await page.unroute('**/v1/runs?*');
      await page.unroute('**/v1/runs/' + ids.orders);
    }
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
    const refused = [];
    page.on('response', r => { if (r.status() >= 400) refused.push(r.url()); });
    await page.goto(url + '/runs/' + ids.orders.slice(0, 8));
    await until(() => page.url().includes(ids.orders), 'the full id replaces a short one');
    check(refused.length === 0, 'a short id is no denial in the audit: ' + refused);
    await page.context().close();
  },
};
