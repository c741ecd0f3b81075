// Private to workload.c: playbooks. What their tools answer stands in the command (tool.c):
//   ok VALUE                    VALUE, JSON, is the result
//   fail N KIND [then VALUE]    the first N tries fail, retryable when KIND is timeout
//   page P of N                 {items, more}
//   big N                       {size, text} with a text of N bytes
#ifndef CAIRN_TEST_SIM_WORKLOAD_NET_H
#define CAIRN_TEST_SIM_WORKLOAD_NET_H

#define BOOK(name, workload)                                                                                           \
    "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: " name ", path: sim/" name ", version: '1'}\n"          \
    "workload: {" workload "}\nworkflow:\n"
#define TASK(command) "tool: {kind: shell, cmds: \"" command "\"}"
#define RULES(rules) "spec: {policy: {rules: [" rules "]}}"
#define TRY(attempts, delay)                                                                                           \
    "{when: \"{{ output.error.retryable }}\", then: {do: retry, attempts: " attempts                                   \
    ", backoff: exponential, delay: " delay "}}"

// clang-format off
static const char net_child_text[] = BOOK("child", "x: 1")
    "  - {step: c1, " TASK("ok {{ x + 1 }}") ", next: {arcs: [{step: c2}]}}\n"
    "  - {step: c2, " TASK("ok {{ c1 * 10 }}") "}\n";

// Exclusive arcs: the first that holds, by what a step gave and by what was set.
static const char net_line_text[] = BOOK("line", "limit: 2")
    "  - step: a\n"
    "    " TASK("ok {{ limit }}") "\n"
    "    set: {ctx.seen: \"{{ a + 1 }}\"}\n"
    "    next: {arcs: [{step: wrong, when: \"{{ ctx.seen == 2 }}\"}, {step: b, when: \"{{ ctx.seen == 3 }}\", "
        "args: {from: \"{{ a }}\"}}, {step: wrong}]}\n"
    "  - {step: wrong, tool: {kind: noop}}\n"
    "  - step: b\n"
    "    tool: [{name: one, kind: shell, cmds: \"ok {{ args.from }}\"}, {name: two, kind: noop}, {name: three, "
        "kind: shell, cmds: \"ok {{ one + 5 }}\"}]\n"
    "    next: {arcs: [{step: guarded, when: \"{{ b == 7 }}\"}]}\n"
    "  - step: guarded\n"
    "    spec: {policy: {admit: {mode: exclusive, rules: [{when: \"{{ limit > 2 }}\", then: {allow: true}}, "
        "{else: {then: {allow: false}}}]}}}\n"
    "    " TASK("ok 1") "\n";

// Tries with a limit, in each of two runs of the same task; what fails for good is routed.
static const char net_retry_text[] = BOOK("tries", "")
    "  - step: fetch\n"
    "    tool:\n"
    "      - {name: get, kind: shell, cmds: \"fail 2 timeout then 41\", " RULES(TRY("3", "0.5") ", {else: "
        "{then: {do: continue, set: {ctx.got: \"{{ output.data + 1 }}\"}}}}") "}\n"
    "      - {name: more, kind: noop, " RULES("{when: \"{{ ctx.twice is defined }}\", then: {do: break}}, "
        "{else: {then: {do: jump, to: get, set: {ctx.twice: true}}}}") "}\n"
    "    next: {arcs: [{step: hopeless}]}\n"
    "  - step: hopeless\n"
    "    tool: {kind: shell, cmds: \"fail 9 timeout\", " RULES(TRY("2", "0.2") ", {when: \"{{ output.status == "
        "'error' }}\", then: {do: fail}}") "}\n"
    "    next: {arcs: [{step: never, when: \"{{ event.name == 'step.done' }}\"}, {step: mend, when: \"{{ "
        "event.name == 'step.failed' }}\", args: {why: \"{{ event.error.kind }}\"}}]}\n"
    "  - {step: never, tool: {kind: noop}}\n"
    "  - {step: mend, " TASK("ok '{{ args.why }}'") ", set: {ctx.mended: \"{{ mend }}\"}}\n";

