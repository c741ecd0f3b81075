// The page in Debian's Chromium against the service itself. Every case waits for what it expects, never for time.
//
//   node browser.mjs CAIRN DIRECTORY [CASE|FILE...]     starts a service of its own there; prints ok / not ok
//
// FULL=yes adds what takes minutes: every view in both themes at three widths, each hostile string as a name, and the budgets.
import { join } from 'node:path';
import cut from './cases/cut.mjs';
import long from './cases/full.mjs';
import hostile from './cases/hostile.mjs';
import run from './cases/run.mjs';
import views from './cases/views.mjs';
import { browser, check, close, complaints, dir, fill, full, only } from './harness.mjs';

const files = { views, run, hostile, cut };
const wanted = only.flatMap(name => (files[name] ? Object.keys(files[name]) : [name]));
const cases = { ...views, ...run, ...hostile, ...(full ? long : {}), ...cut }; // what kills the server comes last
let failed = 0;
for (const name of wanted) if (!cases[name]) { console.log('not ok ' + name + ': there is no such case'); failed++; }
try {
  await fill();
  for (const [name, test] of Object.entries(cases)) {
    if (wanted.length && !wanted.includes(name)) continue;
    complaints.length = 0;
    const begun = Date.now();
    try {
      await test();
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
  await close();
}
process.exit(failed ? 1 : 0);
