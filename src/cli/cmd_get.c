#include "cli/card.h"
#include "cli/commands.h"
#include "term/text.h"

// Only the members that --fields names, in that order. False: one of them does not exist, reported.
static bool pick(struct cli *cli, const struct json *whole, struct json *out)
{
    struct str rest = args_text(&cli->args, FLAG_FIELDS, "");
    *out = json_object();
    while (rest.len > 0) {
        struct str key = str_trim(str_cut(rest, ',', &rest));
        const struct json *value = json_at(whole, key);
        if (value && (json_get(out, key) || json_put(&cli->io.arena, out, key, *value))) continue;
        const char *names[64];
        size_t count = 0;
        for (; count < whole->count && count < ARRAY_COUNT(names); count++)
            names[count] = whole->members[count].key.ptr;
        const char *near = nearest_name(key, names, count);
        struct buf all SCOPED(buf_release) = buf_of(4096);
        for (size_t i = 0; i < count; i++) buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
        cli_fail(cli, EXIT_USAGE, "there is no field %.*s here", STR_ARG(key));
        cli_hint(cli, "%s%s%sfields: %s", near ? "did you mean " : "", near ? near : "", near ? "? " : "", all.ptr);
        return false;
    }
    return true;
}

static int show_data(struct cli *cli, enum format format, const struct json *whole)
{
    struct json picked = *whole;
    if (args_has(&cli->args, FLAG_FIELDS) && !pick(cli, whole, &picked)) return EXIT_USAGE;
    if (format == FORMAT_JSON || format == FORMAT_YAML) {
        print_json(&cli->io, format, &picked);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (uint32_t i = 0; i < picked.count; i++) { // for people and scripts: a field a line
        struct buf value SCOPED(buf_release) = buf_of(TEXT_MAX);
        if (picked.members[i].value.type == JSON_STRING)
            buf_add(&value, picked.members[i].value.text);
        else
            json_write(&value, &picked.members[i].value);
        text_safe(&text, picked.members[i].key);
        buf_byte(&text, '\t');
        text_safe(&text, buf_str(&value));
        buf_byte(&text, '\n');
    }
    cli_print(cli, &text);
    return EXIT_OK;
}

static int show(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt)
{
    struct cli *cli = session->cli;
    enum format format = format_of(cli, FORMAT_TEXT);
    struct step_facts facts;
    struct json json;
    if (format == FORMAT_JSON || format == FORMAT_YAML || args_has(&cli->args, FLAG_FIELDS)) {
        bool ok =
            step ? step_card_json(session, card, step, attempt, &json) : view_json(&card->view, &cli->io.arena, &json);
        return ok ? show_data(cli, format, &json) : cli_nomem(cli);
    }
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (format != FORMAT_NAME && step) step_facts_read(session, card, step, attempt, &facts);
    if (format == FORMAT_NAME && step)
        buf_printf(&text, "%.*s/%.*s\n", STR_ARG(card->head.ids.run), STR_ARG(step->id));
    else if (format == FORMAT_NAME)
        buf_printf(&text, "%.*s\n", STR_ARG(card->head.ids.run));
    else if (!step)
        card_write(&cli->io, &text, &cli->io.out, card, format == FORMAT_WIDE);
    else
        step_card_write(&cli->io, &text, &cli->io.out, card, step, attempt, &facts);
    cli_print(cli, &text);
    return EXIT_OK;
}

static int find_step(struct session *session, const struct card *card, const struct target *target,
                     const struct step_view **out)
{
    struct cli *cli = session->cli;
    *out = NULL;
    if (target->step.len == 0) return EXIT_OK;
    if (!card_has_step(session, card, target->step)) return EXIT_NOT_FOUND;
    *out = view_step(&card->view, target->step);
    if (*out && target->attempt <= (*out)->logical) return EXIT_OK;
    if (!*out) {
        cli_fail(cli, EXIT_NOT_FOUND, "%.*s is a loop: its steps have paths of their own", STR_ARG(target->step));
        return EXIT_NOT_FOUND;
    }
    cli_fail(cli, EXIT_NOT_FOUND, "%.*s has no attempt %u", STR_ARG(target->step), target->attempt);
    return cli_hint(cli, "it has %u%s", (*out)->logical, card->past ? " at that moment" : "");
}

int command_get(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target = {0};
    struct card card SCOPED(card_release) = {0};
    const struct step_view *step = NULL;
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_STEP | TARGET_ATTEMPT | TARGET_MOMENT, &target);
    if (!code) code = card_load(&session, &target.head, target.at, &card);
    if (!code) code = find_step(&session, &card, &target, &step);
    if (!code) code = show(&session, &card, step, target.attempt);
    return code;
}
