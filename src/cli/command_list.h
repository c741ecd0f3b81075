// The table of commands, by topic; included by commands.h and commands.c. A command is a row here, a section of
// help/TOPIC.txt, and command_FUNCTION in a file beside this one.
//
// COMMAND(topic: heading in the overview, "" = not shown to people; function; name; positional arguments; summary;
//         formats of -o, the first is the default on a terminal, NULL: no -o; words at least, at most; flags...)
// SPELLING is the same for a further name of a function that a row above has.

// ---- Author
COMMAND("Author", example, "example", "[ID]", "print an example, or list them", "text|json|name", 0, 1, FLAG_OUTPUT)
COMMAND("Author", new, "new", "NAME", "begin a document from an example", NULL, 1, 1, FLAG_TEMPLATE)
COMMAND("Author", init, "init", "[DIR]", "make a directory for documents of your own", NULL, 0, 1, FLAG_NONE)
COMMAND("Author", validate, "validate", "FILE...", "check documents without running them", "text|json|jsonl", 1,
        SIZE_MAX, FLAG_STRICT, FLAG_SOUND, FLAG_MAX_STEPS, FLAG_PLUGIN, FLAG_TOOLS, FLAG_OUTPUT)
COMMAND("Author", fmt, "fmt", "FILE...", "lay documents out in the canonical way", NULL, 1, SIZE_MAX, FLAG_WRITE,
        FLAG_CHECK, FLAG_MAX_STEPS)
COMMAND("Author", plan, "plan", "FILE", "show what a document will do, before it does it", "text|json|yaml", 1, 1,
        FLAG_OUT, FLAG_MAX_STEPS, FLAG_OUTPUT)
COMMAND("Author", render, "render", "FILE | RUN[/STEP][@SEQ]", "show steps with every reference replaced",
        "text|json|yaml", 1, 1, STORE_FLAGS, FLAG_STEP, FLAG_SET, FLAG_INPUT, FLAG_ARGUMENTS, FLAG_RESULT, FLAG_MAX_STEPS,
        FLAG_OUTPUT)
COMMAND("Author", convert, "convert", "FILE --to plan|nodes", "turn a plan into a node workflow, or back", NULL, 1, 1,
        FLAG_TO, FLAG_MAX_STEPS)
COMMAND("Author", schema, "schema", "[plan | nodes | event TYPE | signal TYPE] [PATH]",
        "explain a field of a document, an event or a signal", "text|json", 0, 3, FLAG_OUTPUT)
COMMAND("Author", graph, "graph", "FILE | RUN[@SEQ]", "draw a document, or a run with the states of its steps",
        "text|ascii|dot|mermaid|svg", 1, 1, STORE_FLAGS, FLAG_ALL, FLAG_MAX_STEPS, FLAG_OUTPUT)

// ---- Test
COMMAND("Test", test, "test", "[FILE | DIR...]", "play the tests of documents, with mocked steps in virtual time",
        "text|json|junit", 0, 1000, FLAG_UPDATE, FLAG_FILTER, FLAG_MAX_STEPS, FLAG_OUTPUT)
COMMAND("Test", test_record, "test record", "RUN", "make a test of a run that has been", NULL, 1, 1, STORE_FLAGS,
        FLAG_REDACT, FLAG_OUT)
COMMAND("Test", crashtest, "crashtest", "FILE | TEST",
        "kill a run at every boundary, recover it, and tell what could happen twice", "text|json", 1, 1, FLAG_SANDBOX,
        FLAG_SEED, FLAG_MAX, FLAG_DOUBLE, FLAG_STRICT, FLAG_WORLD, FLAG_FILTER, FLAG_MAX_STEPS, FLAG_OUTPUT)
COMMAND("Test", equiv, "equiv", "FILE | TEST...", "play a document on several hosts and compare what they record",
        "text|json|junit", 0, 100000, STORE_FLAGS, FLAG_ON, FLAG_FAULTS, FLAG_CASES, FLAG_SEED, FLAG_LIKE, FLAG_FILTER,
        FLAG_MAX_STEPS, FLAG_OUTPUT)

