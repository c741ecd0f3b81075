#include "cli/select.h"
#include "cli/text.h"

#include "engine/engine.h"

#include <string.h>

enum { PAGE_MAX = 500, PROGRAMS_MAX = 64 };

// Documents are few and runs are many.
struct kept_program {
    struct digest document;
    struct program *program; // NULL: cannot be read
};

// ---- reading the query

struct str query_words(struct cli *cli)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 0; i < cli->args.word_count; i++) {
        if (i) buf_byte(&text, ' ');
        buf_add(&text, cli->args.words[i]);
    }
    struct str copy = arena_copy(&cli->arena, buf_str(&text));
    buf_release(&text);
    return copy.ptr ? copy : STR("");
}

static int read_status(struct cli *cli, uint32_t *mask)
{
    struct str rest = args_text(&cli->args, FLAG_STATUS, "");
    *mask = 0;
    while (rest.len > 0) {
        struct str word = str_trim(str_cut(rest, ',', &rest));
        char upper[16] = "";
        for (size_t i = 0; i < word.len && i < sizeof(upper) - 1; i++)
            upper[i] = (char)(word.ptr[i] >= 'a' && word.ptr[i] <= 'z' ? word.ptr[i] - 32 : word.ptr[i]);
        enum run_status status = run_status_parse(str_from(upper));
        if (!status) {
            cli_fail(cli, EXIT_USAGE, "there is no status %.*s", STR_ARG(word));
            cli_hint(cli, "PENDING, APPROVED, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED");
            return EXIT_USAGE;
        }
        *mask |= 1u << status;
    }
    return EXIT_OK;
}

static int read_flags(struct selection *selection)
{
    struct cli *cli = selection->session->cli;
    struct run_filter *filter = &selection->filter;
    *filter = (struct run_filter){.tenant = selection->session->tenant, .plan = args_text(&cli->args, FLAG_PLAN, "")};
    int code = read_status(cli, &filter->status_mask);
    if (code) return code;
    return time_flag(cli, FLAG_SINCE, &filter->since_ms) ? EXIT_OK : EXIT_USAGE;
}

// The query, a line below it with carets under what is wrong, and a hint.
static int report(struct cli *cli, struct str text, const struct query_fault *fault)
{
    struct buf line;
    cli_fail(cli, EXIT_USAGE, "%s", fault->error.message);
    buf_init(&line, 1 << 20);
    buf_text(&line, "    ");
    text_safe(&line, text);
    buf_text(&line, "\n    ");
    struct buf before;
    buf_init(&before, 1 << 20);
    text_safe(&before, str_slice(text, 0, fault->at));
    text_pad(&line, 0, text_width(buf_str(&before)));
    buf_release(&before);
    for (size_t i = 0; i < (fault->len ? fault->len : 1) && i < 200; i++) buf_byte(&line, '^');
    buf_byte(&line, '\n');
    if (text.len > 0) cli_talk(cli, &line);
    buf_release(&line);
    if (fault->hint.message[0]) cli_hint(cli, "%s", fault->hint.message);
    cli_hint(cli, "`cairn help query` has all fields");
    return EXIT_USAGE;
}

static struct str with_tags(struct cli *cli, struct str text)
{
    struct buf whole;
    struct str tag;
    if (!args_has(&cli->args, FLAG_TAG)) return text;
    buf_init(&whole, 1 << 20);
    if (text.len) buf_printf(&whole, "(%.*s)", STR_ARG(text));
    for (size_t cursor = 0; args_next(&cli->args, FLAG_TAG, &cursor, &tag);) {
        char quote = str_find(tag, '"', 0) < tag.len ? '\'' : '"';
        buf_printf(&whole, " tag=%c%.*s%c", quote, STR_ARG(tag), quote);
    }
    struct str copy = arena_copy(&cli->arena, buf_str(&whole));
    buf_release(&whole);
    return copy.ptr ? copy : text;
}

// What the flags and the query both say about the same thing is the narrower of the two.
static void narrow(struct selection *selection)
{
    struct query_bounds bounds;
    struct run_filter *filter = &selection->filter;
    query_bounds(selection->query, &bounds);
    uint32_t both = bounds.status_mask & filter->status_mask;
    selection->nothing = bounds.nothing || (bounds.status_mask && filter->status_mask && !both) ||
                         (bounds.plan.len && filter->plan.len && !str_eq(bounds.plan, filter->plan));
    filter->status_mask = bounds.status_mask && filter->status_mask ? both : bounds.status_mask | filter->status_mask;
    if (bounds.plan.len) filter->plan = bounds.plan;
    filter->run_prefix = bounds.run_prefix;
    if (bounds.since_ms > filter->since_ms) filter->since_ms = bounds.since_ms;
    filter->until_ms = bounds.until_ms;
}

int selection_open(struct selection *selection, struct session *session, struct str text)
{
    struct cli *cli = session->cli;
    struct query_fault fault;
    *selection = (struct selection){.session = session};
    arena_init(&selection->arena, 16 * 1024, (size_t)1 << 28);
    arena_init(&selection->scratch, 64 * 1024, (size_t)4 << 30);
    int code = read_flags(selection);
    if (code) return code;
    text = with_tags(cli, str_trim(text));
    selection->query = query_parse(text, cli->now_ms, &selection->arena, &fault);
    selection->programs = ARENA_ARRAY(&selection->arena, PROGRAMS_MAX, struct kept_program);
    if (!selection->query) return report(cli, text, &fault);
    if (!selection->programs) return cli_nomem(cli);
    selection->asks = text.len > 0;
    narrow(selection);
    return EXIT_OK;
}

