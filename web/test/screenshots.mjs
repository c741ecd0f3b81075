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
  const ids = await seed(new Service(url, token));
  const shots = [
    ['runs', '/runs', 'light', 1440, 900, '.runrow .st'], ['run-why', `/runs/${ids.orders}?step=load`, 'light', 1440, 900, '.proof'], ['timeline-logs', `/runs/${ids.orders}/timeline?step=load&show=logs`, 'dark', 1440, 900, '.log .a31'],
    ['past', `/runs/${ids.orders}?at=12&step=load`, 'dark', 1440, 900, '.verdict'], ['graph', '/runs/' + ids.warehouse, 'light', 1440, 900, '.node'], ['approval', `/runs/${ids.release}?step=ship`, 'dark', 1440, 900, '.gate'],
    ['compare', `/compare?a=${ids.ordersBefore}&b=${ids.orders}`, 'light', 1440, 900, '.verdict'], ['integrity', '/integrity?run=' + ids.orders, 'dark', 1440, 900, '.verdict'], ['phone', '/runs/' + ids.orders, 'dark', 390, 844, '.node'],
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