// ---- Run
COMMAND("Run", run, "run", "FILE [-- ARGUMENTS...]", "run a plan, a node workflow or a playbook to its end",
        "json|yaml|name", 1, 1, STORE_FLAGS, FLAG_PROJECT, FLAG_ENVIRONMENT, FLAG_RUN_ID, FLAG_SET, FLAG_INPUT,
        FLAG_ARGUMENTS, FLAG_PROGRESS, FLAG_EXIT_ON_WAIT, FLAG_APPROVE, FLAG_APPROVE_ALL, FLAG_ON_INTERRUPT,
        FLAG_REASON, FLAG_MAX_STEPS, FLAG_CONCURRENCY, FLAG_LIMITS, FLAG_RETENTION, FLAG_PLUGIN, FLAG_CONFINE, FLAG_SECRETS,
        FLAG_CREDENTIALS, FLAG_CONTAINERS, FLAG_TOOLS, FLAG_QUEUE, FLAG_DETACH, FLAG_TARGET, FLAG_TEMPORAL, FLAG_NAMESPACE, FLAG_TASK_QUEUE,
        FLAG_OUTPUT)
COMMAND("Run", worker, "worker", "", "execute steps of a server", NULL, 0, 0, FLAG_SERVER, FLAG_TOKEN_FILE,
        FLAG_CA_FILE, FLAG_CERT, FLAG_CERT_KEY, FLAG_POOL, FLAG_KINDS, FLAG_CONCURRENCY, FLAG_NAME, FLAG_TEMPORAL,
        FLAG_NAMESPACE, FLAG_TASK_QUEUE, FLAG_API_KEY_FILE, FLAG_TLS, FLAG_PLUGIN, FLAG_CONFINE, FLAG_SECRETS,
        FLAG_CREDENTIALS, FLAG_CONTAINERS, FLAG_TOOLS, FLAG_LIMITS, FLAG_FETCH)
COMMAND("Run", host_conductor, "host conductor", "", "execute steps of a server, carried by a Conductor server", NULL, 0, 0,
        FLAG_SERVER, FLAG_CONDUCTOR, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_CERT, FLAG_CERT_KEY, FLAG_POOL, FLAG_KINDS,
        FLAG_CONCURRENCY, FLAG_NAME, FLAG_DELIVERY, FLAG_TASK_TYPE, FLAG_ON_TERMINATE, FLAG_SHOW_OUTPUT, FLAG_PATIENCE,
        FLAG_SILENT, FLAG_SITE, FLAG_PLUGIN, FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_CONTAINERS, FLAG_TOOLS, FLAG_LIMITS,
        FLAG_FETCH)
COMMAND("Run", recover, "recover", "[RUN...]", "go on with unfinished runs that nobody owns", "table|json|jsonl|name",
        0, SIZE_MAX, STORE_FLAGS, FLAG_PROGRESS, FLAG_ON_INTERRUPT, FLAG_CONCURRENCY, FLAG_LIMITS, FLAG_RETENTION, FLAG_PLUGIN,
        FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_CONTAINERS, FLAG_TOOLS, FLAG_OUTPUT)
COMMAND("Run", serve, "serve", "", "the engine as a service over HTTP", NULL, 0, 0, FLAG_LISTEN, FLAG_HOST,
        FLAG_TLS_CERT, FLAG_TLS_KEY, FLAG_INSECURE, FLAG_OPEN, FLAG_PAGE_DIR, FLAG_TOKEN_FILE, FLAG_ROUTE, FLAG_LEASE,
        FLAG_DRAIN, FLAG_MAX_RUNS, FLAG_CONCURRENCY,
        FLAG_MAX_STEPS, FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS, FLAG_TOOLS, FLAG_NO_LOCAL_STEPS, FLAG_TEMPORAL,
        FLAG_NAMESPACE, FLAG_TASK_QUEUE, FLAG_SETTINGS, FLAG_STORE, FLAG_RESULTS)
