// Connections that break, and servers that die.
import { createServer, connect } from 'node:net';
import { check, open, same, service, start, stop, text, until, url } from '../harness.mjs';

// Between the browser and the server: cut() ends every connection at once, in the middle of whatever is on it.
async function between() {
  const to = new URL(url), pairs = new Set();
  const proxy = createServer(near => {
    const far = connect(Number(to.port), to.hostname), pair = [near, far];
    pairs.add(pair);
    near.on('data', bytes => far.write(Buffer.from(bytes.toString('latin1').replaceAll('127.0.0.1:' + proxy.address().port, to.host), 'latin1'))); // the server answers to its own name alone
    far.pipe(near);
    for (const [a, b] of [pair, [far, near]]) { a.on('error', () => {}); a.on('close', () => { b.destroy(); pairs.delete(pair); }); }
  });
  await new Promise(ready => proxy.listen(0, '127.0.0.1', ready));
  return { url: 'http://127.0.0.1:' + proxy.address().port, cut: () => { let n = 0; for (const pair of pairs) { pair[0].destroy(); n++; } return n; }, close: () => { for (const pair of pairs) pair[0].destroy(); proxy.close(); } };
}

export default {
  async a_stream_that_is_cut_again_and_again_loses_and_repeats_nothing() {
    const proxy = await between(), steps = 40;
    const { runId } = await service.start({ name: 'long', nodes: Array.from({ length: steps }, (_, i) => ({ id: 's' + i, bash: 'sleep 0.08', ...(i ? { depends_on: ['s' + (i - 1)] } : {}) })) });
    const page = await open('/queues');
    page.expectErrors = true; // a browser complains about each connection
    try {
      await page.goto(proxy.url + '/runs/' + runId + '/events');
      await page.locator('.evt[data-seq]').first().waitFor();
      let cuts = 0, run;
      do {
        const rows = async () => Number(await page.locator('.virtual').first().getAttribute('aria-rowcount')), before = await rows();
        cuts += proxy.cut() > 0 ? 1 : 0;
        await until(async () => (run = await service.run(runId)).status === 'COMPLETED' || (await rows()) > before + 2, 'more of it after a cut');
      } while (run.status !== 'COMPLETED');
      check(cuts >= 2, 'it was cut in its middle: ' + cuts);
      await until(async () => (await text(page, '#tab-events b')) === String(run.lastEventSeq), 'all events are there');
      await page.locator('.chip.done').first().waitFor();
      // Every row of the list, a screen at a time: each number once and none left out. The hashes say the same.
      const seen = await page.evaluate(async () => {
        const box = document.querySelector('.virtual'), all = new Set();
        for (let top = 0; top <= box.scrollHeight; top += 200) { box.scrollTop = top; await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))); for (const e of document.querySelectorAll('.evt[data-seq]')) all.add(e.dataset.seq); }
        return [...all].filter(s => s.endsWith('.0')).map(parseFloat).sort((a, b) => a - b);
      });
      same(seen.join(' '), Array.from({ length: run.lastEventSeq }, (_, i) => i + 1).join(' '), 'the numbers');
      await until(async () => (await text(page, '.filter')).includes('links hold'), 'the chain holds');
      await page.locator('.fresh.live').waitFor();
    } finally {
      proxy.close();
    }
    await page.context().close();
  },
  async a_server_that_died_and_came_back_is_read_again() {
    const { runId } = await service.start({ name: 'waits', nodes: [{ id: 'gate', approval: { message: 'Go on?' } }, { id: 'after', depends_on: ['gate'], bash: 'true' }] });
    await service.until(runId, r => r.steps.some(s => s.status === 'RUNNING'), 'its gate');
    const list = await open('/runs'), one = await open('/runs/' + runId);
    for (const page of [list, one]) {
      page.expectErrors = true;
      await page.locator('.fresh.live').waitFor();
    }
    await one.locator('[data-node="gate"].s-approval').waitFor();
    await stop('SIGKILL');
    for (const page of [list, one]) await page.locator('.fresh.offline').waitFor();
    await one.locator('.banner:has-text("does not answer")').waitFor();
    await start(new URL(url).host);
    for (const page of [list, one]) {
      await page.click('.fresh .link', { timeout: 1000 }).catch(() => {}); // it may have come back by itself
      await page.locator('.fresh.live').waitFor();
    }
    await service.signal(runId, 'APPROVE', { stepId: 'gate' });
    await one.locator('[data-node="after"].s-done').waitFor();
    const made = await service.start({ name: 'after-the-cut', nodes: [{ id: 'a', bash: 'true' }] });
    await until(async () => { if (await list.locator('.pill').count()) await list.click('.pill').catch(() => {}); return list.locator(`[data-row="${made.runId}"]`).count(); }, 'the run after the cut');
    await list.locator(`[data-row="${runId}"] .st.done`).waitFor();
    for (const page of [list, one]) await page.context().close();
  },
};
