// The one table of commands and flags. Parsing, --help, `cairn help` and "did you mean" all read it, so they cannot
// disagree; completion and man pages can be made from it too.
//
//   cairn [flags] COMMAND [flags] [targets] [-- words]
//
// Flags are known by one name everywhere: --store means the same in every command that takes it. A command lists the
// flags it takes; those of FLAG_GLOBAL belong to all.
#ifndef CAIRN_CLI_ARGS_H
#define CAIRN_CLI_ARGS_H

#include "base/arena.h"
#include "base/error.h"
#include "term/term.h"

// X(name, long name, letter, value name or NULL for a switch, choices or "", help)
#define FLAG_LIST(X)                                                                                                   \
    X(HELP, "help", 'h', NULL, "", "show how a command is used")                                                       \
    X(VERSION, "version", 0, NULL, "", "print the version")                                                            \
    X(COLOR, "color", 0, "WHEN", "auto|always|never", "colours")                                                       \
    X(ASCII, "ascii", 0, NULL, "", "ASCII instead of ✓ ● ◌")                                                           \
    X(QUIET, "quiet", 'q', NULL, "", "errors only on stderr")                                                          \
    X(VERBOSE, "verbose", 'v', NULL, "", "more on stderr: live output of steps; twice: diagnostics")                   \
    X(PROFILE, "profile", 0, "NAME", "", "settings of [profile.NAME] in the config files")                             \
    X(NO_CONFIG_FILE, "no-config-file", 0, NULL, "", "read no config files")                                           \
    X(NO_CONFIG_ENV, "no-config-env", 0, NULL, "", "take no settings from CAIRN_* variables")                          \
    X(STORE, "store", 0, "URL", "",                                                                                    \
      "sqlite:PATH, files:DIR, postgres://..., bundle:FILE or memory: (default: $CAIRN_STORE, else below "             \
      "~/.local/state)")                                                                                               \
    X(RESULTS, "results", 0, "PLACE", "",                                                                              \
      "large results of playbooks that want it: nats://HOST:PORT/BUCKET, or a JSON file with url and secrets")         \
    X(TENANT, "tenant", 0, "ID", "", "tenant of the run (default: default)")                                           \
    X(PROJECT, "project", 0, "ID", "", "project of the run (default: default)")                                        \
    X(ENVIRONMENT, "environment", 0, "ID", "", "environment of the run (default: default)")                            \
    X(OUTPUT, "output", 'o', "FORMAT", "", "what is printed on stdout")                                                \
    X(FIELDS, "fields", 0, "A,B", "", "only these fields")                                                             \
    X(TIME, "time", 0, "STYLE", "relative|iso|unix", "how tables show times (default: relative)")                      \
    X(RUN_ID, "run-id", 0, "ID", "", "id of the run; an unfinished run of that id goes on")                            \
    X(SET, "set", 0, "K=V", "", "an input (fork, rerun: or STEP.output); V is JSON when it parses as JSON, else text") \
    X(INPUT, "input", 0, "FILE", "", "inputs from a JSON or YAML file, - is stdin; --set wins")                        \
    X(ARGUMENTS, "arguments", 0, "TEXT", "", "$ARGUMENTS of the run (or words after --)")                              \
    X(PROGRESS, "progress", 0, "HOW", "auto|tree|plain|json|none", "live progress")                                    \
    X(EXIT_ON_WAIT, "exit-on-wait", 0, NULL, "", "exit 13 when the run is paused or waits for a person")               \
    X(APPROVE, "approve", 0, "STEP", "", "answer this approval with yes (repeat)")                                     \
    X(APPROVE_ALL, "approve-all", 0, NULL, "", "answer every approval with yes")                                       \
    X(ON_INTERRUPT, "on-interrupt", 0, "WHAT", "pause|cancel|kill|detach",                                             \
      "what the first ^C does (default: pause; of a server's run: detach)")                                            \
    X(RETENTION, "artifact-retention", 0, "LIST", "", "how long files of steps are kept, by kind: report=7d,default=30d") \
    X(EXPIRED, "expired", 0, NULL, "", "only artifacts whose time is over")                                            \
    X(LIMITS, "limits", 0, "LIST", "", "what one run may come to: events=N, bytes, segments, iterations, sqlBytes")     \
    X(CONTAINERS, "containers", 0, "FILE", "", "file that says who runs containers (default: nobody)")                  \
    X(FETCH, "fetch", 0, "FILE", "", "file that says where tasks may send requests (default: nowhere)")               \
    X(MAX_STEPS, "max-steps", 0, "N", "", "steps that a document may have, up to 100000 (default: 10000)")             \
    X(PLUGIN, "plugin", 0, "FILE", "", "a shared object with kinds of steps (repeat)")                                 \
    X(CONFINE, "confine", 0, "LEVEL", "none|auto|basic|files|full",                                                    \
      "what steps are kept from (default: none); a level that the kernel has not refuses the step")                    \
    X(SECRETS, "secrets", 0, "FILE", "",                                                                               \
      "providers of secret://PROVIDER/NAME (JSON); with it env: and file: are refused")                                \
    X(CREDENTIALS, "credentials", 0, "FILE", "", "credentials of the tasks of playbooks, by name (JSON or YAML)")      \
    X(SETTINGS, "settings", 0, "FILE", "", "settings of the service, as in [serve]: stronger than it (JSON or YAML)")  \
    X(TOOLS, "tools", 0, "DIR", "", "executables that are further tools of playbooks")                                 \
    X(LISTEN, "listen", 0, "ADDRESS", "", "where to listen: HOST:PORT or unix:PATH (repeat; default: 127.0.0.1:7117)") \
    X(HOST, "host", 0, "NAME", "", "a further name that requests may address the service by (repeat)")                 \
    X(TLS_CERT, "tls-cert", 0, "FILE", "", "certificate chain, PEM")                                                   \
    X(TLS_KEY, "tls-key", 0, "FILE", "", "its key, PEM")                                                               \
    X(INSECURE, "insecure", 0, NULL, "", "listen without TLS where other machines can reach it")                       \
    X(PAGE_DIR, "page-dir", 0, "DIR", "", "read the web page from there (default: what the binary carries)")            \
    X(OPEN, "open", 0, NULL, "", "print an address with a ticket for one sign-in, and open it in the browser")          \
    X(NO_LOCAL_STEPS, "no-local-steps", 0, NULL, "", "no step runs here: all go to workers")                           \
    X(TOKEN_FILE, "token-file", 0, "FILE", "",                                                                         \
      "file that holds the token (default: $CAIRN_TOKEN); serve: where the first one is put")                          \
    X(ROUTE, "route", 0, "KIND=POOL", "", "steps of this kind (* = all) go to workers of that pool (repeat)")          \
    X(LEASE, "lease", 0, "DURATION", "", "a worker that is silent for so long is taken for dead (default: 30s)")       \
    X(MAX_RUNS, "max-runs", 0, "N", "", "runs in flight at once, of all tenants; more wait in their queues")           \
    X(DRAIN, "drain", 0, "SECONDS", "", "how long running steps may go on after the signal to stop (default: 30)")     \
    X(DETACH, "detach", 0, NULL, "", "with --server: print the id of the new run and leave it to the server")          \
    X(REASON, "reason", 0, "TEXT", "", "why; kept in the decision record")                                             \
    X(DIFF_STEPS, "steps", 0, NULL, "", "compare documents, inputs and paths")                                         \
    X(OUTPUTS, "outputs", 0, NULL, "", "compare outputs")                                                              \
    X(TIMING, "timing", 0, NULL, "", "compare durations")                                                              \
    X(STEP, "step", 0, "STEP", "", "this step only")                                                                   \
    X(FIELD, "field", 0, "K=V", "", "a field of the answer (repeat)")                                                  \
    X(NO_RUN, "no-run", 0, NULL, "", "only record the decision; do not go on with the run here")                       \
    X(EMERGENCY, "emergency", 0, NULL, "", "EMERGENCY_STOP: kill at once (needs --reason)")                            \
    X(FORCE, "force", 0, NULL, "", "do it all the same (signals: payload.force)")                                      \
    X(ID, "id", 0, "UUID", "", "signal id: a repeated id is decided once")                                             \
    X(JSON, "json", 0, "JSON", "", "payload of the signal")                                                            \
    X(STATUS, "status", 0, "S,..", "", "PENDING, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED")                       \
    X(PLAN, "plan", 0, "PLAN", "", "lists: the id of a plan or workflow; fork, rerun: a FILE to run instead, or same") \
    X(FROM, "from", 0, "STEP", "", "run this step again, and all that hang on it (repeat)")                            \
    X(DOWNSTREAM, "downstream", 0, NULL, "", "with everything that hangs on the step")                                 \
    X(EDIT, "edit", 0, NULL, "", "change inputs and outputs in $VISUAL or $EDITOR")                                    \
    X(EDIT_FILE, "edit-file", 0, "FILE", "", "the same from a YAML or JSON file: inputs: {}, outputs: {}")             \
    X(SINCE, "since", 0, "WHEN", "", "not older than 2h, 7d, or a time like 2026-02-11T17:00:00Z")                     \
    X(TAG, "tag", 0, "TAG", "", "runs of documents with this tag (repeat: with all of them)")                          \
    X(FOR, "for", 0, "QUERY", "", "what is waited for: status=COMPLETED, step/load=done, any query (repeat: all)")     \
    X(TIMEOUT, "timeout", 0, "DURATION", "", "at most so long: 30s, 5m (exit 12)")                                     \
    X(ANY, "any", 0, NULL, "", "the first of them is enough")                                                          \
    X(FOLLOW, "follow", 'f', NULL, "", "go on with what comes, until the run ends; the exit code is the run's")        \
    X(STREAM, "stream", 0, "NAME", "stdout|stderr", "only this stream")                                                \
    X(RAW, "raw", 0, NULL, "", "the records as they are stored, one a line")                                           \
    X(GROUPED, "grouped", 0, NULL, "", "one attempt after the other instead of by time")                               \
    X(TAIL, "tail", 0, "N", "", "only the last N lines")                                                               \
    X(CHILDREN, "children", 0, NULL, "", "with the child runs")                                                        \
    X(LIMIT, "limit", 0, "N", "", "at most so many")                                                                   \
    X(ALL, "all", 0, NULL, "", "all of them")                                                                          \
    X(AS, "as", 0, "WORDS", "run|nodes|noetl", "tell the run in another vocabulary")                                   \
    X(TYPE, "type", 0, "GLOB", "", "events whose type matches, e.g. 'Step*'")                                          \
    X(AFTER, "after", 0, "SEQ", "", "events with a higher number")                                                     \
    X(LEDGER, "ledger", 0, NULL, "", "also the ledger beside the log: decisions and facts without an event")           \
    X(SOUND, "sound", 0, NULL, "", "prove what can never happen: dead steps, joins, conditions, approvals")            \
    X(TEMPLATE, "template", 0, "ID", "", "the example to begin with (default: hello)")                                 \
    X(RESULT, "result", 0, "STEP=JSON", "", "the output of a step, as if it had run (repeat)")                         \
    X(TO, "to", 0, "FORMAT", "plan|nodes", "the format to convert to")                                                 \
    X(WRITE, "write", 'w', NULL, "", "write the result into the file")                                                 \
    X(CHECK, "check", 0, NULL, "", "only look: exit 20 and show what is different")                                    \
    X(STRICT, "strict", 0, NULL, "", "warnings (crashtest: effects that may happen twice) count as errors")            \
    X(UPDATE, "update", 0, NULL, "", "write golden files instead of comparing with them")                              \
    X(FILTER, "filter", 0, "TEXT", "", "only tests whose file or name holds TEXT")                                     \
    X(REDACT, "redact", 0, NULL, "", "values become placeholders of their type")                                       \
    X(BODIES, "bodies", 0, "HOW", "mock|sandbox", "mock: nothing runs; sandbox: steps run in a temporary directory")   \
    X(OUT, "out", 0, "FILE", "", "write to this file instead of stdout (artifacts get: a directory)")                  \
    X(SANDBOX, "sandbox", 0, NULL, "", "steps really run, in a temporary directory per world")                         \
    X(SEED, "seed", 0, "N", "", "which worlds or cases are drawn (default: 1)")                         \
    X(MAX, "max", 0, "N", "", "at most so many worlds, with --double so many more; 0 is all")                          \
    X(DOUBLE, "double", 0, NULL, "", "kill a second time, during and after recovery")                                  \
    X(WORLD, "world", 0, "N[.M]", "", "play one world again and tell what happens")                                    \
    X(ON, "on", 0, "HOSTS", "", "hosts with commas between them, the first is compared with (default: embedded,sqlite,files)") \
    X(FAULTS, "faults", 0, "N", "", "kill each host so often in every case (default: 0)")                              \
    X(CASES, "cases", 0, "N", "", "of a document without a test: so many cases are drawn, by --seed (default: 10)")    \
    X(LIKE, "like", 0, "RUN", "", "what steps gave and people sent as in this run, with its document")                 \
    X(LOCAL, "local", 0, NULL, "", "in cairn.toml of the project instead of the user's file")                          \
    X(FIX, "fix", 0, NULL, "", "put right what can be put right without a decision")                                   \
    X(SIGN, "sign", 0, "KEYFILE", "", "sign with this private key (`cairn key new`)")                                  \
    X(PUBKEY, "pubkey", 0, "FILE", "", "the public key of who must have signed it")                                    \
    X(KEEP, "keep", 0, "AGE", "", "runs that ended less than 30d, 12h, ... ago stay")                                  \
    X(KEEP_LAST, "keep-last", 0, "N", "", "the newest N runs stay, whatever their age")                                \
    X(YES, "yes", 0, NULL, "", "do it without asking")                                                                 \
    X(DRY_RUN, "dry-run", 0, NULL, "", "only show what would be done")                                                 \
    X(NO_CHILDREN, "no-children", 0, NULL, "", "without the child runs")                                               \
    X(SERVER, "server", 0, "URL", "",                                                                                  \
      "instead of a store, a server: http://HOST:PORT, https://HOST or unix:PATH (default: $CAIRN_SERVER)")            \
    X(CERT, "cert", 0, "FILE", "", "certificate that is shown to the server (PEM, with its chain)")                       \
    X(CERT_KEY, "key", 0, "FILE", "", "its private key (PEM)")                                                         \
    X(CA_FILE, "ca-file", 0, "FILE", "", "certificates of who may have signed the server's (default: the system's)")   \
    X(POOL, "pool", 0, "NAME", "", "the pool of workers (default: default)")                                           \
    X(KINDS, "kinds", 0, "A,B", "", "only steps of these kinds: shell, exec, script, functions, tools of playbooks")   \
    X(CONCURRENCY, "concurrency", 0, "N", "", "so many steps at once; more are queued (default: 64; worker: one a core)") \
    X(QUEUE, "queue", 0, "NAME", "", "with --server: the queue of the server that the run waits in for a place")       \
    X(ROLE, "role", 0, "ROLE", "Operator|Engineer|Admin|System|Worker|Host|Auditor", "what the token may do (repeat)")      \
    X(EXPIRES, "expires", 0, "WHEN", "", "when the token ends: 90d, 12h, or a time like 2027-02-11T17:00:00Z")         \
    X(TEMPORAL, "temporal", 0, "HOST:PORT", "", "a Temporal server: runs are its workflows, steps its activities")      \
    X(NAMESPACE, "namespace", 0, "NAME", "", "of the Temporal server (default: default)")                              \
    X(TARGET, "target", 0, "ADAPTER", "", "who runs it: cairn, temporal, conductor or mock (default: what the document says)") \
    X(TASK_QUEUE, "task-queue", 0, "NAME", "", "of the Temporal server: what the names of queues begin with (default: cairn)") \
    X(API_KEY_FILE, "api-key-file", 0, "FILE", "", "a file with the key that the Temporal server asks for; needs --tls") \
    X(TLS, "tls", 0, NULL, "", "the Temporal server speaks TLS")                                                       \
    X(CONDUCTOR, "conductor", 0, "URL", "", "the Conductor that carries attempts, with the path: http://127.0.0.1:8080/api") \
    X(DELIVERY, "delivery", 0, "HOW", "poll|mirror", "poll: steps begin when Conductor brings them; mirror: at once (default: poll)") \
    X(ON_TERMINATE, "on-terminate", 0, "WHAT", "cancel|recover", "a run that was terminated in Conductor (default: cancel)") \
    X(TASK_TYPE, "task-type", 0, "KIND=TYPE", "", "steps of this kind are executed by workers of Conductor of that type (repeat)") \
    X(SHOW_OUTPUT, "show-output", 0, "BYTES", "", "outputs up to so many bytes are shown in Conductor (default: 0, none)") \
    X(PATIENCE, "patience", 0, "DURATION", "", "a step that waits so long for a Conductor that is away is given back (default: 60s)") \
    X(SILENT, "silent", 0, "DURATION", "", "another host that has not polled for so long is gone (default: 60s)")      \
    X(SITE, "site", 0, "NAME", "", "names the server in Conductor; the same for all its hosts (default: --server)")  \
    X(NAME, "name", 0, "NAME", "", "what the worker is called in lists (default: host and process)")                   \
    X(CORRELATION, "correlation", 0, "TEXT", "", "what a step that waits tells the event from others of its name by")  \
    X(RATE, "rate", 0, "N", "", "so many runs a second (default: 10)")                                                 \
    X(ALLOW, "allow", 0, "WHAT", "read|start|signal", "what the assistant may do: read, start, signal (default: read)") \
    X(CRON, "cron", 0, "EXPR", "", "five fields (minute hour day month weekday) or six; names, L, W, #, @daily")       \
    X(EVERY, "every", 0, "DURATION", "", "an interval instead: 15m, 6h, 1d")                                           \
    X(AT, "at", 0, "TIME", "", "once: 2027-02-11T17:00:00, in the zone unless it has an offset")                       \
    X(ZONE, "zone", 0, "ZONE", "", "a name of the time zone database, such as Europe/Berlin (default: UTC)")           \
    X(JITTER, "jitter", 0, "DURATION", "", "each run begins up to so much later")                                      \
    X(CATCHUP, "catchup", 0, "DURATION", "", "times that were missed run late when they are no older (default: 1h)")   \
    X(UNTIL, "until", 0, "TIME", "", "not after this time")                                                            \
    X(PARALLEL, "parallel", 0, "N", "", "so many runs at a time (default: 1)")                                         \
    X(GAP, "gap", 0, "WHAT", "run|skip", "a fixed time that the clock leaves out in spring (default: run once, after it)")\
    X(FOLD, "fold", 0, "WHAT", "once|twice|skip", "a fixed time that the clock shows twice in autumn (default: once)") \
    X(OVERLAP, "overlap", 0, "WHAT", "skip|queue|cancel|allow", "a time while a run goes on (default: skip)")          \
    X(ORDER, "order", 0, "WHICH", "oldest|newest", "which come first (default: oldest)")                               \
    X(PAUSED, "paused", 0, NULL, "", "it fires when it is resumed, not before")                                        \
    X(ONLY, "only", 0, "W,..", "", "only these workloads: w1 w2 w3 w4 w5 w6 scale list")