COMMAND("Run", ui, "ui", "", "open the web page of a store or a server in the browser", NULL, 0, 0, STORE_FLAGS,
        FLAG_LISTEN, FLAG_PAGE_DIR)

// ---- Look
COMMAND("Look", ls, "ls", "[QUERY]", "list runs, newest first", LIST_FORMATS, 0, SIZE_MAX, STORE_FLAGS, FLAG_STATUS,
        FLAG_PLAN, FLAG_SINCE, FLAG_TAG, FLAG_LIMIT, FLAG_ALL, LIST_FLAGS)
COMMAND("Look", ps, "ps", "[QUERY]", "runs under way: what they do now, who drives them", LIST_FORMATS, 0, SIZE_MAX,
        STORE_FLAGS, FLAG_CHILDREN, LIST_FLAGS)
COMMAND("Look", inbox, "inbox", "[QUERY]", "approvals that wait for an answer, oldest first", LIST_FORMATS, 0, SIZE_MAX,
        STORE_FLAGS, LIST_FLAGS)
COMMAND("Look", get, "get", "RUN[/STEP[#N]][@SEQ]", "show one run or one of its steps, now or at any moment",
        "text|wide|json|yaml|name", 1, 1, STORE_FLAGS, FLAG_OUTPUT, FLAG_FIELDS, FLAG_TIME)
COMMAND("Look", logs, "logs", "RUN[/STEP[#N]]", "print what the steps of a run wrote", "text|jsonl", 1, 1, STORE_FLAGS,
        FLAG_FOLLOW, FLAG_SINCE, FLAG_STREAM, FLAG_GROUPED, FLAG_TAIL, FLAG_CHILDREN, FLAG_EXIT_ON_WAIT, FLAG_TIME,
        FLAG_OUTPUT)
COMMAND("Look", events, "events", "RUN[/STEP][@SEQ]", "print the log of a run", LIST_FORMATS, 1, 1, STORE_FLAGS,
        FLAG_AS, FLAG_TYPE, FLAG_STEP, FLAG_AFTER, FLAG_SINCE, FLAG_LIMIT, FLAG_LEDGER, FLAG_FOLLOW, FLAG_RAW,
        FLAG_EXIT_ON_WAIT, LIST_FLAGS)
COMMAND("Look", trace, "trace", "RUN[@SEQ]", "print a run as OpenTelemetry spans", "json|jsonl|yaml", 1, 1, STORE_FLAGS,
        FLAG_OUTPUT)
COMMAND("Look", why, "why", "RUN[/STEP][@SEQ]", "explain why a step or a run is in the state it is in",
        "text|json|yaml", 1, 1, STORE_FLAGS, FLAG_OUTPUT, FLAG_TIME)
COMMAND("Look", diff, "diff", "A[@SEQ] B[@SEQ]", "show where two runs, or two moments of a run, differ",
        "text|json|yaml", 2, 2, STORE_FLAGS, FLAG_DIFF_STEPS, FLAG_OUTPUTS, FLAG_TIMING, FLAG_OUTPUT)
COMMAND("Look", watch, "watch", "[RUN]", "follow a run that goes on in another process", NULL, 0, 1, STORE_FLAGS,
        FLAG_PROGRESS, FLAG_EXIT_ON_WAIT)
COMMAND("Look", top, "top", "[RUN]", "runs, steps and logs on the whole screen, with keys to act", NULL, 0, 1,
        STORE_FLAGS)
COMMAND("Look", wait, "wait", "RUN...", "wait until runs end, or until something is so", LIST_FORMATS, 1, SIZE_MAX,
        STORE_FLAGS, FLAG_FOR, FLAG_TIMEOUT, FLAG_ANY, FLAG_EXIT_ON_WAIT, LIST_FLAGS)
COMMAND("Look", artifacts_ls, "artifacts ls", "RUN[/STEP][@SEQ]", "list the files that steps left behind", LIST_FORMATS,
        1, 1, STORE_FLAGS, LIST_FLAGS)
