#include "term/crash_report.h"

#include "term/text.h"

#include "base/civil.h"

#include <string.h>

#define FAILURES_SHOWN 10

static const char *const columns[] = {"append", "sync", "dispatch", "answer"};

// "killed after the dispatch of load (attempt 1)"
static void write_kill(struct buf *out, const struct crash_report *report, uint32_t point)
{
    const struct crash_point *at = &report->points[point - 1];
    buf_printf(out, "killed %s ", boundary_words(at->boundary));
    text_safe(out, at->label.len ? at->label : STR("a batch without events"));
}

static void write_world_number(struct buf *out, const struct crash_world *world)
{
    buf_printf(out, "%u", world->first);
    if (world->second) buf_printf(out, ".%u", world->second);
}

// The command that plays a world again.
static void write_replay(struct crash_show *show, struct buf *out, const struct crash_world *world)
{
    buf_printf(out, "%s crashtest ", show->console->self);
    text_safe(out, show->path);
    if (show->script->name.len) {
        buf_text(out, " --filter ");
        json_write_string(out, show->script->name);
    }
    if (show->sandbox) buf_text(out, " --sandbox");
    buf_text(out, " --world ");
    write_world_number(out, world);
    buf_byte(out, '\n');
}

// ---- head

static void write_varying(struct buf *out, const struct crash_report *report)
{
    const struct story *story = &report->calm.story;
    const char *before = "  not compared, because they differ undisturbed too: the outputs of ";
    for (size_t i = 0; i < story->step_count; i++) {
        if (!story->steps[i].varies) continue;
        buf_text(out, before);
        text_safe(out, story->steps[i].path);
        before = ", ";
    }
    if (before[0] == ',') buf_byte(out, '\n');
}

static void write_head(struct crash_show *show, struct buf *out, const struct crash_report *report)
{
    const struct story_run *run = &report->calm.story.runs[0];
    char took[24];
    duration_format(report->calm.virtual_ms, took);
    text_safe(out, show->path);
    if (show->script->name.len) {
        buf_text(out, ", ");
        text_safe(out, show->script->name);
    }
    buf_printf(out, ": %u steps ran (%u external, %u pure), %s after %s of virtual time, %zu boundaries\n",
               report->external_steps + report->pure_steps, report->external_steps, report->pure_steps,
               run_status_name(run->status), took, report->point_count);
    enum look look = report->failed ? LOOK_FAILED : LOOK_DONE;
    tone_text(out, &show->console->out, look_tone(look), look_glyph(look, show->console->out.utf8));
    buf_printf(out, " %zu world%s", report->world_count, report->world_count == 1 ? "" : "s");
    if (report->world_total > report->world_count)
        buf_printf(out, " (drawn from %llu)", (unsigned long long)report->world_total);
    buf_text(out, " killed and recovered: ");
    if (report->failed)
        buf_printf(out, "%u FAILED\n", report->failed);
    else
        buf_text(out, "nothing lost\n  same path and outputs, no finished step ran again, every log verifies\n");
    write_varying(out, report);
}

// A run that ends early has fewer boundaries than it could have.
static void write_early_end(struct buf *out, const struct crash_report *report)
{
    const struct story_run *run = &report->calm.story.runs[0];
    if (run->status == RUN_STATUS_FAILED && run->failed_step.len) {
        buf_text(out, "  undisturbed it fails at ");
        text_safe(out, run->failed_step);
        buf_text(out, ": ");
        text_safe(out, run->fault.message);
        buf_text(out, "\n  hint: say in a test file what steps give back, or record one: cairn test record RUN --out "
                      "NAME.test.yaml\n");
    }
}

// ---- table

static uint32_t worlds_at(const struct crash_report *report, struct str step, const char *column)
{
    uint32_t count = 0;
    for (size_t i = 0; i < report->world_count; i++) {
        const struct crash_world *world = &report->worlds[i];
        const struct crash_point *point = &report->points[world->first - 1];
        count += !world->second && str_eq(point->step, step) && strcmp(boundary_column(point->boundary), column) == 0;
    }
    return count;
}

static uint32_t twice_of(const struct crash_report *report, struct str step)
{
    uint32_t count = 0;
    for (size_t i = 0; i < report->effect_count; i++)
        if (str_eq(report->effects[i].path, step)) count += report->effects[i].worlds;
    return count;
}

