#include "term/test_report.h"

#include "term/text.h"

#include "base/civil.h"

void test_report_open(struct test_report *report, struct console *console, enum format format)
{
    *report = (struct test_report){.console = console, .format = format, .tests = json_array()};
    buf_init(&report->xml, (size_t)256 << 20);
}

void test_report_close(struct test_report *report)
{
    buf_release(&report->xml);
}

static struct str title_of(struct console *console, const struct trial_script *script)
{
    if (script->name.len) return script->name;
    return str_from(console_format(console, "%.*s", STR_ARG(script->document)));
}

// ---- text

static void lines_behind(struct buf *out, const char *indent, struct str text)
{
    while (text.len > 0) {
        struct str line = str_cut(text, '\n', &text);
        buf_text(out, indent);
        text_safe(out, line);
        buf_byte(out, '\n');
    }
}

static void fact(struct buf *out, const struct term *term, enum tone tone, const char *word, struct str value)
{
    if (value.len == 0) return;
    buf_text(out, "      ");
    tone_text(out, term, tone, word);
    text_safe(out, value);
    buf_byte(out, '\n');
}

static void write_fault(struct test_report *report, struct buf *out, const struct trial_script *script,
                        const struct trial_fault *fault)
{
    const struct term *term = &report->console->out;
    buf_printf(out, "    %.*s:%u:%u: ", STR_ARG(script->file), fault->line, fault->column);
    text_safe(out, fault->what);
    buf_byte(out, '\n');
    fact(out, term, TONE_GOOD, "expected  ", fault->expected);
    fact(out, term, TONE_BAD, "got       ", fault->got);
    lines_behind(out, "        ", fault->more);
}

// "COMPLETED, 5 steps, 2h05m": what happened, in the time that the run believes has passed.
static void write_summary(struct test_report *report, struct buf *out, const struct trial_result *result)
{
    char virtual_time[24];
    uint32_t ran = 0;
    for (size_t i = 0; i < result->story.step_count; i++) ran += result->story.steps[i].started > 0;
    duration_format(result->virtual_ms, virtual_time);
    struct buf text SCOPED(buf_release) = buf_of(256);
    buf_printf(&text, "  %s, %u step%s, %s", run_status_name(result->story.runs[0].status), ran, ran == 1 ? "" : "s",
               virtual_time);
    tone_text(out, &report->console->out, TONE_DIM, text.ptr);
}

static void write_text(struct test_report *report, const struct trial_script *script, const struct trial_result *result,
                       const struct error *err, bool ok)
{
    struct console *console = report->console;
    struct buf out SCOPED(buf_release) = buf_of((size_t)16 << 20);
    enum look look = ok ? LOOK_DONE : LOOK_FAILED;
    tone_text(&out, &console->out, look_tone(look), look_glyph(look, console->out.utf8));
    buf_byte(&out, ' ');
    text_safe(&out, script->file);
    buf_text(&out, "  ");
    text_safe(&out, title_of(console, script));
    if (!err) write_summary(report, &out, result);
    buf_byte(&out, '\n');
    if (err) {
        buf_printf(&out, "    %.*s:%u:%u: it cannot be played: ", STR_ARG(script->file), script->line, script->column);
        text_safe(&out, str_from(err->message));
        buf_byte(&out, '\n');
    }
    for (size_t i = 0; i < result->fault_count; i++) write_fault(report, &out, script, &result->faults[i]);
    if (!ok || !console->quiet) console_print(console, &out);
}

// ---- json

static bool add_json(struct test_report *report, const struct trial_script *script, const struct trial_result *result,
                     const struct error *err, bool ok, int64_t took_us)
{
    struct arena *arena = &report->console->arena;
    struct json faults = json_array();
    struct json one = JSON_OF(arena, {"file", json_string(script->file)},
                              {"name", json_string(title_of(report->console, script))},
                              {"line", json_int(script->line)}, {"passed", json_bool(ok)},
                              {"virtualMs", json_int(result->virtual_ms)}, {"tookUs", json_int(took_us)});
    if (err)
        JSON_ADD(arena, &one, {"error", json_copied(arena, str_from(err->message))});
    else
        JSON_ADD(arena, &one, {"status", json_word(run_status_name(result->story.runs[0].status))});
    for (size_t i = 0; i < result->fault_count; i++) {
        const struct trial_fault *fault = &result->faults[i];
        json_append(arena, &faults,
                    JSON_OF(arena, {"line", json_int(fault->line)}, {"column", json_int(fault->column)},
                            {"what", json_copied(arena, fault->what)}, {"expected", json_copied(arena, fault->expected)},
                            {"got", json_copied(arena, fault->got)}, {"more", json_copied(arena, fault->more)}));
    }
    JSON_ADD(arena, &one, {"faults", faults});
    json_append(arena, &report->tests, one);
    return json_ok(&report->tests);
}

