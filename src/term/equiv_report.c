#include "term/equiv_report.h"

#include "term/text.h"

#include "base/civil.h"

void equiv_show_open(struct equiv_show *show, struct console *console, enum format format)
{
    *show = (struct equiv_show){.console = console, .format = format, .cases = json_array()};
    buf_init(&show->xml, (size_t)256 << 20);
}

void equiv_show_close(struct equiv_show *show)
{
    buf_release(&show->xml);
}

// ---- text

static void place_of(struct buf *out, const struct equiv_line *line)
{
    if (!line)
        buf_text(out, "nothing");
    else
        buf_printf(out, "%s%llu %.*s", line->ledger ? "ledger behind event " : "event ", (unsigned long long)line->seq,
                   STR_ARG(line->event));
}

static struct str whole_text(const struct equiv_line *line)
{
    return line ? line->text : (struct str){0};
}

static void side(struct buf *out, const char *host, struct str text)
{
    buf_printf(out, "        %-10s ", host);
    if (text.len)
        text_safe(out, text);
    else
        buf_text(out, "(nothing)");
    buf_byte(out, '\n');
}

static void write_why(struct buf *out, const struct equiv_report *report, size_t index)
{
    const struct equiv_difference *d = &report->differences[index];
    if (!d->why_a.len && !d->why_b.len) return;
    buf_text(out, "      why\n");
    side(out, report->logs[0].host, d->why_a);
    side(out, report->logs[index].host, d->why_b);
}

static void write_difference(struct buf *out, const struct equiv_report *report, size_t index)
{
    const struct equiv_difference *d = &report->differences[index];
    const struct equiv_log *a = &report->logs[0], *b = &report->logs[index];
    if (d->what == EQUIV_WRONG) {
        buf_printf(out, "    %s: ", b->host);
        text_safe(out, d->text);
        buf_byte(out, '\n');
        write_why(out, report, index);
        return;
    }
    buf_printf(out, "    %s differs from %s at ", b->host, a->host);
    text_safe(out, d->slot);
    buf_printf(out, " (%s): ", equiv_what_name(d->what));
    place_of(out, d->a);
    buf_text(out, "  |  ");
    place_of(out, d->b);
    buf_byte(out, '\n');
    for (size_t i = 0; i < d->change_count; i++) {
        buf_text(out, "      ");
        text_safe(out, d->changes[i].path);
        buf_byte(out, '\n');
        side(out, a->host, d->changes[i].a);
        side(out, b->host, d->changes[i].b);
    }
    if (d->change_count == 0) {
        side(out, a->host, whole_text(d->a));
        side(out, b->host, whole_text(d->b));
    }
    write_why(out, report, index);
    if (d->more) buf_printf(out, "      and %zu more line%s\n", d->more, d->more == 1 ? "" : "s");
}

static void write_text(struct equiv_show *show, struct str file, struct str name, const struct equiv_report *report)
{
    struct console *console = show->console;
    struct buf out SCOPED(buf_release) = buf_of((size_t)16 << 20);
    enum look look = report->same ? LOOK_DONE : LOOK_FAILED;
    tone_text(&out, &console->out, look_tone(look), look_glyph(look, console->out.utf8));
    buf_byte(&out, ' ');
    text_safe(&out, file);
    buf_text(&out, "  ");
    text_safe(&out, name);
    const struct equiv_log *first = &report->logs[0];
    if (!first->err.code) {
        char virtual_time[24];
        duration_format(first->result.virtual_ms, virtual_time);
        struct buf about SCOPED(buf_release) = buf_of(256);
        buf_printf(&about, "  %s, %zu records, %s", run_status_name(first->result.story.runs[0].status), first->count, virtual_time);
        if (report->kills) buf_printf(&about, ", %u kills", report->kills);
        tone_text(&out, &console->out, TONE_DIM, about.ptr);
    }
    buf_byte(&out, '\n');
    for (size_t i = 0; i < report->host_count; i++)
        if (report->differences[i].what) write_difference(&out, report, i);
    if (!report->same || !console->quiet) console_print(console, &out);
}

// ---- json

static struct json line_json(struct arena *arena, const struct equiv_line *line)
{
    if (!line) return json_none();
    return JSON_OF(arena, {"event", json_copied(arena, line->event)}, {line->ledger ? "afterSeq" : "seq", json_count(line->seq)},
                   {"step", json_some(line->step)}, {"atMs", json_when(line->at_ms >= 0, json_int(line->at_ms))},
                   {"record", json_copied(arena, line->text)});
}

