// The table of commands, first half: documents, runs, what one sees of them. A new command is a row here, or in
// commands_more.c, and a file beside it.
#include "cli/command_rows.h"

#include <string.h>

static const struct command commands[] = {
    {"Author",
     "example",
     "[ID]",
     "print an example, or list them",
     "The examples are in the binary; each runs as it is.",
     "cairn example\ncairn example joins\ncairn example hello > hello.json && cairn run hello.json",
     "text|json|name",
     0,
     1,
     {FLAG_OUTPUT},
     command_example},
    {"Author",
     "new",
     "NAME",
     "begin a document from an example",
     "Writes NAME.yaml or NAME.json, with that name in it, and the files it needs. Nothing is ever overwritten: a file "
     "that exists is a conflict (exit 6). `cairn example` lists the templates.",
     "cairn new nightly --template fan-out\ncairn new flows/release --template approval",
     NULL,
     1,
     1,
     {FLAG_TEMPLATE},
     command_new},
    {"Author",
     "init",
     "[DIR]",
     "make a directory for documents of your own",
     "Writes cairn.toml, flows/hello.yaml and schemas/ for editors that check YAML and JSON while you type. Files that "
     "exist are kept.",
     "cairn init flows-of-mine && cairn run flows-of-mine/flows/hello.yaml",
     NULL,
     0,
     1,
     {FLAG_NONE},
     command_init},
    {"Author",
     "validate",
     "FILE...",
     "check documents without running them",
     "Reports every fault at once, each with its place, cause and a hint. Exits 3 when there are errors. Tests "
     "(*.test.yaml) are checked against their documents.\n\n--sound looks at all runs that are possible and reports "
     "steps that can never run, joins that can never fire, conditions that never hold, approvals that nobody is "
     "ever asked for, and more, each with the outcomes and values that show it. What it reports is proved, for runs "
     "in which nobody skips steps by hand; what it cannot decide it does not report.",
     "cairn validate plan.json flows/*.yaml\ncairn validate --sound examples/joins.yaml\ncairn validate --strict "
     "flow.yaml -o json",
     "text|json|jsonl",
     1,
     SIZE_MAX,
     {FLAG_STRICT, FLAG_SOUND, FLAG_PLUGIN, FLAG_TOOLS, FLAG_OUTPUT},
     command_validate},
    {"Author",
     "fmt",
     "FILE...",
     "lay documents out in the canonical way",
     "JSON gets the order of fields of the reference and two blanks; YAML is indented by two and keeps its "
     "comments, its order and its texts. The result is compiled and compared with the original before anything is "
     "printed or written: a document that cannot be laid out without changing its meaning is left as it is.",
     "cairn fmt examples/joins.yaml\ncairn fmt -w flows/*.yaml\ncairn fmt --check flows/*.yaml",
     NULL,
     1,
     SIZE_MAX,
     {FLAG_WRITE, FLAG_CHECK},
     command_fmt},
    {"Author",
     "plan",
     "FILE",
     "show what a document will do, before it does it",
     "Compiles the document and prints its planRef (uri, sha256, versions), the inputs it needs, whom it asks, the "
     "files and secrets it reads, its steps by layers, and the longest way through by declared limits. --out writes "
     "the canonical plan as JSON, of a node workflow too when a plan can say the same.",
     "cairn plan examples/demo.yaml\ncairn plan examples/fan-out.yaml --out plan.json\n"
     "cairn plan examples/hello.json -o json | jq .planRef",
     "text|json|yaml",
     1,
     1,
     {FLAG_OUT, FLAG_OUTPUT},
     command_plan},
    {"Author",
     "render",
     "FILE | RUN[/STEP][@SEQ]",
     "show steps with every reference replaced",
     "Of a document with --set and --result, or of a run with what its steps have put out. Values that a shell gets in "
     "variables are shown as such, conditions with every comparison, secrets by name only; what is not known yet "
     "stays as <reference>.",
     "cairn render examples/joins.yaml --result seed='{\"status\": \"ok\", \"rows\": 7}'\n"
     "cairn render examples/child.yaml --step load --set region=east\ncairn render @last/report",
     "text|json|yaml",
     1,
     1,
     {STORE_FLAGS, FLAG_STEP, FLAG_SET, FLAG_INPUT, FLAG_ARGUMENTS, FLAG_RESULT, FLAG_OUTPUT},
     command_render},
    {"Author",
     "convert",
     "FILE --to plan|nodes",
     "turn a plan into a node workflow, or back",
     "Prints the document in the other format. Everything that the other format cannot say is listed with its place "
     "(exit 3), and then nothing is printed. Converted and back, a document compiles to the same program.",
     "cairn convert examples/pause.json --to nodes\ncairn convert flow.yaml --to plan > flow.json",
     NULL,
     1,
     1,
     {FLAG_TO},
     command_convert},
    {"Author",
     "schema",
     "[plan | nodes | event TYPE | signal TYPE] [PATH]",
     "explain a field of a document, an event or a signal",
     "PATH is the names of fields as documents have them, with dots; lists are passed through. Without words the "
     "schemas are listed. -o json prints the schema itself (JSON Schema 2020-12), for editors and validators.",
     "cairn schema plan steps.retry.backoff\ncairn schema nodes nodes.loop_group\ncairn schema event StepFailed "
     "payload\n"
     "cairn schema plan -o json > plan.schema.json",
     "text|json",
     0,
     3,
     {FLAG_OUTPUT},
     command_schema},
    {"Author",
     "graph",
     "FILE | RUN[@SEQ]",
     "draw a document, or a run with the states of its steps",
     "Layers from top to bottom, loops as boxes around their steps, conditions and trigger rules in the box. Steps "
     "of a wide fan-out that are alike share one box (--all shows each). A picture that does not fit the terminal "
     "becomes a list. With a run the states are shown, at any moment of the past with RUN@SEQ.\n\n-o svg stands "
     "alone (light and dark, tooltips); -o dot and -o mermaid are for other programs; -o ascii is text without "
     "box-drawing characters.",
     "cairn graph examples/joins.yaml\ncairn graph @last\ncairn graph flow.yaml -o svg > flow.svg\n"
     "cairn graph flow.yaml -o dot | dot -Tpdf > flow.pdf",
     "text|ascii|dot|mermaid|svg",
     1,
     1,
     {STORE_FLAGS, FLAG_ALL, FLAG_OUTPUT},
     command_graph},
    {"Test",
     "test",
     "[FILE | DIR...]",
     "play the tests of documents, with mocked steps in virtual time",
     "Plays every case of every *.test.yaml (below the current directory when none is named) on the real engine: no "
     "process is started, time is virtual, ids are the same every time. A case says what the steps give back, what "
     "people answer and send, and what shall be the case in the end; what differs is told with its place in the "
     "test file. docs/format/test.md describes the format. Exits 20 when a test fails, 3 when a file is invalid.",
     "cairn test\n"
     "cairn test flows/ --filter 'fails twice'\n"
     "cairn test release.test.yaml --update\n"
     "cairn test -o junit > report.xml",
     "text|json|junit",
     0,
     1000,
     {FLAG_UPDATE, FLAG_FILTER, FLAG_OUTPUT},
     command_test},
    {"Test",
     "test record",
     "RUN",
     "make a test of a run that has been",
     "Writes a test file with every result of the run as a mock (by step, iteration and attempt), every answer and "
     "signal at its place, and what came out as expectations, and plays it once. Secrets were masked when the run "
     "was recorded; --redact also replaces inputs and outputs by placeholders of the same shape, except those that "
     "decide a condition.",
     "cairn test record @last --out release.test.yaml\ncairn test record nightly-2026-02-11 --redact",
     NULL,
     1,
     1,
     {STORE_FLAGS, FLAG_REDACT, FLAG_OUT},
     command_test_record},
    {"Test",
     "crashtest",
     "FILE | TEST",
     "kill a run at every boundary, recover it, and tell what could happen twice",
     "Plays the document (or each case of a test file) on a disk in memory and kills it before and after every "
     "append, sync, dispatch and answer: each boundary is a world of its own, in which what was not synced is lost "
     "or torn. Each is recovered to the end and must come out as the undisturbed run: same status, path and "
     "outputs, nothing lost, no finished step run again, a log that verifies. Steps are mocked, so nothing happens "
     "outside; with --sandbox they really run, in a temporary directory per world.\n\nWhat no engine can promise is "
     "that a step that is running when the machine dies does not run again. The report lists each effect that could "
     "happen twice, with the place and the world to play again.\n\nExits 20 when something was lost or differs; "
     "with --strict also when an effect can happen twice whose step neither uses CAIRN_IDEMPOTENCY_KEY nor is "
     "marked idempotent in the test file.",
     "cairn crashtest release.yaml\n"
     "cairn crashtest release.test.yaml --double --strict\n"
     "cairn crashtest release.yaml --world 17\n"
     "cairn crashtest release.yaml --sandbox --max 50",
     "text|json",
     1,
     1,
     {FLAG_SANDBOX, FLAG_SEED, FLAG_MAX, FLAG_DOUBLE, FLAG_STRICT, FLAG_WORLD, FLAG_FILTER, FLAG_OUTPUT},
     command_crashtest},
    {"Run",
     "run",
     "FILE [-- ARGUMENTS...]",
     "run a plan, a node workflow or a playbook to its end",
     "Runs the document in this process and records every step in the store before it acts. Kill it at any moment: "
     "the same command with the same --run-id, or `cairn recover`, goes on where it stopped, and finished steps do "
     "not run again.\n\n"
     "The first ^C lets running steps finish and leaves the run PAUSED, the second cancels it, the third kills it. "
     "FILE may be - for stdin.\n\n"
     "With --server the document and all that it names are sent there, the run goes on there, and what is shown here "
     "is the same; ^C only stops showing it (--on-interrupt), and --detach does not begin to.",
     "cairn run examples/hello.json\n"
     "cairn run release.yaml --set env=staging --approve deploy\n"
     "cairn run nightly.yaml --run-id nightly-2026-02-11 --progress plain\n"
     "cairn run build.json --progress none -o json | jq .status",
     "json|yaml|name",
     1,
     1,
     {STORE_FLAGS,      FLAG_PROJECT,      FLAG_ENVIRONMENT, FLAG_RUN_ID,       FLAG_SET,
      FLAG_INPUT,       FLAG_ARGUMENTS,    FLAG_PROGRESS,    FLAG_EXIT_ON_WAIT, FLAG_APPROVE,
      FLAG_APPROVE_ALL, FLAG_ON_INTERRUPT, FLAG_REASON,      FLAG_PLUGIN,       FLAG_CONFINE,
      FLAG_SECRETS,     FLAG_CREDENTIALS,  FLAG_TOOLS,       FLAG_DETACH,       FLAG_OUTPUT},
     command_run},
    {"Run",
     "worker",
     "",
     "execute steps of a server",
     "Asks a server for steps of its pool, executes them here with the confinement and the secrets of this machine, "
     "and hands in what came out. A server that is away is waited for. Engines that share a store each hand out the "
     "tasks of their own runs: --server takes several, with commas between them, and divides --concurrency among them. "
     "The first ^C or SIGTERM takes nothing new and "
     "lets running steps finish; the second stops them and gives them back. Functions of plugins are executed "
     "without a process, and asked for by name. Any program can be a worker: docs/format/worker.md.",
     "cairn worker --server http://127.0.0.1:7777 --pool builds --concurrency 8\n"
     "CAIRN_TOKEN=$(cat worker.token) cairn worker --server unix:/run/cairn.sock --confine auto",
     NULL,
     0,
     0,
     {FLAG_SERVER, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_POOL, FLAG_KINDS, FLAG_CONCURRENCY, FLAG_NAME, FLAG_PLUGIN,
      FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_TOOLS},
     command_worker},
    {"Run",
     "recover",
     "[RUN...]",
     "go on with unfinished runs that nobody owns",
     "Takes over every run whose process is gone and drives all of them to their end. Runs that are paused or wait for "
     "a person are listed and left alone. Imported runs are passed over unless they are named. Exits 10 when a run "
     "ended "
     "FAILED.",
     "cairn recover\ncairn recover nightly-2026-02-11 --store files:./runs",
     "table|json|jsonl|name",
     0,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_PROGRESS, FLAG_ON_INTERRUPT, FLAG_PLUGIN, FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS,
      FLAG_TOOLS, FLAG_OUTPUT},
     command_recover},
    {"Run",
     "serve",
     "",
     "the engine as a service over HTTP",
     "Takes up every run of the store that has not ended, and runs what it is asked to, for many tenants, until it is "
     "stopped. The first start writes a token to a file that only you can read. Listens on 127.0.0.1:7117; on an "
     "address "
     "that other machines can reach it insists on TLS.\n\n"
     "SIGTERM or ^C: no new runs, steps that run may finish (--drain), here or at workers; the second one cuts them "
     "off. Either way "
     "the "
     "next start goes on where this one stopped. SIGHUP: certificates and tokens are read again.\n\n"
     "Steps run here, unless --route sends them to workers (`cairn worker`).\n\n"
     "The table [serve] of the config files has what flags have not: docs/format/serve.md. `cairn config list` shows "
     "what is "
     "in force, `cairn doctor serve` what is wrong with it.",
     "cairn serve\ncairn serve --listen unix:./cairn.sock --store files:./service",
     NULL,
     0,
     0,
     {FLAG_LISTEN, FLAG_HOST, FLAG_TLS_CERT, FLAG_TLS_KEY, FLAG_INSECURE, FLAG_TOKEN_FILE, FLAG_ROUTE, FLAG_LEASE,
      FLAG_DRAIN, FLAG_MAX_RUNS, FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_TOOLS, FLAG_NO_LOCAL_STEPS,
      FLAG_STORE, FLAG_RESULTS},
     command_serve},

    {"Look",
     "ls",
     "[QUERY]",
     "list runs, newest first",
     "One page (--limit, 50 by default); --all prints every page. QUERY says which runs: field=value, several of them "
     "for all, or, not, parentheses; `cairn help query` has the fields. Quote it when it has < > ( ) or blanks.",
     "cairn ls\ncairn ls --status FAILED --since 7d\ncairn ls status=FAILED 'plan~release' 'took>10m'\n"
     "cairn ls 'created>2h (error=TIMEOUT or step.load=FAILED) not input.env=test'\n"
     "cairn ls -o json --fields runId,status",
     LIST_FORMATS,
     0,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_STATUS, FLAG_PLAN, FLAG_SINCE, FLAG_TAG, FLAG_LIMIT, FLAG_ALL, LIST_FLAGS},
     command_ls},
    {"Look",
     "ps",
     "[QUERY]",
     "runs under way: what they do now, who drives them",
     "Runs that have not ended, newest first, with the steps that run or wait and for how long. A run whose process is "
     "gone is owned by nobody; `cairn recover` goes on with it. --children also shows child runs.",
     "cairn ps\ncairn ps owned=no\ncairn ps -o json --fields runId,doing,owner",
     LIST_FORMATS,
     0,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_CHILDREN, LIST_FLAGS},
     command_ps},
    {"Look",
     "inbox",
     "[QUERY]",
     "approvals that wait for an answer, oldest first",
     "Each with its message, since when it waits, until when, and the command that answers it.",
     "cairn inbox\ncairn inbox plan~release -o json",
     LIST_FORMATS,
     0,
     SIZE_MAX,
     {STORE_FLAGS, LIST_FLAGS},
     command_inbox},
    {"Look",
     "get",
     "RUN[/STEP[#N]][@SEQ]",
     "show one run or one of its steps, now or at any moment",
     "A run: its state, its steps, why it failed. A step: what it was given, what came out, each attempt, the end of "
     "its "
     "log. RUN@12 is the run right after event 12, as everybody would have seen it then.",
     "cairn get @last\ncairn get 3f2a@12\ncairn get @last/load#2\ncairn get @last-failed -o json --fields "
     "status,rootCause",
     "text|wide|json|yaml|name",
     1,
     1,
     {STORE_FLAGS, FLAG_OUTPUT, FLAG_FIELDS, FLAG_TIME},
     command_get},
    {"Look",
     "logs",
     "RUN[/STEP[#N]]",
     "print what the steps of a run wrote",
     "Everything that a process step writes is kept per attempt, with time and stream, secrets masked, up to 16 MiB. "
     "All steps are shown by time, each line behind its step (| stdout, ! stderr); one step alone is shown as it was "
     "written. What is not whole is told on stderr: cut at the limit, or lost because its engine died.\n\n"
     "-f follows a run of any process until it ends and exits like it.",
     "cairn logs @last\ncairn logs @last/build#2 --stream stderr\ncairn logs -f @last --since 5m\n"
     "cairn logs @last -o jsonl | jq -r .text",
     "text|jsonl",
     1,
     1,
     {STORE_FLAGS, FLAG_FOLLOW, FLAG_SINCE, FLAG_STREAM, FLAG_GROUPED, FLAG_TAIL, FLAG_CHILDREN, FLAG_EXIT_ON_WAIT,
      FLAG_TIME, FLAG_OUTPUT},
     command_logs},
    {"Look",
     "events",
     "RUN[/STEP][@SEQ]",
     "print the log of a run",
     "-o jsonl (or --raw) prints the records exactly as they are stored, one a line. --as tells the same run in the "
     "words of another contract. RUN@12 ends with event 12; -f goes on until the run ends and exits like it.",
     "cairn events @last\ncairn events @last --type 'Step*' --step build\ncairn events -f @last --ledger\n"
     "cairn events @last@12 -o jsonl",
     LIST_FORMATS,
     1,
     1,
     {STORE_FLAGS, FLAG_AS, FLAG_TYPE, FLAG_STEP, FLAG_AFTER, FLAG_SINCE, FLAG_LIMIT, FLAG_LEDGER, FLAG_FOLLOW,
      FLAG_RAW, FLAG_EXIT_ON_WAIT, LIST_FLAGS},
     command_events},
    {"Look",
     "trace",
     "RUN[@SEQ]",
     "print a run as OpenTelemetry spans",
     "The body of an OTLP/HTTP request: a span for the run, one for each attempt of a step, linked to the attempts and "
     "runs before them. It is made of the log, with ids that follow from the run's: the same today and tomorrow. What "
     "has not ended has no span yet. Steps find the trace that they belong to in TRACEPARENT. docs/format/observe.md "
     "has the attributes.",
     "cairn trace @last\ncairn trace @last -o jsonl > spans.jsonl",
     "json|jsonl|yaml",
     1,
     1,
     {STORE_FLAGS, FLAG_OUTPUT},
     command_trace},
    {"Look",
     "why",
     "RUN[/STEP][@SEQ]",
     "explain why a step or a run is in the state it is in",
     "Running, waiting, skipped, failed, retrying, held: now, or right after event SEQ, from the log alone. Shows the "
     "dependencies with the event that decided each, the trigger rule, every comparison of the condition with its "
     "value, "
     "the attempts and why there is or is not another one, gates, loops, pauses and decisions by people. Every "
     "decision is "
     "asked again with the state of its time: `proof` says whether the answers are those of the log. -o json is "
     "described "
     "in docs/format/why.md.",
     "cairn why @last\ncairn why @last/deploy\ncairn why 3f2a/load@12\ncairn why @last/poll[2].fetch -o json",
     "text|json|yaml",
     1,
     1,
     {STORE_FLAGS, FLAG_OUTPUT, FLAG_TIME},
     command_why},
    {"Look",
     "diff",
     "A[@SEQ] B[@SEQ]",
     "show where two runs, or two moments of a run, differ",
     "Document, inputs, path (what ran, was skipped, failed; attempts), outputs by path inside their JSON, durations "
     "with the "
     "biggest change first, and the event where the two part. Steps are aligned by their path; the order in which "
     "parallel "
     "steps happened to go does not count, nor do durations, unless --timing is all that is asked for. A result that "
     "was "
     "taken over is the same result. Exits 20 when there is a difference.",
     "cairn diff nightly-1 nightly-2\ncairn diff @last-failed @last --steps\ncairn diff 3f2a@12 3f2a\n"
     "cairn diff 3f2a 77c1 --timing -o json",
     "text|json|yaml",
     2,
     2,
     {STORE_FLAGS, FLAG_DIFF_STEPS, FLAG_OUTPUTS, FLAG_TIMING, FLAG_OUTPUT},
     command_diff},
    {"Look",
     "watch",
     "[RUN]",
     "follow a run that goes on in another process",
     "The live tree of `cairn run`, from the log: of the newest run when none is given. Ends with the run, and with "
     "its "
     "exit code; ^C or q leave the run alone. On a terminal p asks it to pause.",
     "cairn watch\ncairn watch 3f2a --progress plain\ncairn watch nightly-2026-02-11 --exit-on-wait",
     NULL,
     0,
     1,
     {STORE_FLAGS, FLAG_PROGRESS, FLAG_EXIT_ON_WAIT},
     command_watch},
    {"Look",
     "top",
     "[RUN]",
     "runs, steps and logs on the whole screen, with keys to act",
     "Arrows move, enter opens, esc goes back, ? shows every key. Acting needs no server: each key is the command of "
     "the "
     "same name, with its decision record. A run that nobody drives goes on in a process of its own.",
     "cairn top\ncairn top @last",
     NULL,
     0,
     1,
     {STORE_FLAGS},
     command_top},
    {"Look",
     "wait",
     "RUN...",
     "wait until runs end, or until something is so",
     "Without --for: until all of them have ended; exits like the first that did not complete. With --for: until the "
     "query holds (exit 0); a run that ends before exits with its own code, 6 when it COMPLETED. Says so when nobody "
     "drives a run; with --exit-on-wait that, a pause or an approval ends the wait (exit 13).",
     "cairn wait @last --timeout 5m\ncairn wait 3f2a --for step/load=done\ncairn wait a-run b-run --any -o name",
     LIST_FORMATS,
     1,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_FOR, FLAG_TIMEOUT, FLAG_ANY, FLAG_EXIT_ON_WAIT, LIST_FLAGS},
     command_wait},
    {"Look",
     "artifacts ls",
     "RUN[/STEP][@SEQ]",
     "list the files that steps left behind",
     "Each with its size and whether it is still what it was when its step ended; exits 8 when one is not.",
     "cairn artifacts ls @last\ncairn artifacts ls @last/build -o json",
     LIST_FORMATS,
     1,
     1,
     {STORE_FLAGS, LIST_FLAGS},
     command_artifacts_ls},
    {"Look",
     "artifacts cat",
     "RUN[/STEP][@SEQ] NAME...",
     "print files that steps left behind",
     "NAME is as `cairn artifacts ls` shows it, or its last part. A file that has changed since is refused (exit 8).",
     "cairn artifacts cat @last report.txt",
     NULL,
     2,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_FORCE},
     command_artifacts_cat},
    {"Look",
     "artifacts get",
     "RUN[/STEP][@SEQ] [NAME...]",
     "copy files that steps left behind",
     "All of them, or those that are named, into this directory or the one of --out; prints where they are now. "
     "Nothing "
     "is written over without --force.",
     "cairn artifacts get @last --out results\ncairn artifacts get @last/build app.tar",
     NULL,
     1,
     SIZE_MAX,
     {STORE_FLAGS, FLAG_OUT, FLAG_FORCE},
     command_artifacts_get},

};
const struct command_rows rows_of_documents_and_runs = {commands, ARRAY_COUNT(commands)};

const struct command *command_at(size_t index)
{
    const struct command_rows *first = &rows_of_documents_and_runs, *second = &rows_of_acts_and_stores;
    if (index < first->count) return &first->items[index];
    index -= first->count;
    return index < second->count ? &second->items[index] : NULL;
}

const struct command *command_find(struct str name)
{
    const struct command *command;
    for (size_t i = 0; (command = command_at(i)); i++)
        if (str_is(name, command->name)) return command;
    return NULL;
}

bool command_takes(const struct command *command, enum flag flag)
{
    if (flag_is_global(flag)) return true;
    for (size_t i = 0; i < ARRAY_COUNT(command->flags) && command->flags[i] != FLAG_NONE; i++)
        if (command->flags[i] == flag) return true;
    return false;
}
