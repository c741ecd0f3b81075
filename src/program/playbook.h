// Private to src/program: the reader of playbooks.
//
//   playbook.c       the root: metadata, executor, workload, keychain; deprecated constructs
//   playbook_step.c  a step: admission, loop, arcs, what its tasks inherit
//   playbook_task.c  tasks in all their shapes: `with`, workbook entries, timeouts, results
//   playbook_workbook.c  tasks by name, and pipelines of them
//   playbook_assert.c  what a task expects and returns
//   playbook_env.c   which variables of the environment are asked for
//   playbook_rule.c  rules, patches, conditions, templates and where their faults stand
//   playbook_old.c   what earlier generations of the language wrote otherwise
//   playbook_cursor.c  loops over the rows of a query that is asked again and again
//   playbook_net.c   once all names are known: arcs, entry, barriers, children
//
// Whatever the dialect, one name is kept for each thing; net.h says which.
#ifndef CAIRN_PROGRAM_PLAYBOOK_H
#define CAIRN_PROGRAM_PLAYBOOK_H

#include "program/internal.h"
#include "program/net.h"

enum {
    TASK_COUNT_MAX = 1000,   // of one step
    IN_FLIGHT_DEFAULT = 100, // of a parallel loop that does not say
    INLINE_MAX_DEFAULT = 65536,
    PREVIEW_MAX_DEFAULT = 1024,
};

struct arc_wanted { // an arc whose step is found when all steps are known
    struct net_arc *arc;
    const struct json *name;
};

struct child_wanted { // a task that runs another playbook
    struct net_task *task;
    const struct json *path;
    enum child_need need;
};

struct cursor_loop { // a loop over a cursor, and the step that asks it for rows: who leads to the one leads to the other
    struct str step, claim;
};

struct workbook_entry {
    struct str name;
    const struct json *tool;     // an object, or a list of tasks
    const struct json *asserted; // of a pipeline, beside it; NULL when there is nothing
};

struct playbook {
    struct reader *r;
    struct net *net;
    struct net_step *steps;     // of the workflow, by index
    const struct json *spec;    // executor.spec; NULL when there is none
    struct json workload;       // as written; an object
    const struct json *entry;   // executor.spec.entry_step
    const struct json *final;   // executor.spec.final_step
    const struct json *profile; // executor.spec.policy; NULL when there is none
    struct workbook_entry *workbook;
    uint32_t workbook_count;
    struct arc_wanted *arcs;
    size_t arc_count, arc_capacity;
    struct cursor_loop *cursors;
    size_t cursor_count, cursor_capacity;
    struct child_wanted *children;
    size_t child_count, child_capacity;
};

// Where patches stand: a task or a rule in a loop, one elsewhere, a step or an arc.
enum set_site { SET_ITERATION = 1, SET_VISIT, SET_STEP };

// What the tasks of a step come to know from around them.
struct task_site {
    struct str step;             // its name
    enum set_site sets;          // whose patches those of tasks and rules are
    const struct json *input;    // of the step; NULL when there is none
    const struct json *specs[3]; // loop.spec, step.spec, executor.spec; any may be NULL
    const struct json *controls; // `result` or `output` of the step; NULL when there are none
};

// ---- playbook_rule.c
// Compiles texts of `value`; reports every one that is no template. NULL on failure.
const struct template_tree *tree_of(struct playbook *pb, const struct json *value);
// The same, but the member `constant` of the object is taken as it is.
const struct template_tree *tree_but(struct playbook *pb, const struct json *value, const char *constant);
// Reports texts that are no templates, keeps nothing.
void tree_check(struct playbook *pb, const struct json *value);
enum when_site { WHEN_RULE = 1, WHEN_ARC };
void read_condition(struct playbook *pb, const struct json *value, enum when_site site, struct net_when *out);
// `set`, `set_ctx` and `set_iter` of an object.
void read_sets(struct playbook *pb, const struct json *object, enum set_site site, struct net_sets *out);
// A list of rules, each {when, then} or one of the shapes of `else`: calls `each` with the condition and what follows from it
// (NULL when nothing was written).
void read_rules(struct playbook *pb, const struct json *rules,
                void (*each)(struct playbook *pb, void *context, const struct json *rule, struct net_when when,
                             bool otherwise, const struct json *then),
                void *context);
// Rules of a task. Returns, beside its rules, the labels that they jump to; NULL when there are no rules.
const struct json **read_policy(struct playbook *pb, const struct json *policy, const struct task_site *site,
                                struct net_task *task);
