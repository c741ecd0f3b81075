// Any bytes as a query. What is read has an answer for any run, and the same one when the log was not needed; a fault is
// inside the text. Also any bytes as a line of a step's log.
#include "tool/tool.h"
#include "view/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answers(const struct query *query, struct arena *arena)
{
    struct run_ids ids = {.tenant = STR("default"), .run = STR("3f2a"), .plan_id = STR("p")};
    struct run_view view;
    struct program program = {0};
    struct query_facts facts = {.status = RUN_STATUS_FAILED, .vocabulary = VOCABULARY_RUN, .run = STR("3f2a")};
    struct query_bounds bounds;
    enum query_answer before = query_ask(query, &facts);
    if (!view_init(&view, arena, &ids)) return;
    facts.view = &view;
    facts.program = &program;
    enum query_answer after = query_ask(query, &facts);
    INVARIANT(after != QUERY_UNKNOWN);
    INVARIANT(before == QUERY_UNKNOWN || before == after);
    query_bounds(query, &bounds);
    if (after == QUERY_YES && !bounds.nothing && bounds.status_mask)
        INVARIANT(bounds.status_mask >> RUN_STATUS_FAILED & 1);
    INVARIANT(after != QUERY_YES || !bounds.nothing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct query_fault fault;
    struct tool_log_line line;
    struct str text = {(const char *)data, size};
    arena_init(&arena, 64 * 1024, (size_t)256 << 20);
    const struct query *query = query_parse(text, 1770829200000, &arena, &fault);
    if (query)
        check_answers(query, &arena);
    else
        INVARIANT(fault.error.message[0] && fault.at <= size);
    if (tool_log_parse(text, &line)) INVARIANT(line.kind && line.text.len < size);
    arena_release(&arena);
    return 0;
}