static void write_row(struct crash_show *show, struct buf *out, const struct crash_report *report, struct str name,
                      const char *kind, struct str step, size_t width)
{
    struct buf cell SCOPED(buf_release) = buf_of(4096);
    text_safe(&cell, name);
    buf_text(out, "  ");
    text_cut(out, buf_str(&cell), width, show->console->out.utf8);
    size_t shown = text_width(buf_str(&cell));
    text_pad(out, shown < width ? shown : width, width);
    buf_printf(out, "  %-8s", kind);
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        uint32_t count = worlds_at(report, step, columns[i]);
        if (count)
            buf_printf(out, "%10u", count);
        else
            buf_printf(out, "%10s", "-");
    }
    uint32_t twice = twice_of(report, step);
    if (twice)
        buf_printf(out, "%8u\n", twice);
    else
        buf_printf(out, "%8s\n", "-");
}

static void write_table(struct crash_show *show, struct buf *out, const struct crash_report *report)
{
    const struct story *story = &report->calm.story;
    size_t width = 10;
    for (size_t i = 0; i < story->step_count; i++)
        if (story->steps[i].path.len > width) width = story->steps[i].path.len;
    if (width > 32) width = 32;
    buf_printf(out, "\n  %-*s  %-8s", (int)width, "worlds by", "kind");
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) buf_printf(out, "%10s", columns[i]);
    buf_printf(out, "%8s\n", "twice");
    write_row(show, out, report, STR("(run)"), "", STR(""), width);
    for (size_t i = 0; i < story->step_count; i++) {
        const struct story_step *step = &story->steps[i];
        const char *kind = step->step ? step_kind_name(step->step->kind) : "";
        bool any = twice_of(report, step->path) > 0;
        for (size_t k = 0; k < ARRAY_COUNT(columns); k++) any = any || worlds_at(report, step->path, columns[k]);
        if (any) write_row(show, out, report, step->path, kind, step->path, width);
    }
}

// ---- failures

static void write_failures(struct crash_show *show, struct buf *out, const struct crash_report *report)
{
    size_t shown = 0;
    for (size_t i = 0; i < report->world_count && shown < FAILURES_SHOWN; i++) {
        const struct crash_world *world = &report->worlds[i];
        if (!world->failed) continue;
        if (shown++ == 0) buf_text(out, "\nworlds that failed\n");
        buf_text(out, "  world ");
        write_world_number(out, world);
        buf_text(out, ": ");
        write_kill(out, report, world->first);
        if (world->second) buf_text(out, ", and once more after the restart");
        buf_text(out, "\n    ");
        tone_text(out, &show->console->out, TONE_BAD, world->rule);
        buf_text(out, "    ");
        text_safe(out, world->message);
        buf_text(out, "\n    replay  ");
        write_replay(show, out, world);
    }
    if (report->failed > shown) buf_printf(out, "  and %zu more\n", report->failed - shown);
}

// ---- effects

static const char *guard_of(const struct crash_effect *effect)
{
    if (effect->idempotent) return "idempotent: true in the test file";
    return effect->keyed ? "uses CAIRN_IDEMPOTENCY_KEY" : NULL;
}

static void write_effect(struct crash_show *show, struct buf *out, const struct crash_report *report,
                         const struct crash_effect *effect)
{
    const struct crash_world *example = &report->worlds[effect->example];
    buf_text(out, "  ");
    tone_begin(out, &show->console->out, TONE_BOLD);
    text_safe(out, effect->path);
    if (effect->logical > 1) buf_printf(out, "#%u", effect->logical);
    tone_end(out, &show->console->out, TONE_BOLD);
    if (effect->step)
        buf_printf(out, "  %s  %.*s:%u:%u", step_kind_name(effect->step->kind), STR_ARG(effect->program->file),
                   effect->step->line, effect->step->column);
    buf_text(out, "\n    does    ");
    text_safe(out, effect->does);
    buf_printf(out, "\n    when    killed after its dispatch, before its result was durable: %u world%s\n",
               effect->worlds, effect->worlds == 1 ? "" : "s");
    buf_text(out, "            first ");
    write_kill(out, report, example->first);
    buf_printf(out, "\n    tries   attempt %u, as engine attempts 1 to %u; on each CAIRN_IDEMPOTENCY_KEY=<run>:",
               effect->logical, effect->most);
    text_safe(out, effect->key_step);
    buf_printf(out, ":%u\n", effect->key_logical);
    if (guard_of(effect)) buf_printf(out, "    guard   %s\n", guard_of(effect));
    buf_text(out, "    replay  ");
    write_replay(show, out, example);
}

