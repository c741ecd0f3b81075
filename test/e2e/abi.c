// Prints the layout of every public struct and the value of every public constant, for test/golden/abi.txt.
#include <cairn/plugin.h>

#include <stdio.h>

#define STRUCT(name) printf("struct %s %zu\n", #name, sizeof(struct name))
#define FIELD(name, field)                                                                                             \
    printf("  %s %zu %zu\n", #field, offsetof(struct name, field), sizeof(((struct name *)0)->field))
#define VALUE(name) printf("%s %d\n", #name, (int)(name))

static void options(void)
{
    STRUCT(cairn_options);
    FIELD(cairn_options, size);
    FIELD(cairn_options, flags);
    FIELD(cairn_options, workers);
    FIELD(cairn_options, processes);
    FIELD(cairn_options, poll_ms);
    FIELD(cairn_options, tenant);
    FIELD(cairn_options, actor);
    FIELD(cairn_options, context);
    FIELD(cairn_options, now);
    FIELD(cairn_options, allocate);
    FIELD(cairn_options, release);
    FIELD(cairn_options, log);
    FIELD(cairn_options, output);
    FIELD(cairn_options, ended);
    FIELD(cairn_options, max_steps);
    STRUCT(cairn_error);
    FIELD(cairn_error, code);
    FIELD(cairn_error, line);
    FIELD(cairn_error, column);
    FIELD(cairn_error, message);
    FIELD(cairn_error, hint);
}

static void functions(void)
{
    STRUCT(cairn_attempt);
    FIELD(cairn_attempt, size);
    FIELD(cairn_attempt, kind);
    FIELD(cairn_attempt, run);
    FIELD(cairn_attempt, step);
    FIELD(cairn_attempt, input);
    FIELD(cairn_attempt, input_len);
    FIELD(cairn_attempt, key);
    FIELD(cairn_attempt, artifacts_dir);
    FIELD(cairn_attempt, logical);
    FIELD(cairn_attempt, engine);
    FIELD(cairn_attempt, timeout_ms);
    FIELD(cairn_attempt, token);
    STRUCT(cairn_result);
    FIELD(cairn_result, size);
    FIELD(cairn_result, answer);
    FIELD(cairn_result, retryable);
    FIELD(cairn_result, output);
    FIELD(cairn_result, output_len);
    FIELD(cairn_result, code);
    FIELD(cairn_result, message);
    FIELD(cairn_result, release);
    FIELD(cairn_result, memory);
    STRUCT(cairn_kind);
    FIELD(cairn_kind, size);
    FIELD(cairn_kind, name);
    FIELD(cairn_kind, run);
    FIELD(cairn_kind, cancelled);
    FIELD(cairn_kind, context);
    FIELD(cairn_kind, release);
    STRUCT(cairn_host);
    FIELD(cairn_host, size);
    FIELD(cairn_host, abi);
    FIELD(cairn_host, reserved);
    FIELD(cairn_host, version);
    FIELD(cairn_host, engine);
    FIELD(cairn_host, add);
    FIELD(cairn_host, complete);
    FIELD(cairn_host, cancelled);
    FIELD(cairn_host, log);
}

static void runs(void)
{
    STRUCT(cairn_start);
    FIELD(cairn_start, size);
    FIELD(cairn_start, flags);
    FIELD(cairn_start, document);
    FIELD(cairn_start, document_len);
    FIELD(cairn_start, file);
    FIELD(cairn_start, inputs);
    FIELD(cairn_start, run);
    FIELD(cairn_start, arguments);
    FIELD(cairn_start, work_dir);
    STRUCT(cairn_signal);
    FIELD(cairn_signal, size);
    FIELD(cairn_signal, type);
    FIELD(cairn_signal, id);
    FIELD(cairn_signal, step);
    FIELD(cairn_signal, reason);
    FIELD(cairn_signal, payload);
    FIELD(cairn_signal, force);
    STRUCT(cairn_decision);
    FIELD(cairn_decision, size);
    FIELD(cairn_decision, accepted);
    FIELD(cairn_decision, duplicate);
    FIELD(cairn_decision, seq);
    FIELD(cairn_decision, code);
    FIELD(cairn_decision, message);
    FIELD(cairn_decision, new_run);
}

static void reading(void)
{
    STRUCT(cairn_event);
    FIELD(cairn_event, size);
    FIELD(cairn_event, seq);
    FIELD(cairn_event, type);
    FIELD(cairn_event, bytes);
    FIELD(cairn_event, len);
    STRUCT(cairn_filter);
    FIELD(cairn_filter, size);
    FIELD(cairn_filter, statuses);
    FIELD(cairn_filter, unfinished);
    FIELD(cairn_filter, roots);
    FIELD(cairn_filter, plan);
    FIELD(cairn_filter, prefix);
    FIELD(cairn_filter, since_ms);
    FIELD(cairn_filter, until_ms);
    STRUCT(cairn_run);
    FIELD(cairn_run, size);
    FIELD(cairn_run, run);
    FIELD(cairn_run, plan);
    FIELD(cairn_run, version);
    FIELD(cairn_run, name);
    FIELD(cairn_run, parent);
    FIELD(cairn_run, substatus);
    FIELD(cairn_run, cause);
    FIELD(cairn_run, status);
    FIELD(cairn_run, owned);
    FIELD(cairn_run, last_seq);
    FIELD(cairn_run, created_ms);
    FIELD(cairn_run, started_ms);
    FIELD(cairn_run, ended_ms);
    FIELD(cairn_run, steps);
    FIELD(cairn_run, completed);
    FIELD(cairn_run, failed);
    FIELD(cairn_run, skipped);
    FIELD(cairn_run, running);
}

static void constants(void)
{
    VALUE(CAIRN_PLUGIN_ABI);
    VALUE(CAIRN_RUN_SIZE);
    VALUE(CAIRN_OK);
    VALUE(CAIRN_E_NOMEM);
    VALUE(CAIRN_E_LIMIT);
    VALUE(CAIRN_E_INVALID);
    VALUE(CAIRN_E_NOT_FOUND);
    VALUE(CAIRN_E_EXISTS);
    VALUE(CAIRN_E_CONFLICT);
    VALUE(CAIRN_E_LOCKED);
    VALUE(CAIRN_E_IO);
    VALUE(CAIRN_E_FULL);
    VALUE(CAIRN_E_CORRUPT);
    VALUE(CAIRN_E_VERSION);
    VALUE(CAIRN_E_TIMEOUT);
    VALUE(CAIRN_E_CANCELLED);
    VALUE(CAIRN_E_DENIED);
    VALUE(CAIRN_E_SCHEMA);
    VALUE(CAIRN_E_TERMINAL);
    VALUE(CAIRN_E_UNSUPPORTED);
    VALUE(CAIRN_E_UNREACHABLE);
    VALUE(CAIRN_E_AWAY);
    VALUE(CAIRN_END);
    VALUE(CAIRN_NO_THREAD);
    VALUE(CAIRN_NO_PROCESS_TOOLS);
    VALUE(CAIRN_NO_CREATE);
    VALUE(CAIRN_LOG_ERROR);
    VALUE(CAIRN_LOG_DEBUG);
    VALUE(CAIRN_PENDING_RUN);
    VALUE(CAIRN_APPROVED);
    VALUE(CAIRN_RUNNING);
    VALUE(CAIRN_PAUSED);
    VALUE(CAIRN_COMPLETED);
    VALUE(CAIRN_FAILED);
    VALUE(CAIRN_CANCELLED);
    VALUE(CAIRN_NOW);
    VALUE(CAIRN_DRAIN);
    VALUE(CAIRN_DONE);
    VALUE(CAIRN_FAIL);
    VALUE(CAIRN_PENDING);
    VALUE(CAIRN_ATTACH);
}

int main(void)
{
    options();
    functions();
    runs();
    reading();
    constants();
    return 0;
}
