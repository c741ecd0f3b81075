// What steps give back when nobody says: 0, or an object with the fields that the document asks them for.
#include "trial/inside.h"

#include <string.h>

struct guess {
    struct arena *arena;
    const struct program *program;
    struct str *texts; // of the program's steps: what may ask for a field
    size_t text_count;
    struct trial_mock *mocks;
    size_t count, capacity;
};

static bool is_field_char(char c)
{
    return char_is_word(c) || c == '-';
}

// Puts 0 at a dotted path below `object`, unless something is there.
static bool put_path(struct arena *arena, struct json *object, struct str path)
{
    struct str rest, key = str_cut(path, '.', &rest);
    if (key.len == 0) return true;
    for (uint32_t i = 0; i < object->count; i++) {
        if (!str_eq(object->members[i].key, key)) continue;
        struct json *inner = &object->members[i].value;
        if (rest.len > 0 && inner->type != JSON_OBJECT) *inner = json_object();
        return rest.len == 0 || put_path(arena, inner, rest);
    }
    struct json value = json_int(0);
    if (rest.len > 0) {
        value = json_object();
        if (!put_path(arena, &value, rest)) return false;
    }
    return json_put(arena, object, key, value);
}

// Every "$id.output.FIELD" in `text`.
static bool find_fields(struct arena *arena, struct str text, struct str id, struct json *fields)
{
    for (size_t at = str_find(text, '$', 0); at < text.len; at = str_find(text, '$', at + 1)) {
        struct str rest = str_slice(text, at + 1, text.len);
        if (!str_starts(rest, id)) continue;
        rest = str_slice(rest, id.len, rest.len);
        if (!str_starts(rest, STR(".output."))) continue;
        rest = str_slice(rest, sizeof(".output.") - 1, rest.len);
        size_t len = 0;
        while (len < rest.len && (is_field_char(rest.ptr[len]) || rest.ptr[len] == '.')) len++;
        while (len > 0 && rest.ptr[len - 1] == '.') len--;
        struct str path = arena_copy(arena, str_slice(rest, 0, len));
        if (!path.ptr || !put_path(arena, fields, path)) return false;
    }
    return true;
}

static bool guess_output(struct guess *guess, const struct program_step *step, struct str *out)
{
    struct json fields = json_object();
    for (size_t i = 0; i < guess->text_count; i++)
        if (!find_fields(guess->arena, guess->texts[i], step->id, &fields)) return false;
    *out = fields.count ? json_line(guess->arena, &fields) : STR("0");
    return true;
}

static bool collect_texts(struct guess *guess, const struct program *program)
{
    guess->program = program;
    guess->text_count = 0;
    guess->texts = ARENA_ARRAY(guess->arena, 2 * (size_t)program->step_count + 1, struct str);
    for (uint32_t i = 0; guess->texts && i < program->step_count; i++) {
        const struct str both[] = {json_line(guess->arena, &program->steps[i].with), program->steps[i].when_text};
        for (size_t k = 0; k < ARRAY_COUNT(both); k++)
            if (both[k].len && strstr(both[k].ptr, ".output.")) guess->texts[guess->text_count++] = both[k];
    }
    return guess->texts != NULL;
}

// "outer[*].inner[*].step"
static struct str path_of(struct guess *guess, const struct program_step *step)
{
    if (step->scope == PROGRAM_TOP) return step->id;
    struct str around = path_of(guess, &guess->program->steps[step->scope]);
    return trial_format(guess->arena, "%.*s[*].%.*s", STR_ARG(around), STR_ARG(step->id));
}

static bool guess_steps(struct guess *guess, const struct program *program, struct str prefix)
{
    if (!collect_texts(guess, program)) return false;
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct program_step *step = &program->steps[i];
        struct str path = trial_format(guess->arena, "%.*s%.*s", STR_ARG(prefix), STR_ARG(path_of(guess, step)));
        if (step->child) {
            struct guess child = {
                .arena = guess->arena, .mocks = guess->mocks, .count = guess->count, .capacity = guess->capacity};
            if (!guess_steps(&child, step->child, trial_format(guess->arena, "%.*s/", STR_ARG(path)))) return false;
            guess->mocks = child.mocks;
            guess->count = child.count;
            guess->capacity = child.capacity;
            continue;
        }
        if (!kind_is_external(step->kind) || step->condition) continue;
        if (!ARENA_ROOM(guess->arena, guess->mocks, guess->count, &guess->capacity)) return false;
        guess->mocks[guess->count] = (struct trial_mock){.key = path};
        if (!guess_output(guess, step, &guess->mocks[guess->count++].output)) return false;
    }
    return true;
}

enum code trial_script_default(const struct program *program, struct arena *arena, struct trial_script *out)
{
    struct guess guess = {.arena = arena};
    if (!guess_steps(&guess, program, STR(""))) return E_NOMEM;
    *out = (struct trial_script){.document = program->file,
                                 .run = STR("test"),
                                 .inputs = json_object(),
                                 .at_ms = TRIAL_START_MS,
                                 .seed = 1,
                                 .mocks = guess.mocks,
                                 .mock_count = guess.count,
                                 .lenient = true};
    return OK;
}