// Inclusive arcs and the step where they come together (C-48): once, after all of them.
static const char net_barrier_text[] = BOOK("barrier", "")
    "  - step: start\n"
    "    tool: {kind: noop}\n"
    "    next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c, when: \"{{ false }}\"}]}\n"
    "  - {step: a, " TASK("ok 1") ", next: {arcs: [{step: join, args: {from_a: \"{{ a }}\"}}]}}\n"
    "  - {step: b, " TASK("ok 2") ", next: {arcs: [{step: b2, args: {n: \"{{ b }}\"}}]}}\n"
    "  - {step: b2, " TASK("ok {{ args.n + 3 }}") ", next: {arcs: [{step: join, args: {from_b: \"{{ b2 }}\"}}]}}\n"
    "  - {step: c, tool: {kind: noop}, next: {arcs: [{step: join}]}}\n"
    "  - {step: join, " TASK("ok {{ args.from_a + args.from_b }}") ", set: {ctx.joined: \"{{ join }}\"}}\n";

// A parallel loop with two tasks and tries in each iteration, then one that may lose some of them.
static const char net_loop_text[] = BOOK("loop", "rows: [3, 1, 4]")
    "  - step: each\n"
    "    loop: {in: \"{{ rows }}\", iterator: n, spec: {mode: parallel, max_in_flight: 2}}\n"
    "    tool:\n"
    "      - {name: take, kind: shell, cmds: \"fail 1 timeout then {{ iter.n }}\", " RULES(TRY("2", "0.1") ", "
        "{else: {then: {do: continue, set: {iter.got: \"{{ output.data }}\"}}}}") "}\n"
    "      - {name: twice, kind: shell, cmds: \"ok {{ iter.got * 2 }}\"}\n"
    "    next: {arcs: [{step: some, when: \"{{ event.name == 'loop.done' }}\", set: {ctx.sum: \"{{ each.results "
        "| sum }}\"}}]}\n"
    "  - step: some\n"
    "    spec: {policy: {failure: {mode: best_effort}}}\n"
    "    loop: {in: \"{{ rows }}\", iterator: n, spec: {mode: parallel, max_in_flight: 3}}\n"
    "    tool: {name: maybe, kind: shell, cmds: \"fail {{ iter.n % 2 }} unknown then {{ iter.n }}\"}\n"
    "    next: {arcs: [{step: end}]}\n"
    "  - {step: end, tool: {kind: noop}}\n";

// Jumps within a step, with variables of the iteration and of the run.
static const char net_pages_text[] = BOOK("pages", "")
    "  - step: pages\n"
    "    tool:\n"
    "      - {name: init, kind: noop, " RULES("{else: {then: {do: continue, set: {iter.page: 1, ctx.seen: 0}}}}") "}\n"
    "      - {name: fetch, kind: shell, cmds: \"page {{ iter.page }} of 3\", " RULES("{else: {then: {do: "
        "continue, set: {ctx.seen: \"{{ ctx.seen + output.data.items }}\", iter.more: \"{{ output.data.more "
        "}}\"}}}}") "}\n"
    "      - {name: again, kind: noop, " RULES("{when: \"{{ iter.more }}\", then: {do: jump, to: fetch, set: "
        "{iter.page: \"{{ iter.page + 1 }}\"}}}, {else: {then: {do: break}}}") "}\n"
    "    next: {arcs: [{step: done, set: {ctx.total: \"{{ ctx.seen }}\"}}]}\n"
    "  - {step: done, tool: {kind: noop}}\n";

// A step that is visited again and again, with a loop in each visit.
static const char net_rounds_text[] = BOOK("rounds", "rows: [[1, 2], [], [3, 4, 5]]")
    "  - step: start\n"
    "    tool: {kind: noop}\n"
    "    set: {ctx.at: 0, ctx.sum: 0}\n"
    "    next: {arcs: [{step: inner}]}\n"
    "  - step: inner\n"
    "    loop: {in: \"{{ rows[ctx.at] }}\", iterator: x, spec: {mode: sequential}}\n"
    "    tool: {name: add, kind: shell, cmds: \"ok {{ iter.x }}\", " RULES("{else: {then: {do: continue, set: "
        "{ctx.sum: \"{{ ctx.sum + output.data }}\"}}}}") "}\n"
    "    set: {ctx.at: \"{{ ctx.at + 1 }}\"}\n"
    "    next: {arcs: [{step: inner, when: \"{{ ctx.at < rows | length }}\"}, {step: end}]}\n"
    "  - {step: end, tool: {kind: noop}}\n";