// ---- junit

static void add_xml(struct test_report *report, const struct trial_script *script, const struct trial_result *result,
                    const struct error *err, int64_t took_us)
{
    struct buf *out = &report->xml;
    buf_text(out, "  <testcase classname=\"");
    buf_xml(out, script->file);
    buf_text(out, "\" name=\"");
    buf_xml(out, title_of(report->console, script));
    buf_printf(out, "\" time=\"%lld.%06lld\"", (long long)(took_us / 1000000), (long long)(took_us % 1000000));
    if (!err && result->fault_count == 0) {
        buf_text(out, "/>\n");
        return;
    }
    buf_text(out, ">\n");
    if (err) {
        buf_text(out, "    <error message=\"");
        buf_xml(out, str_from(err->message));
        buf_text(out, "\"/>\n");
    }
    for (size_t i = 0; i < result->fault_count; i++) {
        const struct trial_fault *fault = &result->faults[i];
        buf_text(out, "    <failure message=\"");
        buf_xml(out, fault->what);
        buf_text(out, "\">");
        buf_xml(out, script->file);
        buf_printf(out, ":%u:%u\nexpected ", fault->line, fault->column);
        buf_xml(out, fault->expected);
        buf_text(out, "\ngot ");
        buf_xml(out, fault->got);
        if (fault->more.len) buf_byte(out, '\n');
        buf_xml(out, fault->more);
        buf_text(out, "</failure>\n");
    }
    buf_text(out, "  </testcase>\n");
}

// ---- the whole

int test_report_add(struct test_report *report, const struct trial_script *script, const struct trial_result *result,
                    const struct error *err, int64_t took_us)
{
    bool ok = !err && result->fault_count == 0;
    report->passed += ok;
    report->failed += !ok;
    report->took_us += took_us;
    report->virtual_ms += result->virtual_ms;
    if (report->format == FORMAT_JSON) {
        if (!add_json(report, script, result, err, ok, took_us)) return console_nomem(report->console);
    } else if (report->format == FORMAT_JUNIT) {
        add_xml(report, script, result, err, took_us);
    } else {
        write_text(report, script, result, err, ok);
    }
    return EXIT_OK;
}

void test_report_invalid(struct test_report *report, struct str file)
{
    report->invalid++;
    if (report->format != FORMAT_JUNIT) return;
    buf_text(&report->xml, "  <testcase classname=\"");
    buf_xml(&report->xml, file);
    buf_text(&report->xml, "\" name=\"(file)\"><error message=\"the test file is invalid\"/></testcase>\n");
}

static void end_text(struct test_report *report)
{
    struct console *console = report->console;
    char virtual_time[24];
    struct buf out SCOPED(buf_release) = buf_of(4096);
    duration_format(report->virtual_ms, virtual_time);
    buf_printf(&out, "%u passed, %u failed", report->passed, report->failed);
    if (report->invalid) buf_printf(&out, ", %u file%s invalid", report->invalid, report->invalid == 1 ? "" : "s");
    buf_printf(&out, " (%s of virtual time in %lld.%lld ms)\n", virtual_time, (long long)(report->took_us / 1000),
               (long long)(report->took_us % 1000 / 100));
    console_print(console, &out);
}

void test_report_end(struct test_report *report)
{
    struct console *console = report->console;
    if (report->format == FORMAT_JSON) {
        struct json all = JSON_OF(&report->console->arena, {"passed", json_int(report->passed)},
                                  {"failed", json_int(report->failed)}, {"invalid", json_int(report->invalid)},
                                  {"tests", report->tests});
        bool ok = json_ok(&all);
        if (ok)
            print_json(console, FORMAT_JSON, &all);
        else
            console_nomem(console);
        return;
    }
    if (report->format == FORMAT_JUNIT) {
        struct buf out SCOPED(buf_release) = buf_of((size_t)256 << 20);
        buf_printf(&out,
                   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"cairn\" tests=\"%u\" "
                   "failures=\"%u\" errors=\"%u\">\n",
                   report->passed + report->failed + report->invalid, report->failed, report->invalid);
        buf_add(&out, buf_str(&report->xml));
        buf_text(&out, "</testsuite>\n");
        console_print(console, &out);
        return;
    }
    end_text(report);
}
