// Approvals that wait for a person, oldest first, with the command that answers.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/select.h"

#include <stdlib.h>

enum { PAGE = 100 };

static const struct column columns[] = {
    {"target", "GATE", CELL_TEXT, false, 60}, {"message", "MESSAGE", CELL_TEXT, false, 60},
    {"since", "SINCE", CELL_TIME, false, 0},  {"deadline", "DEADLINE", CELL_TIME, false, 0},
    {"planId", "PLAN", CELL_TEXT, false, 24}, {"approve", "ANSWER WITH", CELL_TEXT, false, 0},
    {"reject", "OR", CELL_TEXT, true, 0},     {"onTimeout", "THEN", CELL_TEXT, true, 0},
    {"runId", "RUN", CELL_TEXT, true, 0},     {"stepId", "STEP", CELL_TEXT, true, 0},
};

struct gates {
    struct session *session;
    struct json rows;
};

static struct json copy_json(struct cli *cli, const struct json *value)
{
    struct json copy;
    return value && json_copy(&cli->io.arena, value, &copy) ? copy : json_null();
}

// `step` NULL: the start of a plan that requires approval.
static bool add_gate(struct gates *gates, const struct card *card, const struct step_view *step)
{
    struct cli *cli = gates->session->cli;
    struct str run = card->head.ids.run, id = step ? step->id : STR("");
    const char *target = cli_format(cli, "%.*s%s%.*s", STR_ARG(run), step ? "/" : "", STR_ARG(id));
    bool rendered;
    const struct json *inputs = step ? step_inputs(gates->session, card, step, step->logical, &rendered) : NULL;
    struct json message = inputs ? copy_json(cli, json_key(inputs, "message")) : json_string(STR("start of the plan"));
    struct arena *arena = &cli->io.arena;
    struct json row = JSON_OF(
        arena, {"target", json_word(target)}, {"message", message},
        {"since", json_time_or_null(arena, step ? step->started_ms : card->view.queued_ms)},
        {"deadline", json_time_or_null(arena, step ? step->due_ms : 0)},
        {"onTimeout", inputs ? copy_json(cli, json_key(inputs, "onTimeout")) : json_null()},
        {"runId", json_copied_or_null(arena, run)}, {"stepId", json_copied_or_null(arena, id)},
        {"planId", json_copied_or_null(arena, card->head.ids.plan_id)},
        {"approve", json_word(cli_command(cli, "approve %s", target))},
        {"reject", json_word(cli_command(cli, "reject %s --reason WHY", target))});
    json_append(&cli->io.arena, &gates->rows, row);
    return json_ok(&gates->rows);
}

static int look_at_run(struct gates *gates, const struct run_head *head)
{
    struct card card SCOPED(card_release) = {0};
    bool ok = true;
    int code = card_load(gates->session, head, TARGET_NOW, &card);
    const struct run_view *view = &card.view;
    if (!code && view->status == RUN_STATUS_PENDING && view->start.requires_approval) ok = add_gate(gates, &card, NULL);
    for (size_t i = 0; !code && ok && i < view->step_count; i++)
        if (look_of_step(&view->steps[i]) == LOOK_APPROVAL) ok = add_gate(gates, &card, &view->steps[i]);
    return code || ok ? code : cli_nomem(gates->session->cli);
}

static bool may_wait(const struct run_head *head)
{
    return head->summary.status != RUN_STATUS_RUNNING || head->summary.running > 0;
}

static int by_age(const void *a, const void *b)
{
    struct str left = json_text(json_key(a, "since")), right = json_text(json_key(b, "since"));
    int order = str_cmp(left, right);
    return order ? order : str_cmp(json_text(json_key(a, "target")), json_text(json_key(b, "target")));
}

int command_inbox(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct select selection SCOPED(select_close) = {0};
    struct list list;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    struct gates gates = {.session = &session, .rows = json_array()};
    code = selection_open(&selection, &session, query_words(cli));
    if (!code && !list_open(&list, cli, columns, ARRAY_COUNT(columns), "target")) code = EXIT_USAGE;
    if (!code) {
        selection.filter.unfinished = true;
        do {
            struct run_heads heads;
            code = selection_page(&session, &selection, PAGE, &cli->io.arena, &heads);
            for (size_t i = 0; !code && i < heads.count; i++)
                if (may_wait(&heads.items[i])) code = look_at_run(&gates, &heads.items[i]);
        } while (!code && selection.filter.before != 0);
        if (gates.rows.count > 1) qsort(gates.rows.items, gates.rows.count, sizeof(*gates.rows.items), by_age);
        if (!code) list_page(&list, &gates.rows);
        list_close(&list);
        if (!code && gates.rows.count == 0 && cli->io.err.tty) cli_note(cli, "nobody waits for an answer");
    }
    return code;
}
