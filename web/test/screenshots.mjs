// Pictures for the README and the docs, from a real store: node screenshots.mjs CAIRN DIRECTORY OUT
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { seed, Service } from './seed.mjs';

const [program, dir, out] = process.argv.slice(2), cairn = resolve(program);
mkdirSync(out, { recursive: true });
const server = spawn(cairn, ['serve', '--store', 'sqlite:' + join(dir, 'store.db'), '--listen', '127.0.0.1:0', '--token-file', join(dir, 'token'), '--drain', '0'], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, CAIRN_CONFINE: 'none' } });
let said = '';
await new Promise(ready => server.stderr.on('data', text => { said += text; if (/token of the first start/.test(said)) ready(); }));
const url = /^listening on (\S+)/m.exec(said)[1], token = readFileSync(join(dir, 'token'), 'utf8').trim();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'] });
try {
  const service = new Service(url, token), ids = await seed(service);
  // A schedule with a history: nights of the autumn, two of which went wrong.
  const nightly = { name: 'nightly-import', inputs: { day: '' }, nodes: [{ id: 'extract', bash: 'sleep 0.05; echo 18244' }, { id: 'validate', depends_on: ['extract'], bash: 'echo ok' }, { id: 'exchange-rates', depends_on: ['extract'], bash: "case '$INPUTS.day' in *-22|*-29) echo 'HTTP 503' >&2; exit 1;; esac; echo ok" }, { id: 'load', depends_on: ['validate', 'exchange-rates'], bash: "case '$INPUTS.day' in *-27) sleep 0.3;; esac; echo loaded" }, { id: 'refresh-marts', depends_on: ['load'], bash: 'echo ok' }, { id: 'cleanup', depends_on: ['load'], trigger_rule: 'all_done', bash: 'echo ok' }] };
  await service.ask('PUT', '/v1/schedules/nightly-import', { document: JSON.stringify(nightly), schedule: { cron: '30 2 * * *', zone: 'Europe/Berlin', inputs: { day: '${schedule.date}' } } });
  await service.ask('POST', '/v1/schedules/nightly-import/backfills', { from: '2026-10-16T00:00:00', to: '2026-11-04T00:00:00' });
  for (let n = 0; n < 19; ) { n = (await service.ask('GET', '/v1/runs?limit=50&fields=runId&q=' + encodeURIComponent('plan=nightly-import status=ended'))).items.length; await new Promise(r => setTimeout(r, 100)); }
  const shots = [
    ['runs', '/runs?q=' + encodeURIComponent('plan!=nightly-import'), 'light', 1440, 900, '.runrow .st'], ['run-why', `/runs/${ids.orders}?step=load`, 'light', 1440, 900, '.proof'], ['timeline-logs', `/runs/${ids.orders}/timeline?step=load&show=logs`, 'dark', 1440, 900, '.log .a31'],
    ['past', `/runs/${ids.orders}?at=12&step=load`, 'dark', 1440, 900, '.verdict'], ['graph', '/runs/' + ids.warehouse, 'light', 1440, 900, '.node'], ['approval', `/runs/${ids.release}?step=ship`, 'dark', 1440, 900, '.gate'],
    ['compare', `/compare?a=${ids.ordersBefore}&b=${ids.orders}`, 'light', 1440, 900, '.verdict'], ['integrity', '/integrity?run=' + ids.orders, 'dark', 1440, 900, '.verdict'], ['schedule', '/schedules/nightly-import', 'light', 1440, 900, '.matrix'], ['phone', '/runs/' + ids.orders, 'dark', 390, 844, '.node'],
  ];
  for (const [name, path, theme, width, height, ready] of shots) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce', extraHTTPHeaders: { Authorization: 'Bearer ' + token } });
    const page = await context.newPage();
    await page.goto(url + path);
    await page.locator(ready).first().waitFor();
    await page.locator('.fresh').first().waitFor();
    await page.waitForFunction(() => !document.querySelector('.skeleton'));
    await page.screenshot({ path: join(out, name + '.png') });
    console.log(join(out, name + '.png'));
    await context.close();
  }
} finally {
  await browser.close();
  server.kill('SIGKILL');
}
