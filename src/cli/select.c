#include "cli/select.h"
#include "term/text.h"

// ---- reading the query

struct str query_words(struct cli *cli)
{
    struct buf text = buf_of(1 << 20);
    for (size_t i = 0; i < cli->args.word_count; i++) {
        if (i) buf_byte(&text, ' ');
        buf_add(&text, cli->args.words[i]);
    }
    struct str copy = buf_keep(&text, &cli->io.arena);
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
            return cli_hint(cli, "PENDING, APPROVED, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED");
        }
        *mask |= 1u << status;
    }
    return EXIT_OK;
}

static int read_flags(struct session *session, struct run_filter *filter)
{
    struct cli *cli = session->cli;
    *filter = (struct run_filter){.tenant = session->tenant, .plan = args_text(&cli->args, FLAG_PLAN, "")};
    int code = read_status(cli, &filter->status_mask);
    if (code) return code;
    return time_flag(cli, FLAG_SINCE, &filter->since_ms) ? EXIT_OK : EXIT_USAGE;
}

// The query, a line below it with carets under what is wrong, and a hint.
static int report(struct cli *cli, struct str text, const struct query_fault *fault)
{
    cli_fail(cli, EXIT_USAGE, "%s", fault->error.message);
    struct buf line SCOPED(buf_release) = buf_of(1 << 20);
    buf_text(&line, "    ");
    text_safe(&line, text);
    buf_text(&line, "\n    ");
    struct buf before SCOPED(buf_release) = buf_of(1 << 20);
    text_safe(&before, str_slice(text, 0, fault->at));
    text_pad(&line, 0, text_width(buf_str(&before)));
    for (size_t i = 0; i < (fault->len ? fault->len : 1) && i < 200; i++) buf_byte(&line, '^');
    buf_byte(&line, '\n');
    if (text.len > 0) cli_talk(cli, &line);
    if (fault->hint.message[0]) cli_hint(cli, "%s", fault->hint.message);
    cli_hint(cli, "`cairn help query` has all fields");
    return EXIT_USAGE;
}

static struct str with_tags(struct cli *cli, struct str text)
{
    struct str tag;
    if (!args_has(&cli->args, FLAG_TAG)) return text;
    struct buf whole = buf_of(1 << 20);
    if (text.len) buf_printf(&whole, "(%.*s)", STR_ARG(text));
    for (size_t cursor = 0; args_next(&cli->args, FLAG_TAG, &cursor, &tag);) {
        char quote = str_find(tag, '"', 0) < tag.len ? '\'' : '"';
        buf_printf(&whole, " tag=%c%.*s%c", quote, STR_ARG(tag), quote);
    }
    struct str copy = buf_keep(&whole, &cli->io.arena);
    return copy.ptr ? copy : text;
}

static void left_out(void *context, const struct run_head *head, const struct error *why)
{
    cli_warn((struct cli *)context, "run %.*s is left out, its log cannot be read: %s", STR_ARG(head->ids.run),
             why->message);
}

int selection_open(struct select *select, struct session *session, struct str text)
{
    struct cli *cli = session->cli;
    struct query_fault fault;
    struct run_filter filter;
    *select = (struct select){0};
    int code = read_flags(session, &filter);
    if (code) return code;
    text = with_tags(cli, str_trim(text));
    enum code rc = select_open(select, session->store, &filter, text, cli->io.now_ms, &fault);
    select->left_out = left_out;
    select->context = cli;
    if (rc == E_NOMEM) return cli_nomem(cli);
    return rc ? report(cli, text, &fault) : EXIT_OK;
}

int selection_page(struct session *session, struct select *select, size_t want, struct arena *arena,
                   struct run_heads *out)
{
    struct error err = {0};
    return select_page(select, want, arena, out, &err) ? cli_error(session->cli, &err) : EXIT_OK;
}