static void write_effects(struct crash_show *show, struct buf *out, const struct crash_report *report)
{
    uint32_t count = 0;
    for (size_t i = 0; i < report->effect_count; i++) count += report->effects[i].worlds > 0;
    if (count == 0) {
        buf_text(out, "\nno effect can happen twice\n");
        return;
    }
    buf_printf(out, "\neffects that can happen twice: %u, of these %u without a guard\n", count, report->unguarded);
    for (size_t i = 0; i < report->effect_count; i++)
        if (report->effects[i].worlds > 0) write_effect(show, out, report, &report->effects[i]);
    if (report->unguarded == 0) return;
    size_t wide = show->console->out.columns > 100 ? 100 : show->console->out.columns;
    buf_text(out, "  advice\n");
    text_wrap(out,
              STR("A step that is running when the machine dies runs again: at least once is all that anybody can "
                  "promise. Give $CAIRN_IDEMPOTENCY_KEY to what the step calls (a request's Idempotency-Key, a "
                  "unique column), or look first whether it is done, or split the step so that what must not "
                  "repeat stands alone and last. A step that may be repeated says so in a test file: "
                  "mocks: {STEP: {idempotent: true}}."),
              4, wide);
}

static void write_left(struct buf *out, const struct crash_report *report)
{
    size_t shown = 0;
    for (size_t i = 0; i < report->world_count; i++) {
        const struct crash_world *world = &report->worlds[i];
        if (world->left.len == 0) continue;
        if (shown++ == 0) buf_text(out, "\nleft behind otherwise than undisturbed\n");
        if (shown > FAILURES_SHOWN) continue;
        buf_text(out, "  world ");
        write_world_number(out, world);
        buf_text(out, ": ");
        text_safe(out, world->left);
        buf_byte(out, '\n');
    }
    if (shown > FAILURES_SHOWN) buf_printf(out, "  and %zu more worlds\n", shown - FAILURES_SHOWN);
}

// ---- json

static struct json world_value(struct arena *arena, const struct crash_world *world)
{
    struct buf text = buf_of(64);
    write_world_number(&text, world);
    return json_text_made(buf_keep(&text, arena));
}

static struct json effects_json(struct arena *arena, const struct crash_report *report)
{
    struct json list = json_array();
    for (size_t i = 0; i < report->effect_count; i++) {
        const struct crash_effect *effect = &report->effects[i];
        if (effect->worlds == 0) continue;
        json_append(arena, &list,
                    JSON_OF(arena, {"step", json_copied(arena, effect->path)}, {"attempt", json_int(effect->logical)},
                            {"does", json_copied(arena, effect->does)}, {"worlds", json_int(effect->worlds)},
                            {"times", json_int(effect->most)},
                            {"example", world_value(arena, &report->worlds[effect->example])},
                            {"idempotent", json_bool(effect->idempotent)}, {"usesKey", json_bool(effect->keyed)},
                            {"kind", effect->step ? json_word(step_kind_name(effect->step->kind)) : json_none()},
                            {"line", effect->step ? json_int(effect->step->line) : json_none()}));
    }
    return list;
}

static struct json worlds_json(struct arena *arena, const struct crash_report *report)
{
    struct json list = json_array();
    for (size_t i = 0; i < report->world_count; i++) {
        const struct crash_world *world = &report->worlds[i];
        const struct crash_point *point = &report->points[world->first - 1];
        struct json twice = json_array();
        for (size_t k = 0; k < world->twice_count; k++)
            json_append(arena, &twice, json_copied(arena, report->effects[world->twice[k]].path));
        json_append(arena, &list,
                    JSON_OF(arena, {"world", world_value(arena, world)},
                            {"killed", json_word(boundary_words(point->boundary))},
                            {"of", json_copied(arena, point->label)}, {"step", json_copied(arena, point->step)},
                            {"passed", json_bool(!world->failed)}, {"twice", twice},
                            {"rule", world->failed ? json_copied(arena, str_from(world->rule)) : json_none()},
                            {"message", world->failed ? json_copied(arena, world->message) : json_none()},
                            {"left", json_copied_some(arena, world->left)}));
    }
    return list;
}