COMMAND("Look", artifacts_cat, "artifacts cat", "RUN[/STEP][@SEQ] NAME...", "print files that steps left behind", NULL,
        2, SIZE_MAX, STORE_FLAGS, FLAG_FORCE)
COMMAND("Look", artifacts_get, "artifacts get", "RUN[/STEP][@SEQ] [NAME...]", "copy files that steps left behind", NULL,
        1, SIZE_MAX, STORE_FLAGS, FLAG_OUT, FLAG_FORCE)

// ---- Act
COMMAND("Act", signal, "pause", "RUN", "let running steps finish, start no more", SIGNAL_FORMATS, 1, 1, STORE_FLAGS,
        FLAG_REASON, FLAG_ID, FLAG_OUTPUT)
SPELLING("Act", signal, "resume", "RUN", "go on with a paused run", SIGNAL_FORMATS, 1, 1, STORE_FLAGS, FLAG_REASON,
        FLAG_ID, FLAG_OUTPUT, DRIVE_FLAGS)
SPELLING("Act", signal, "cancel", "RUN", "stop a run for good", SIGNAL_FORMATS, 1, 1, STORE_FLAGS, FLAG_REASON,
        FLAG_EMERGENCY, FLAG_ID, FLAG_OUTPUT, FLAG_PROGRESS)
COMMAND("Act", retry, "retry", "RUN[/STEP]", "run a failed step again, or a run that has ended as a new run",
        SIGNAL_FORMATS, 1, 1, STORE_FLAGS, FLAG_STEP, FLAG_DOWNSTREAM, FLAG_DRY_RUN, FLAG_REASON, FLAG_FORCE, FLAG_ID,
        FLAG_OUTPUT, DRIVE_FLAGS)
COMMAND("Act", rerun, "rerun", "RUN", "run a document again, from the start or from a step", SIGNAL_FORMATS, 1, 1,
        STORE_FLAGS, FORK_FLAGS, FLAG_OUTPUT, FLAG_EXIT_ON_WAIT, DRIVE_FLAGS)
COMMAND("Act", fork, "fork", "RUN[@SEQ]", "go on from any event of a run, as a new run", SIGNAL_FORMATS, 1, 1,
        STORE_FLAGS, FORK_FLAGS, FLAG_OUTPUT, FLAG_EXIT_ON_WAIT, DRIVE_FLAGS)
SPELLING("Act", signal, "skip", "RUN/STEP", "skip a step that has not ended, or one that is held", SIGNAL_FORMATS, 1, 1,
        STORE_FLAGS, FLAG_STEP, FLAG_REASON, FLAG_ID, FLAG_OUTPUT, DRIVE_FLAGS)
SPELLING("Act", signal, "approve", "RUN[/STEP]", "answer an approval with yes", SIGNAL_FORMATS, 1, 1, STORE_FLAGS,
        FLAG_STEP, FLAG_REASON, FLAG_FIELD, FLAG_ID, FLAG_OUTPUT, DRIVE_FLAGS)
SPELLING("Act", signal, "reject", "RUN[/STEP]", "answer an approval with no", SIGNAL_FORMATS, 1, 1, STORE_FLAGS,
        FLAG_STEP, FLAG_REASON, FLAG_FIELD, FLAG_ID, FLAG_OUTPUT, DRIVE_FLAGS)
SPELLING("Act", signal, "signal", "RUN TYPE", "send any signal", SIGNAL_FORMATS, 2, 2, STORE_FLAGS, FLAG_STEP,
        FLAG_REASON, FLAG_JSON, FLAG_FORCE, FLAG_FIELD, FLAG_ID, FLAG_OUTPUT, DRIVE_FLAGS)
COMMAND("Act", bulk, "bulk", "retry | cancel | pause | resume | skip | approve | reject QUERY",
        "one signal to all runs that a query means", LIST_FORMATS, 1, SIZE_MAX, SERVER_FLAGS, FLAG_STEP, FLAG_REASON, FLAG_ID,
        FLAG_RATE, FLAG_LIMIT, FLAG_DRY_RUN, FLAG_YES, LIST_FLAGS)