enum flag {
    FLAG_NONE = 0,
#define X(name, text, letter, value, choices, help) FLAG_##name,
    FLAG_LIST(X)
#undef X
        FLAG_COUNT
};

struct flag_info {
    const char *name;
    char letter;
    const char *value;   // NULL: a switch
    const char *choices; // "a|b|c", or "" when anything goes
    const char *help;
};
const struct flag_info *flag_info(enum flag flag);
bool flag_is_global(enum flag flag);

struct cli;

enum { COMMAND_MAX = 128 };

struct command {
    const char *topic;    // heading in the overview; "" = not shown to people
    const char *name;     // "run", "log verify"
    const char *synopsis; // positional arguments: "FILE", "[RUN...]"
    const char *summary;  // one line
    const char *formats;  // of -o, first is the default on a terminal; NULL: no -o
    size_t word_min, word_max;
    enum flag flags[40]; // ends in FLAG_NONE
    int (*run)(struct cli *cli);
};
const struct command *command_at(size_t index); // NULL past the end
const struct command *command_find(struct str name);
bool command_takes(const struct command *command, enum flag flag);

// What a flag is when it is not given: a setting. Text NULL: none.
struct flag_default {
    struct str text;
    const char *origin; // "$CAIRN_STORE", "/home/me/cairn.toml:3"
    unsigned rank;      // lower is stronger; of one table all are the same
};