static void forget_programs(struct selection *selection)
{
    for (size_t i = 0; i < selection->program_count; i++)
        if (selection->programs[i].program) program_release(selection->programs[i].program);
    selection->program_count = 0;
}

void selection_close(struct selection *selection)
{
    forget_programs(selection);
    arena_release(&selection->scratch);
    arena_release(&selection->arena);
}

// ---- asking

static const struct program *program_of(struct selection *selection, const struct run_head *head)
{
    struct error err = {0};
    for (size_t i = 0; i < selection->program_count; i++)
        if (digest_eq(&selection->programs[i].document, &head->document)) return selection->programs[i].program;
    if (selection->program_count == PROGRAMS_MAX) forget_programs(selection);
    struct kept_program *kept = &selection->programs[selection->program_count++];
    *kept = (struct kept_program){.document = head->document};
    if (engine_program(selection->session->store, head, &kept->program, &err)) kept->program = NULL;
    return kept->program;
}

static enum code fold_record(void *context, const struct record *record, const struct moment *moment,
                             const struct seal *seal)
{
    (void)seal;
    return !moment || view_fold(context, moment, record->seq) ? OK : E_NOMEM;
}

static bool read_log(struct selection *selection, const struct run_head *head, const struct program *program,
                     struct run_view *view)
{
    struct cli *cli = selection->session->cli;
    struct error err = {0};
    arena_reset(&selection->scratch);
    if (!view_init(view, &selection->scratch, &head->ids)) return false;
    if (program && !view_plan(view, program)) return false;
    if (store_replay(selection->session->store, head->ids.tenant, head->ids.run, fold_record, view, &err) == OK)
        return true;
    cli_warn(cli, "run %.*s is left out, its log cannot be read: %s", STR_ARG(head->ids.run), err.message);
    return false;
}

static struct query_facts facts_of(const struct run_head *head)
{
    const struct run_summary *s = &head->summary;
    return (struct query_facts){.status = s->status,
                                .vocabulary = head->vocabulary,
                                .substatus = str_from(s->substatus),
                                .plan = head->ids.plan_id,
                                .version = head->ids.plan_version,
                                .name = head->name,
                                .run = head->ids.run,
                                .project = head->ids.project,
                                .environment = head->ids.environment,
                                .parent = head->parent_run,
                                .original = head->original_run,
                                .cause = str_from(s->cause),
                                .created_ms = s->created_ms,
                                .started_ms = s->started_ms,
                                .ended_ms = s->ended_ms,
                                .updated_ms = head->updated_ms,
                                .events = head->last_seq,
                                .running = s->running,
                                .failed = s->counts.failed,
                                .completed = s->counts.completed,
                                .skipped = s->counts.skipped,
                                .owned = head->owned,
                                .terminal = head->terminal};
}

bool selection_meets(struct selection *selection, const struct run_head *head)
{
    if (!selection->asks) return true;
    struct query_facts facts = facts_of(head);
    struct run_view view;
    enum query_answer answer = query_ask(selection->query, &facts);
    if (answer != QUERY_UNKNOWN) return answer == QUERY_YES;
    static const struct program no_program; // a document that cannot be read has no tags
    const struct program *program = program_of(selection, head);
    facts.program = program ? program : &no_program;
    answer = query_ask(selection->query, &facts);
    if (answer != QUERY_UNKNOWN) return answer == QUERY_YES;
    if (!read_log(selection, head, program, &view)) return false;
    facts.view = &view;
    return query_ask(selection->query, &facts) == QUERY_YES;
}

static bool add_head(struct run_heads *out, const struct run_head *head, struct arena *arena, size_t *capacity)
{
    struct run_head *grown = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*grown), capacity);
    if (!grown) return false;
    out->items = grown;
    out->items[out->count++] = *head;
    return true;
}

int selection_page(struct selection *selection, size_t want, struct arena *arena, struct run_heads *out)
{
    struct cli *cli = selection->session->cli;
    struct error err = {0};
    size_t capacity = 0, size = want;
    *out = (struct run_heads){0};
    if (selection->nothing || !selection->session->store) {
        selection->filter.before = 0;
        return EXIT_OK;
    }
    do {
        struct run_heads page = {0};
        selection->filter.limit = size < PAGE_MAX ? size : PAGE_MAX;
        if (store_list(selection->session->store, &selection->filter, arena, &page, &err)) return cli_error(cli, &err);
        selection->filter.before = page.next;
        for (size_t i = 0; i < page.count; i++) {
            if (!selection_meets(selection, &page.items[i])) continue;
            if (out->count == want) {
                selection->filter.before = out->items[want - 1].position;
                out->next = selection->filter.before;
                return EXIT_OK;
            }
            if (!add_head(out, &page.items[i], arena, &capacity)) return cli_nomem(cli);
        }
        size = selection->asks ? 2 * selection->filter.limit : want - out->count; // few match: look at more at once
    } while (out->count < want && selection->filter.before != 0);
    out->next = selection->filter.before;
    return EXIT_OK;
}