// ---- Service: what a server has besides runs
COMMAND("Service", service_list, "token ls", "", "tokens of the tenant, without their secrets", LIST_FORMATS, 0, 0, SERVER_FLAGS,
        LIST_FLAGS)
COMMAND("Service", token_new, "token new", "NAME --role ROLE", "make a token; its text is shown once", "text|json|yaml", 1, 1,
        SERVER_FLAGS, FLAG_ROLE, FLAG_EXPIRES, FLAG_POOL, FLAG_PROJECT, FLAG_ENVIRONMENT, FLAG_OUT, FLAG_OUTPUT)
COMMAND("Service", token_revoke, "token revoke", "TOKEN", "let nobody in with a token any more", NULL, 1, 1, SERVER_FLAGS)
COMMAND("Service", token_rotate, "token rotate", "TOKEN", "exchange a token for one with the same rights",
        "text|json|yaml", 1, 1, SERVER_FLAGS, FLAG_EXPIRES, FLAG_OUT, FLAG_OUTPUT)
COMMAND("Service", token_bootstrap, "token bootstrap", "", "make a token with access to the store alone", NULL, 0, 0,
        FLAG_STORE, FLAG_OUT)
SPELLING("Service", service_list, "queue ls", "", "queues: what runs, what waits", LIST_FORMATS, 0, 0, SERVER_FLAGS,
         LIST_FLAGS)
COMMAND("Service", service_call, "queue get", "QUEUE", "one queue", "text|json|yaml", 1, 1, SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "queue set", "QUEUE", "make or change a queue", "text|json|yaml", 1, 1, SERVER_FLAGS,
         FLAG_SET, FLAG_OUTPUT)
SPELLING("Service", service_call, "queue pause", "QUEUE", "start nothing of a queue any more", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "queue resume", "QUEUE", "start the runs of a queue again", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "queue rm", "QUEUE", "remove a queue in which nothing waits", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "limits get", "", "how many runs the tenant may have, and has", "text|json|yaml", 0, 0,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "limits set", "", "change the limits of the tenant", "text|json|yaml", 0, 0,
         SERVER_FLAGS, FLAG_SET, FLAG_OUTPUT)
SPELLING("Service", service_list, "limit ls", "", "limits of steps: who works, who waits", LIST_FORMATS, 0, 0, SERVER_FLAGS,
         LIST_FLAGS)
SPELLING("Service", service_call, "limit get", "LIMIT", "one limit of steps, and who has its places", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_call, "limit set", "LIMIT", "say how many attempts work at once, how many begin in a time",
         "text|json|yaml", 1, 1, SERVER_FLAGS, FLAG_SET, FLAG_OUTPUT)