// One branch fails and nobody takes care of it; another loses an iteration; a third goes on to its end.
static const char net_failure_text[] = BOOK("failure", "")
    "  - step: start\n"
    "    tool: {kind: noop}\n"
    "    next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: good}, {step: strict}]}\n"
    "  - {step: bad, " TASK("fail 9 unknown") ", next: {arcs: [{step: good2}]}}\n"
    "  - {step: good, " TASK("ok 1") ", next: {arcs: [{step: good2}]}}\n"
    "  - {step: good2, " TASK("ok 2") "}\n"
    "  - step: strict\n"
    "    loop: {in: \"{{ range(4) | list }}\", iterator: n, spec: {mode: sequential}}\n"
    "    tool: {name: third, kind: shell, cmds: \"fail {{ 9 if iter.n == 2 else 0 }} unknown then {{ iter.n }}\"}\n"
    "    next: {arcs: [{step: caught, when: \"{{ event.name == 'step.failed' }}\"}]}\n"
    "  - {step: caught, " TASK("ok 3") "}\n";

// Waits, time limits of a step and of a task, long delays: crashes, pauses and clocks that are set fall into them.
static const char net_times_text[] = BOOK("times", "")
    "  - step: start\n"
    "    tool: {kind: noop}\n"
    "    next: {spec: {mode: inclusive}, arcs: [{step: nap}, {step: slow}, {step: many}]}\n"
    "  - step: nap\n"
    "    tool: [{name: sleep, kind: wait, seconds: 3}, {name: go, kind: shell, cmds: \"ok 1\", timeout: 5}]\n"
    "  - step: slow\n"
    "    spec: {policy: {lifecycle: {timeout_s: 4}}}\n"
    "    tool: {name: never, kind: shell, cmds: \"fail 99 timeout\", " RULES(TRY("50", "1")) "}\n"
    "    next: {arcs: [{step: late, when: \"{{ event.name == 'step.failed' }}\"}]}\n"
    "  - {step: late, " TASK("ok 1") "}\n"
    "  - step: many\n"
    "    spec: {policy: {lifecycle: {timeout_s: 30}, failure: {mode: best_effort}}}\n"
    "    loop: {in: \"{{ range(4) | list }}\", iterator: n, spec: {mode: parallel, max_in_flight: 3}}\n"
    "    tool: {name: try, kind: shell, cmds: \"fail {{ iter.n }} timeout then 1\", " RULES(TRY("5", "2")) "}\n";

static const char net_calls_text[] = BOOK("calls", "")
    "  - step: start\n"
    "    tool: {kind: noop}\n"
    "    next: {spec: {mode: inclusive}, arcs: [{step: one}, {step: each}]}\n"
    "  - {step: one, tool: {kind: playbook, path: book, input: {x: 4}}, set: {ctx.one: \"{{ one }}\"}}\n"
    "  - step: each\n"
    "    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2}}\n"
    "    tool: {name: call, kind: playbook, path: book, input: {x: \"{{ iter.n }}\"}}\n";

// Results, a collection and variables that are kept beside the log.
static const char net_big_text[] = BOOK("big", "")
    "  - step: make\n"
    "    " TASK("big 50000") "\n"
    "    set: {ctx.text: \"{{ make.text }}\"}\n"
    "    next: {arcs: [{step: each, args: {copy: \"{{ make.text }}\"}}]}\n"
    "  - step: each\n"
    "    loop: {in: \"{{ [make.text, make.text ~ 'y'] }}\", iterator: t, spec: {mode: sequential}}\n"
    "    tool: {name: size, kind: shell, cmds: \"ok {{ iter.t | length + args.copy | length }}\"}\n"
    "    next: {arcs: [{step: end, when: \"{{ ctx.text | length == 50000 }}\"}]}\n"
    "  - {step: end, tool: {kind: noop}, set: {ctx.text: \"{{ each.results | sum }}\"}}\n";
// clang-format on

#endif