// Seconds, as a number or a text, in milliseconds. *made: a template, which is rendered where it applies; then *ms is what it gives with
// the workload as written, if that knows it.
void read_seconds(struct playbook *pb, const struct json *value, const char *name, int64_t *ms,
                  const struct template_tree **made);
// The same of a number from 1 to `max`.
void read_many(struct playbook *pb, const struct json *value, const char *name, uint32_t max, uint32_t *count,
               const struct template_tree **made);
// A text that is a template, answered from the workload as written; false when that does not know it.
bool read_known(struct playbook *pb, const struct json *value, struct json *out);
// One of the words; a template is answered from the workload as written, with a warning.
bool read_word(struct playbook *pb, const struct json *value, const char *name, const char *const *choices,
               size_t *out);
bool read_number(struct playbook *pb, const struct json *value, const char *name, int64_t min, int64_t max,
                 int64_t *out);

// ---- playbook_advice.c
void advise_task(struct playbook *pb, const struct net_task *task);

// ---- playbook_task.c
void read_tasks(struct playbook *pb, const struct json *tool, const struct task_site *site, struct net_step *step);
bool task_field_gone(struct str key); // refused wherever a task has it
bool takes_input(struct str kind);    // the input of the step is also that of its tasks, under their own
// `inner` with what only `outer` has; mappings are merged, everything else is replaced. Either may be NULL.
struct json merged(struct playbook *pb, const struct json *inner, const struct json *outer);

// ---- playbook_workbook.c
void read_workbook(struct playbook *pb, const struct json *workbook);
// The entry that a task of kind workbook runs, or NULL (reported).
const struct json *find_entry(struct playbook *pb, const struct json *body, struct str label);
bool is_labelled(const struct json *object); // {fetch: {kind: http}}
// `tool` of a step with the tasks of pipelines in place of what runs them. *input becomes that of the only task, when it runs one.
const struct json *pipelines_today(struct playbook *pb, const struct json *tool, const struct json **input);

// ---- playbook_assert.c
struct name_list {
    struct str *items; // in the program's arena, each once
    size_t count, capacity;
};
void name_list_add(struct playbook *pb, struct name_list *list, struct str name);
// `assert` of all of the objects, innermost first: the task, its spec, its entry of the workbook.
void read_assert(struct playbook *pb, const struct json *const *layers, size_t count, struct net_task *task);

// ---- playbook_step.c
void read_playbook_step(struct playbook *pb, const struct json *object, struct draft *draft, struct net_step *step);
// Members that have been given up: reported with what to write instead; true when `key` is one.
struct deprecated {
    const char *name, *instead;
};
bool refuse_deprecated(struct playbook *pb, const struct json_member *member, const struct deprecated *list,
                       size_t count, const char *where);

// ---- playbook_old.c: today's form of something, or itself when it is that already
const struct json *step_today(struct playbook *pb, const struct json *object);
// The tool of an entry of the workbook; NULL when it has none.
const struct json *entry_today(struct playbook *pb, const struct json *entry);
struct renamed {
    const char *old, *now;
};
// `object` with its members under the names that they have now; one that has both keeps both.
const struct json *members_today(struct playbook *pb, const struct json *object, const struct renamed *names,
                                 size_t count);
const struct json *arcs_today(struct playbook *pb, const struct json *arcs);
// A task with `retry` has a policy, and the text of a script that stands in the document in its place.
const struct json *task_today(struct playbook *pb, const struct json *body);

// ---- playbook_cursor.c
// The list of steps without loops over cursors; itself when there are none.
const struct json *cursors_today(struct playbook *pb, const struct json *workflow);

// ---- playbook.c
struct playbook *playbook_read(struct reader *r, const struct json *root, struct draft_list *list);
// An unknown member: a mistake when it looks like a known one, else something that has no effect.
void unknown_member(struct playbook *pb, const struct json_member *member, const char *const *known, const char *what,
                    bool strict);
// A warning for each member that is not known, near to one or not.
void useless_members(struct playbook *pb, const struct json *object, const char *const *known, const char *what);

// ---- playbook_env.c: net.env
void find_env(struct playbook *pb, const struct json *root);
void add_env_of(struct playbook *pb, const struct program *child);

// ---- playbook_net.c
void playbook_finish(struct playbook *pb, const struct chain *chain);

#endif
