// One object of a configuration, member by member. The first fault is kept, with its place and its name ("sinks[2].url: must be a text");
// what is asked for after it gives nothing. So there is one check, at the end:
//
//      form_begin(&form, "limits", object, arena, err);
//      form_number(&form, "files", 1, 1000, &out->files);
//      return form_end(&form);
//
//  - A member that is not there leaves what `out` holds.
//  - form_end refuses members that were not asked for: at most 64 are known.
#ifndef CAIRN_JSON_FORM_H
#define CAIRN_JSON_FORM_H

#include "base/arena.h"
#include "json/json.h"

struct form {
    const char *what;          // begins what is said; "": nothing does
    const struct json *object; // NULL: nothing is there
    struct arena *arena;       // texts are copied into it, with a NUL behind; NULL: they are borrowed
    struct error *err;
    enum code rc;   // of the first fault
    uint64_t asked; // a bit for each member
};

void form_begin(struct form *form, const char *what, const struct json *object, struct arena *arena,
                struct error *err); // an object, or NULL
// E_INVALID, at the value of that name, or at the object (NULL). Returns what the form ends with.
enum code form_fail(struct form *form, const char *name, const char *why);
enum code form_nomem(struct form *form);
enum code form_end(struct form *form) MUST_CHECK;

const struct json *form_take(struct form *form, const char *name, enum json_type type); // NULL: not there, or wrong
const struct json *form_any(struct form *form, const char *name);
// The member of that name as a form of its own, an object: `part->what` is its name. False: it is not there, or wrong.
bool form_part(struct form *form, const char *name, struct form *part);
void form_text(struct form *form, const char *name, struct str *out); // not empty, without NUL
void form_path(struct form *form, const char *name, struct str *out); // absolute
void form_flag(struct form *form, const char *name, bool *out);
void form_number(struct form *form, const char *name, int64_t low, int64_t high, int64_t *out);
void form_count(struct form *form, const char *name, uint32_t low, uint32_t high, uint32_t *out);
void form_choice(struct form *form, const char *name, const char *const *words, int *out); // by index; NULL ends them, "" is no word
// A list of at most `most` texts as form_text has them, or of paths.
void form_texts(struct form *form, const char *name, bool paths, size_t most, const struct str **out, size_t *count);

#endif