struct flag_value {
    enum flag flag;
    struct str text; // NUL after its end
};

struct args {
    const struct command *command; // NULL: none given
    struct str *words;             // positional arguments, NUL after their ends
    size_t word_count;
    struct str *rest; // after --
    size_t rest_count;
    bool has_rest;
    struct flag_value *flags;
    size_t flag_count;
    struct flag_default defaults[FLAG_COUNT];
    struct str message, hint; // of a usage error
};

// EXIT_OK, or EXIT_USAGE with message and hint set. Flags read before the fault are in `flags` even then.
int args_parse(struct args *args, int argc, char **argv, struct arena *arena);
bool args_has(const struct args *args, enum flag flag);
size_t args_count(const struct args *args, enum flag flag);
// The last one given, else its setting, else `otherwise`. args_has asks for the command line alone.
struct str args_text(const struct args *args, enum flag flag, const char *otherwise);
// The next value of a flag that may be repeated. *cursor starts at 0; false at the end.
bool args_next(const struct args *args, enum flag flag, size_t *cursor, struct str *out);
// Whole number in [min, max], `otherwise` when the flag is absent. False: usage error, message and hint set.
bool args_int(struct args *args, enum flag flag, int64_t min, int64_t max, int64_t otherwise, struct arena *arena,
              int64_t *out);

// `text` as an element of "a|b|c": its index, or SIZE_MAX.
size_t choice_index(struct str text, const char *choices);

#endif