static bool report_json(struct crash_show *show, const struct crash_report *report)
{
    struct arena *arena = &show->console->arena;
    struct json varying = json_array();
    for (size_t i = 0; i < report->calm.story.step_count; i++) {
        const struct story_step *step = &report->calm.story.steps[i];
        if (step->varies) json_append(arena, &varying, json_copied(arena, step->path));
    }
    json_append(arena, &show->all,
                JSON_OF(arena, {"document", json_copied(arena, show->path)},
                        {"case", json_copied(arena, show->script->name)},
                        {"status", json_word(run_status_name(report->calm.story.runs[0].status))},
                        {"externalSteps", json_int(report->external_steps)},
                        {"pureSteps", json_int(report->pure_steps)}, {"boundaries", json_count(report->point_count)},
                        {"worldsTotal", json_count(report->world_total)}, {"failed", json_int(report->failed)},
                        {"unguarded", json_int(report->unguarded)}, {"varying", varying},
                        {"tookUs", json_int(report->took_us)}, {"effects", effects_json(arena, report)},
                        {"worlds", worlds_json(arena, report)}));
    return json_ok(&show->all);
}

// ---- the whole

int crash_show_report(struct crash_show *show, const struct crash_report *report)
{
    struct console *console = show->console;
    double seconds = (double)report->took_us / 1e6;
    console_note(console, "%zu worlds in %.2f s (%.0f worlds/s), seed %s", report->world_count, seconds,
                 seconds > 0 ? (double)report->world_count / seconds : 0.0, show->seed.ptr);
    if (show->format == FORMAT_JSON) return report_json(show, report) ? EXIT_OK : console_nomem(console);
    struct buf out SCOPED(buf_release) = buf_of((size_t)64 << 20);
    if (show->count++) buf_byte(&out, '\n');
    write_head(show, &out, report);
    write_early_end(&out, report);
    write_table(show, &out, report);
    write_failures(show, &out, report);
    write_effects(show, &out, report);
    write_left(&out, report);
    if (show->strict && report->unguarded)
        buf_text(&out, "\n--strict: an effect without a guard can happen twice (exit 20)\n");
    console_print(console, &out);
    return EXIT_OK;
}

void crash_show_line(struct crash_show *show, const char *text)
{
    struct buf out SCOPED(buf_release) = buf_of(8192);
    bool mark = strncmp(text, "-----", 5) == 0 || strncmp(text, "BROKEN", 6) == 0;
    if (mark) tone_begin(&out, &show->console->out, TONE_BAD);
    text_safe(&out, str_from(text));
    if (mark) tone_end(&out, &show->console->out, TONE_BAD);
    buf_byte(&out, '\n');
    console_print(show->console, &out);
}

void crash_show_world(struct crash_show *show, const struct crash_report *report)
{
    const struct crash_world *world = &report->worlds[0];
    struct buf out SCOPED(buf_release) = buf_of(65536);
    buf_byte(&out, '\n');
    enum look look = world->failed ? LOOK_FAILED : LOOK_DONE;
    tone_text(&out, &show->console->out, look_tone(look), look_glyph(look, show->console->out.utf8));
    buf_text(&out, " world ");
    write_world_number(&out, world);
    buf_text(&out, ", ");
    write_kill(&out, report, world->first);
    buf_text(&out, world->failed ? ": " : ": nothing lost, same path and outputs, the log verifies\n");
    if (world->failed) {
        buf_printf(&out, "%s: ", world->rule);
        text_safe(&out, world->message);
        buf_byte(&out, '\n');
    }
    for (size_t i = 0; i < world->twice_count; i++) {
        const struct crash_effect *effect = &report->effects[world->twice[i]];
        buf_text(&out, "  happened ");
        buf_printf(&out, "%u times: ", effect->most);
        text_safe(&out, effect->path);
        buf_text(&out, "  ");
        text_safe(&out, effect->does);
        buf_byte(&out, '\n');
    }
    if (world->left.len) {
        buf_text(&out, "  left behind: ");
        text_safe(&out, world->left);
        buf_byte(&out, '\n');
    }
    console_print(show->console, &out);
}

void crash_show_end(struct crash_show *show)
{
    if (show->format != FORMAT_JSON || show->all.count == 0) return;
    print_json(show->console, FORMAT_JSON, show->all.count == 1 ? &show->all.items[0] : &show->all);
}