static struct json difference_json(struct arena *arena, const struct equiv_report *report, size_t index)
{
    const struct equiv_difference *d = &report->differences[index];
    struct json changes = json_array();
    for (size_t i = 0; i < d->change_count; i++)
        json_append(arena, &changes,
                    JSON_OF(arena, {"path", json_copied(arena, d->changes[i].path)}, {"a", json_some(d->changes[i].a)},
                            {"b", json_some(d->changes[i].b)}));
    return JSON_OF(arena, {"host", json_word(report->logs[index].host)}, {"against", json_word(report->logs[0].host)},
                   {"what", json_word(equiv_what_name(d->what))}, {"at", json_some(d->slot)}, {"text", json_some(d->text)},
                   {"a", line_json(arena, d->a)}, {"b", line_json(arena, d->b)},
                   {"changes", json_when(changes.count > 0, changes)}, {"whyA", json_some(d->why_a)},
                   {"whyB", json_some(d->why_b)}, {"more", json_when(d->more > 0, json_count(d->more))});
}

// The report's texts end with its arena: what is shown later is a copy.
static bool add_json(struct equiv_show *show, struct str file, struct str name, const struct equiv_report *report)
{
    struct arena *arena = &show->console->arena;
    struct arena scratch SCOPED(arena_release) = arena_of(16 * 1024, (size_t)256 << 20);
    struct json hosts = json_array(), differences = json_array(), kept;
    for (size_t i = 0; i < report->host_count; i++) {
        const struct equiv_log *log = &report->logs[i];
        bool played = !log->err.code;
        json_append(&scratch, &hosts,
                    JSON_OF(&scratch, {"host", json_word(log->host)},
                            {"status", json_when(played, json_word(played ? run_status_name(log->result.story.runs[0].status) : ""))},
                            {"records", json_count(log->count)}, {"kills", json_count(log->result.kills)},
                            {"virtualMs", json_int(log->result.virtual_ms)}, {"tookUs", json_int(log->took_us)}));
        if (report->differences[i].what) json_append(&scratch, &differences, difference_json(&scratch, report, i));
    }
    struct json one = JSON_OF(&scratch, {"file", json_string(file)}, {"name", json_string(name)}, {"same", json_bool(report->same)},
                              {"hosts", hosts}, {"differences", differences});
    if (!json_ok(&one) || !json_copy(arena, &one, &kept)) return false;
    json_append(arena, &show->cases, kept);
    return json_ok(&show->cases);
}

// ---- junit

static void add_xml(struct equiv_show *show, struct str file, struct str name, const struct equiv_report *report)
{
    struct buf *out = &show->xml;
    buf_text(out, "  <testcase classname=\"");
    buf_xml(out, file);
    buf_text(out, "\" name=\"");
    buf_xml(out, name);
    buf_printf(out, "\" time=\"%lld.%06lld\"", (long long)(report->took_us / 1000000), (long long)(report->took_us % 1000000));
    if (report->same) {
        buf_text(out, "/>\n");
        return;
    }
    buf_text(out, ">\n");
    for (size_t i = 0; i < report->host_count; i++) {
        if (!report->differences[i].what) continue;
        struct buf text SCOPED(buf_release) = buf_of((size_t)16 << 20);
        write_difference(&text, report, i);
        buf_printf(out, "    <failure message=\"%s: %s\">", report->logs[i].host, equiv_what_name(report->differences[i].what));
        buf_xml(out, buf_str(&text));
        buf_text(out, "</failure>\n");
    }
    buf_text(out, "  </testcase>\n");
}

// ---- the whole

int equiv_show_case(struct equiv_show *show, struct str file, struct str name, const struct equiv_report *report)
{
    show->same += report->same;
    show->different += !report->same;
    show->kills += report->kills;
    show->took_us += report->took_us;
    if (show->format == FORMAT_JSON)
        return add_json(show, file, name, report) ? EXIT_OK : console_nomem(show->console);
    if (show->format == FORMAT_JUNIT)
        add_xml(show, file, name, report);
    else
        write_text(show, file, name, report);
    return EXIT_OK;
}

int equiv_show_end(struct equiv_show *show)
{
    struct console *console = show->console;
    struct buf out SCOPED(buf_release) = buf_of((size_t)256 << 20);
    if (show->format == FORMAT_JSON) {
        struct json all = JSON_OF(&console->arena, {"same", json_int(show->same)}, {"different", json_int(show->different)},
                                  {"kills", json_int(show->kills)}, {"cases", show->cases});
        if (!json_ok(&all)) return console_nomem(console);
        print_json(console, FORMAT_JSON, &all);
        return EXIT_OK;
    }
    if (show->format == FORMAT_JUNIT) {
        buf_printf(&out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cairn equiv\" tests=\"%u\" failures=\"%u\" "
                   "errors=\"0\">\n",
                   show->same + show->different, show->different);
        buf_add(&out, buf_str(&show->xml));
        buf_text(&out, "</testsuite>\n");
    } else {
        buf_printf(&out, "%u the same, %u different", show->same, show->different);
        if (show->kills) buf_printf(&out, ", %u kills", show->kills);
        buf_printf(&out, " (%lld.%lld s)\n", (long long)(show->took_us / 1000000), (long long)(show->took_us % 1000000 / 100000));
    }
    console_print(console, &out);
    return EXIT_OK;
}
