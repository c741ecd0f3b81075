// Colours as numbers: every text token on every ground it stands on (WCAG 2, 4.5), and every pair of fills for readers who see two
// of the three primaries (Machado 2009, severity 1; CIE76, 15). A token that breaks one of them is refused here.
import { readFileSync } from 'node:fs';

const css = readFileSync(new URL('../src/styles.css', import.meta.url), 'utf8');
const block = start => { const from = css.indexOf(start); return css.slice(from, css.indexOf('\n}', from)); };
const read = text => Object.fromEntries([...text.matchAll(/--([\w-]+):(#[0-9a-f]{3,8})\b/g)].map(([, name, value]) => [name, value]));
const light = read(block(':root {')), themes = { light, dark: { ...light, ...read(block(':root[data-theme=dark] {')) } };

const rgb = hex => { const h = hex.length === 4 ? [...hex.slice(1)].map(c => c + c).join('') : hex.slice(1, 7); return [0, 2, 4].map(i => parseInt(h.slice(i, i + 2), 16) / 255); };
const linear = c => c.map(v => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
const luminance = hex => { const [r, g, b] = linear(rgb(hex)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const times = (m, v) => m.map(row => row.reduce((sum, k, i) => sum + k * v[i], 0));
const seen = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
function lab(hex, matrix) {
  const v = times(matrix, linear(rgb(hex))).map(x => Math.min(1, Math.max(0, x)));
  const [x, y, z] = times([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]], v);
  const f = t => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 * t + 16) / 116), [a, b, c] = [f(x / 0.95047), f(y), f(z / 1.08883)];
  return [116 * b - 16, 500 * (a - b), 200 * (b - c)];
}
const distance = (a, b, m) => { const p = lab(a, m), q = lab(b, m); return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]); };

const problems = [];
for (const [name, t] of Object.entries(themes)) {
  const grounds = ['canvas', 'surface', 'sunken', 'raised', 'hover'];
  const pairs = [...['text', 'muted'].flatMap(x => [...grounds, 'past-bg'].map(g => [x, g])), ...grounds.map(g => ['faint', g]), ...['done', 'running', 'warn', 'bad', 'dim', 'past'].flatMap(x => [[x, x + '-bg'], [x, 'canvas'], [x, 'surface']]), ['on-ink', 'ink'], ['focus', 'canvas']];
  for (const [x, g] of pairs) {
    const is = ratio(t[x], t[g]);
    if (!(is >= 4.5)) problems.push(`${name}: ${x} on ${g} has ${is.toFixed(2)}, not 4.5`);
  }
  const fills = ['done-f', 'running-f', 'warn-f', 'bad-f', 'dim-f'];
  for (const [eye, matrix] of Object.entries(seen)) for (const [i, a] of fills.entries()) for (const b of fills.slice(i + 1)) {
    const is = distance(t[a], t[b], matrix);
    if (!(is >= 15)) problems.push(`${name}, ${eye}: ${a} and ${b} are ${is.toFixed(1)} apart, not 15`);
  }
}
for (const problem of problems) console.log(problem);
process.exit(problems.length ? 1 : 0);
