// What the files of view/ share.
#ifndef CAIRN_VIEW_INTERNAL_H
#define CAIRN_VIEW_INTERNAL_H

#include "view/view.h"

// The step with this path, made when it is new. NULL: out of memory.
struct step_view *view_step_make(struct run_view *view, struct str id);
// Copies into the view's arena; false when memory ran out.
bool view_keep(struct run_view *view, struct str text, struct str *out) MUST_CHECK;
// "loop[2].tick" is the step tick in the scope of loop, whatever the iteration. NULL: the program has no such step.
const struct program_step *view_declared(const struct program *program, struct str path);
bool view_tried_again(const struct step_view *step); // an attempt of it, or of a task of it, failed, and the next one follows by itself

// ---- playbooks
enum { VIEW_ID_MAX = 1100 };
// The step's id in a view: its name, from the second visit on <name>:run:<visit> (C-65). In `text` when it is composed.
struct str view_visit_id(const struct moment *moment, char text[VIEW_ID_MAX]);
struct str view_visit_name(struct str id); // the name alone
// What is recorded of tasks, iterations and admission, of a visit that is there. False: out of memory.
bool view_fold_playbook(struct run_view *view, struct step_view *step, const struct moment *moment) MUST_CHECK;
bool view_fold_awaited(struct run_view *view, struct step_view *step, const struct moment *moment) MUST_CHECK; // EVENT_AWAITED
bool view_fold_skipped(struct run_view *view, struct step_view *step, const struct moment *moment) MUST_CHECK;

// Moments of steps. Returns false when memory ran out.
bool view_fold_step(struct run_view *view, const struct moment *moment, uint64_t seq) MUST_CHECK;

#endif