SPELLING("Service", service_call, "limit rm", "LIMIT", "leave a limit of steps to the documents", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
COMMAND("Service", schedule_ls, "schedule ls", "", "schedules: when, what next, what last", LIST_FORMATS, 0, 0, SERVER_FLAGS,
        LIST_FLAGS)
COMMAND("Service", schedule_add, "schedule add", "NAME FILE", "start a document by itself at its times",
        "text|json|yaml", 2, 2, SERVER_FLAGS, FLAG_CRON, FLAG_EVERY, FLAG_AT, FLAG_ZONE, FLAG_GAP, FLAG_FOLD, FLAG_JITTER,
        FLAG_CATCHUP, FLAG_OVERLAP, FLAG_UNTIL, FLAG_SET, FLAG_INPUT, FLAG_QUEUE, FLAG_PROJECT, FLAG_ENVIRONMENT,
        FLAG_PAUSED, FLAG_OUTPUT)
COMMAND("Service", schedule_get, "schedule get", "NAME", "one schedule, with its next times", "text|json|yaml", 1, 1,
        SERVER_FLAGS, FLAG_OUTPUT)
COMMAND("Service", schedule_next, "schedule next", "NAME | EXPR | FILE", "the next times of a schedule or an expression",
        "text|json|yaml", 1, 1, SERVER_FLAGS, FLAG_ZONE, FLAG_GAP, FLAG_FOLD, FLAG_SINCE, FLAG_LIMIT, FLAG_OUTPUT)
COMMAND("Service", schedule_ticks, "schedule ticks", "NAME", "what became of its times, newest first", LIST_FORMATS, 1,
        1, SERVER_FLAGS, FLAG_LIMIT, LIST_FLAGS)
COMMAND("Service", schedule_call, "schedule pause", "NAME", "let a schedule fire no more", "text|json|yaml", 1, 1,
        SERVER_FLAGS, FLAG_REASON, FLAG_OUTPUT)
SPELLING("Service", schedule_call, "schedule resume", "NAME", "let it fire again, from now on", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_REASON, FLAG_OUTPUT)
SPELLING("Service", schedule_call, "schedule rm", "NAME", "remove a schedule; its runs stay", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
COMMAND("Service", schedule_trigger, "schedule trigger", "NAME", "a run of a schedule now", "text|json|yaml|name", 1, 1,
        SERVER_FLAGS, FLAG_SET, FLAG_INPUT, FLAG_REASON, FLAG_OUTPUT)
COMMAND("Service", schedule_backfill, "schedule backfill", "NAME --since TIME --until TIME", "run the times of a range",
        "text|json|yaml", 1, 1, SERVER_FLAGS, FLAG_SINCE, FLAG_UNTIL, FLAG_ORDER, FLAG_LIMIT, FLAG_PARALLEL, FLAG_DRY_RUN,
        FLAG_REASON, FLAG_OUTPUT)
COMMAND("Service", mcp, "mcp", "", "these commands as tools for an assistant (Model Context Protocol)", NULL, 0, 0,
        STORE_FLAGS, FLAG_ALLOW)
COMMAND("Service", event_send, "event send", "NAME", "tell the steps that wait for it that something has happened",
        "text|json|yaml|name", 1, 1, SERVER_FLAGS, FLAG_CORRELATION, FLAG_JSON, FLAG_ID, FLAG_PROJECT, FLAG_ENVIRONMENT,
        FLAG_OUTPUT)
COMMAND("Service", event_ls, "event ls", "[NAME]", "events that came, who has taken them", LIST_FORMATS, 0, 1,
        SERVER_FLAGS, FLAG_LIMIT, LIST_FLAGS)
SPELLING("Service", service_list, "worker ls", "", "workers that were heard of lately", LIST_FORMATS, 0, 0, SERVER_FLAGS,
         LIST_FLAGS)
SPELLING("Service", service_list, "outbox ls", "", "sinks: where they are, what waits for them", LIST_FORMATS, 0, 0,
         SERVER_FLAGS, LIST_FLAGS)
SPELLING("Service", service_call, "outbox rewind", "SINK", "let a sink go on from an earlier event", "text|json|yaml", 1,
         1, SERVER_FLAGS, FLAG_SET, FLAG_REASON, FLAG_OUTPUT)
SPELLING("Service", service_list, "dlq ls", "[SINK]", "events that a sink did not take", LIST_FORMATS, 0, 1, SERVER_FLAGS,
         LIST_FLAGS)
SPELLING("Service", service_call, "dlq redrive", "LETTER | --all SINK", "send dead letters once more", "text|json|yaml",
         1, 1, SERVER_FLAGS, FLAG_ALL, FLAG_REASON, FLAG_OUTPUT)
SPELLING("Service", service_call, "dlq drop", "LETTER", "give a dead letter up", "text|json|yaml", 1, 1, SERVER_FLAGS,
         FLAG_REASON, FLAG_OUTPUT)
SPELLING("Service", service_list, "alert ls", "[RUN]", "what the server wants people to know", LIST_FORMATS, 0, 1,
         SERVER_FLAGS, LIST_FLAGS)
SPELLING("Service", service_call, "alert ack", "ALERT", "say that an alert was seen", "text|json|yaml", 1, 1,
         SERVER_FLAGS, FLAG_OUTPUT)
SPELLING("Service", service_list, "definition ls", "[NAME]", "documents that the server keeps, or versions of one",
         LIST_FORMATS, 0, 1, SERVER_FLAGS, LIST_FLAGS)
SPELLING("Service", service_call, "definition get", "NAME SHA256", "one version of a definition", "text|json|yaml", 2, 2,
         SERVER_FLAGS, FLAG_OUTPUT)
COMMAND("Service", definition_put, "definition put", "NAME FILE", "keep a document at the server", "text|json|yaml", 2,
        2, SERVER_FLAGS, FLAG_OUTPUT)
COMMAND("Service", definition_run, "definition run", "NAME[@VERSION] [-- ARGUMENTS...]", "run a document that the server keeps",
        "json|yaml|name", 1, 1, SERVER_FLAGS, FLAG_PROJECT, FLAG_ENVIRONMENT, FLAG_RUN_ID, FLAG_SET, FLAG_INPUT, FLAG_ARGUMENTS,
        FLAG_PROGRESS, FLAG_EXIT_ON_WAIT, FLAG_APPROVE, FLAG_APPROVE_ALL, FLAG_ON_INTERRUPT, FLAG_REASON, FLAG_QUEUE, FLAG_DETACH,
        FLAG_TARGET, FLAG_OUTPUT)
SPELLING("Service", service_call, "definition approve", "NAME SHA256", "approve a version that another person brought",
         "text|json|yaml", 2, 2, SERVER_FLAGS, FLAG_OUTPUT)

// ---- Prove
COMMAND("Prove", log_verify, "log verify", "[RUN | BUNDLE | --all]", "check the hash chain of runs, or a bundle",
        "text|json", 0, 1, STORE_FLAGS, FLAG_ALL, FLAG_PUBKEY, FLAG_OUTPUT)
COMMAND("Prove", audit_verify, "audit verify", "", "check the chain of decisions that a service recorded", "text|json",
        0, 0, STORE_FLAGS, FLAG_OUTPUT)
COMMAND("Prove", log_replay, "log replay", "RUN", "live a run again from its log and compare", "text|json", 1, 1,
        STORE_FLAGS, FLAG_PLAN, FLAG_MAX_STEPS, FLAG_OUTPUT)
COMMAND("Prove", log_export, "log export", "RUN...", "write runs into one file that proves itself", "text|json", 1,
        SIZE_MAX, STORE_FLAGS, FLAG_OUT, FLAG_SIGN, FLAG_REDACT, FLAG_NO_CHILDREN, FLAG_OUTPUT)
COMMAND("Prove", log_import, "log import", "BUNDLE", "take the runs of a bundle into the store", "text|json", 1, 1,
        STORE_FLAGS, FLAG_PUBKEY, FLAG_OUTPUT)
COMMAND("Prove", key_new, "key new", "", "make a key pair for signing bundles", "text|json", 0, 0, FLAG_OUT,
        FLAG_OUTPUT)
COMMAND("Prove", key_show, "key show", "FILE", "print the id of a key, and its public half", "text|json", 1, 1,
        FLAG_OUTPUT)
COMMAND("Prove", key_sign, "key sign", "FILE", "sign a file: FILE.sig", "text|json", 1, 1, FLAG_SIGN, FLAG_OUTPUT)
COMMAND("Prove", key_verify, "key verify", "FILE", "hold a file against FILE.sig", "text|json", 1, 1, FLAG_PUBKEY,
        FLAG_OUTPUT)

// ---- Store
COMMAND("Store", store_stat, "store stat", "", "what is in the store and where its bytes are", "text|json", 0, 0,
        STORE_FLAGS, FLAG_TIME, FLAG_OUTPUT)
COMMAND("Store", store_gc, "store gc", "", "remove runs whose time is over", "text|json", 0, 0, STORE_FLAGS, FLAG_KEEP,
        FLAG_KEEP_LAST, FLAG_EXPIRED, FLAG_STATUS, FLAG_DRY_RUN, FLAG_CHECK, FLAG_YES, FLAG_REASON, FLAG_OUTPUT)
COMMAND("Store", store_backup, "store backup", "DEST", "copy the store while it is being used", "text|json", 1, 1,
        STORE_FLAGS, FLAG_OUTPUT)
COMMAND("Store", store_restore, "store restore", "BACKUP", "fill an empty store from a backup", "text|json", 1, 1,
        STORE_FLAGS, FLAG_OUTPUT)
COMMAND("Store", store_copy, "store copy", "FROM TO", "copy all runs into another store, byte for byte", "text|json", 2,
        2, FLAG_TENANT, FLAG_OUTPUT)
COMMAND("Store", store_migrate, "store migrate", "", "bring the store to the format of this version", "text|json", 0, 0,
        STORE_FLAGS, FLAG_CHECK, FLAG_OUTPUT)

// ---- Other
COMMAND("Other", bench, "bench", "", "measure this machine: latency, throughput, recovery, size", NULL, 0, 0,
        FLAG_STORE, FLAG_ONLY)
COMMAND("Other", doctor, "doctor", "[CHECK...]", "look for what would hurt later", "text|json", 0, SIZE_MAX,
        STORE_FLAGS, FLAG_FIX, FLAG_OUTPUT)
COMMAND("Other", config_list, "config list", "", "every setting, its value and where it came from", LIST_FORMATS, 0, 0,
        STORE_FLAGS, FLAG_PROJECT, FLAG_ENVIRONMENT, FLAG_PROGRESS, FLAG_ON_INTERRUPT, LIST_FLAGS)
COMMAND("Other", config_get, "config get", "NAME", "print one setting", NULL, 1, 1, FLAG_NONE)
COMMAND("Other", config_set, "config set", "NAME VALUE", "change a setting, for this user or (--local) this project",
        NULL, 2, 2, FLAG_LOCAL)
SPELLING("Other", config_set, "config unset", "NAME", "remove a setting from its file", NULL, 1, 1, FLAG_LOCAL)
COMMAND("Other", config_path, "config path", "", "print where settings are read from", NULL, 0, 0, FLAG_NONE)
COMMAND("Other", context_ls, "context ls", "", "places where runs are, by name", LIST_FORMATS, 0, 0, LIST_FLAGS)
COMMAND("Other", context_use, "context use", "[NAME]", "make a context the default; without a name none is", NULL, 0, 1,
        FLAG_LOCAL)
COMMAND("Other", context_add, "context add", "NAME", "keep a server or a store under a name", NULL, 1, 1, STORE_FLAGS,
        FLAG_LOCAL)
COMMAND("Other", context_rm, "context rm", "NAME", "forget a context", NULL, 1, 1, FLAG_LOCAL)
COMMAND("Other", context_test, "context test", "[NAME]", "ask the server who we are there", NULL, 0, 1, STORE_FLAGS)
COMMAND("Other", login, "login", "", "sign in to a server, at its identity provider", NULL, 0, 0, FLAG_SERVER, FLAG_CA_FILE)
COMMAND("Other", logout, "logout", "", "forget a sign-in", NULL, 0, 0, FLAG_SERVER, FLAG_CA_FILE)
COMMAND("Other", whoami, "whoami", "", "who we are at a server, and what as", NULL, 0, 0, FLAG_SERVER, FLAG_TOKEN_FILE,
        FLAG_CA_FILE)
COMMAND("Other", completion, "completion", "SHELL", "print the completion script of bash, zsh or fish", NULL, 1, 1,
        FLAG_NONE)
COMMAND("Other", man, "man", "", "print the manual page", NULL, 0, 0, FLAG_NONE)
COMMAND("Other", version, "version", "", "print the version", "text|json", 0, 0, FLAG_OUTPUT)
COMMAND("Other", help, "help", "[COMMAND | TOPIC | CODE]", "explain a command, a topic or an error code", NULL, 0, 2,
        FLAG_NONE)

// ---- asked by shells
COMMAND("", complete, "complete", "[-- WORDS...]", "what could come next on a command line; for completion scripts",
        NULL, 0, 0, FLAG_NONE)
