// What the cases of the page stand on: a service of their own, Debian's Chromium, and ways to wait for what is expected, never for time.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { attacks, hostileAll, seed, Service } from './seed.mjs';

const [program, directory, ...wanted] = process.argv.slice(2);
export const cairn = resolve(program), dir = resolve(directory), only = wanted;
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
export const PATIENCE = 20000;
export const full = process.env.FULL === 'yes'; // every string, both themes, three widths
export const names = attacks.map(t => t.trim()).filter(t => Buffer.byteLength(t) <= 128 && !/[|\t]/.test(t)); // those that may be names of runs
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', '--enable-precise-memory-info'];

// ---- the service

let server;
export let url = '', token = '';
export async function start(listen = '127.0.0.1:0') {
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
export const process_of = () => server.pid;
export const stop = signal => new Promise(ended => { server.once('exit', ended); server.kill(signal); });

// ---- the browser

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
export const complaints = [];
export async function open(path, { width = 1440, height = 900, theme = 'light', signedIn = true, as = token } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('console', m => { if (m.type() === 'error' && !(page.expectErrors instanceof RegExp ? page.expectErrors.test(m.text()) : page.expectErrors)) complaints.push('console: ' + m.text()); });
  page.on('pageerror', e => complaints.push('error: ' + e.message));
  await page.addInitScript(() => addEventListener('securitypolicyviolation', e => console.error('CSP violation: ' + e.violatedDirective + ' ' + e.blockedURI)));
  if (signedIn) await context.setExtraHTTPHeaders({ Authorization: 'Bearer ' + as });
  else page.expectErrors = true; // a browser complains about every 401
  await page.goto(url + path);
  return page;
}
export const check = (holds, what) => { if (!holds) throw new Error(what); };
export const same = (is, should, what) => { if (is !== should) throw new Error(`${what}: ${JSON.stringify(is)}, not ${JSON.stringify(should)}`); };
export async function until(holds, what) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    if (await holds()) return;
    if (Date.now() > end) throw new Error('never: ' + what);
    await new Promise(r => setTimeout(r, 50));
  }
}
export const text = (page, selector) => page.locator(selector).first().innerText();
export async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] })).violations.map(v => `${v.id}: ${v.nodes.slice(0, 3).map(n => n.target.join(' ') + ' ' + n.html.slice(0, 120) + ' ' + (n.any[0]?.message ?? '')).join(' | ')}`));
  check(found.length === 0, `axe, ${what}: ${found.join('\n    ')}`);
}

// ---- what every case finds in the store

export let service, ids;
export const odd = { 'odd-rtl': { name: 'תהליך הזמנות יומי', nodes: [{ id: 'first', bash: 'true' }] }, 'odd-long': { name: 'a-name-without-end-'.repeat(6), nodes: [{ id: 'step-' + 'x'.repeat(110), bash: 'true' }] } };
export const at = name => '/runs/' + ids[name];
export async function fill() {
  await start();
  service = new Service(url, token);
  ids = await seed(service, ['orders', 'release', 'geocode', 'warehouse']);
  ids.attack = (await service.start(hostileAll())).runId;
  ids.fails = (await service.start({ name: 'fails in every way', nodes: attacks.map((text, i) => ({ id: 'f' + i, bash: "cat <<'EOF' >&2\n" + text + '\nEOF\nexit 1' })) })).runId;
  for (const [runId, document] of Object.entries(odd)) await service.start(document, { runId });
  await service.ended(ids.attack);
}
export async function close() {
  await browser.close();
  if (server && server.exitCode === null) await stop('SIGKILL');
}
