// What is to be different: from flags, from a file, from an editor.
#include "cli/fork.h"
#include "cli/inputs.h"

#include "author/author.h"
#include "doc/doc.h"
#include "os/os.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int add_output(struct cli *cli, struct changes *changes, struct str step, struct json value)
{
    for (size_t i = 0; i < changes->count; i++)
        if (str_eq(changes->outputs[i].step, step)) {
            changes->outputs[i].value = value;
            return EXIT_OK;
        }
    if (!ARENA_ROOM(&cli->io.arena, changes->outputs, changes->count, &changes->capacity)) return cli_nomem(cli);
    changes->outputs[changes->count++] = (struct fork_output){step, value};
    return EXIT_OK;
}

// "load.output": the output of the step load, as documents refer to it.
static bool names_output(const struct fork *base, struct str key, struct str *step)
{
    static const struct str tail = {".output", 7};
    if (key.len <= tail.len || !str_eq(str_slice(key, key.len - tail.len, key.len), tail)) return false;
    *step = str_slice(key, 0, key.len - tail.len);
    return !json_get(&base->program->inputs, key);
}

int changes_read(struct cli *cli, const struct fork *base, struct changes *out)
{
    struct str pair, key, step;
    struct json value;
    size_t cursor = 0;
    *out = (struct changes){0};
    int code = inputs_file(cli, &out->inputs);
    while (!code && args_next(&cli->args, FLAG_SET, &cursor, &pair)) {
        code = inputs_pair(cli, base->program, pair, &key, &value);
        if (code) break;
        code = names_output(base, key, &step) ? add_output(cli, out, step, value)
                                              : inputs_put(cli, &out->inputs, key, value);
    }
    return code;
}

// ---- the file
static const char head_of_file[] =
    "# Inputs and outputs of the run as it was. What you change here is different in the new run: steps that\n"
    "# used a changed input run again, an output is taken as it stands here, and everything that hangs on\n"
    "# it runs again. What you leave alone stays. Leave the file as it is to change nothing.\n";

static bool known_outputs(struct cli *cli, const struct fork *base, struct json *out)
{
    *out = json_object();
    for (uint32_t i = 0; i < base->program->top_count; i++) {
        struct str id = base->program->steps[i].id;
        uint32_t step = program_find(base->before, PROGRAM_TOP, id);
        if (step == PROGRAM_TOP || kernel_state(base->source, step) != NODE_SUCCESS) continue;
        if (kernel_blob(base->source, step)) continue; // too large for an editor: --set STEP.output=VALUE, or a file
        const struct json *value = kernel_value(base->source, step);
        if (!json_put(&cli->io.arena, out, id, value ? *value : json_null())) return false;
    }
    return true;
}

static int compare_inputs(struct cli *cli, const struct fork *base, const struct json *given, struct changes *out)
{
    int code = EXIT_OK;
    for (uint32_t i = 0; !code && json_is(given, JSON_OBJECT) && i < given->count; i++) {
        const struct json *old = json_get(&base->inputs, given->members[i].key);
        if (old && json_equal(old, &given->members[i].value)) continue;
        code = inputs_put(cli, &out->inputs, given->members[i].key, given->members[i].value);
    }
    return code;
}

static int compare_outputs(struct cli *cli, const struct json *known, const struct json *given, struct changes *out)
{
    int code = EXIT_OK;
    for (uint32_t i = 0; !code && json_is(given, JSON_OBJECT) && i < given->count; i++) {
        const struct json *old = json_get(known, given->members[i].key);
        if (old && json_equal(old, &given->members[i].value)) continue;
        code = add_output(cli, out, given->members[i].key, given->members[i].value);
    }
    return code;
}

static int check_shape(struct cli *cli, const char *path, const struct json *tree)
{
    if (!json_is(tree, JSON_OBJECT) && tree->type != JSON_NULL)
        return cli_fail(cli, EXIT_INVALID, "%s: it holds \"inputs\" and \"outputs\", this is %s", path,
                        json_type_name((enum json_type)tree->type));
    for (uint32_t i = 0; json_is(tree, JSON_OBJECT) && i < tree->count; i++) {
        const struct json_member *member = &tree->members[i];
        bool known = str_is(member->key, "inputs") || str_is(member->key, "outputs");
        bool object = json_is(&member->value, JSON_OBJECT) || member->value.type == JSON_NULL;
        if (known && object) continue;
        return cli_fail(cli, EXIT_INVALID,
                        "%s:%u: %s \"%.*s\"; there are inputs: {NAME: VALUE} and outputs: {STEP: VALUE}", path,
                        member->line, known ? "an object is needed for" : "there is no", STR_ARG(member->key));
    }
    return EXIT_OK;
}

static int read_edited(struct cli *cli, const char *path, const struct fork *base, const struct json *known,
                       struct changes *out)
{
    struct error err = {0};
    struct str text;
    struct json tree = json_null();
    struct diagnostics diagnostics;
    const char *file = strcmp(path, "-") == 0 ? "/dev/stdin" : path;
    if (os_read_file(file, doc_limits_default.size_max, &cli->io.arena, &text, &err)) return cli_error(cli, &err);
    diagnostics_init(&diagnostics, &cli->io.arena);
    bool blank = str_trim(text).len == 0;
    enum code rc =
        blank ? OK : doc_tree(text, str_from(path), &doc_limits_default, &cli->io.arena, &tree, &diagnostics);
    if (rc == E_NOMEM) return cli_nomem(cli);
    if (rc) {
        struct buf told SCOPED(buf_release) = buf_of((size_t)1 << 20);
        for (size_t i = 0; i < diagnostics.count; i++)
            diagnostic_write(&told, &diagnostics.items[i], text, cli->io.err.color);
        cli_talk(cli, &told);
        return EXIT_INVALID;
    }
    int code = check_shape(cli, path, &tree);
    if (!code) code = compare_inputs(cli, base, json_key(&tree, "inputs"), out);
    return code ? code : compare_outputs(cli, known, json_key(&tree, "outputs"), out);
}

// ---- the editor
static int run_editor(struct cli *cli, const char *path)
{
    const char *editor = getenv("VISUAL");
    if (!editor || !editor[0]) editor = getenv("EDITOR");
    if (!editor || !editor[0]) editor = "vi";
    // A command with arguments, as everybody reads these variables: the shell splits it.
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"},          (char *)(uintptr_t)cli_format(cli, "%s \"$1\"", editor),
                    (char[]){"sh"}, (char *)(uintptr_t)path, NULL};
    pid_t pid;
    int status = 0;
    if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) != 0)
        return cli_fail(cli, EXIT_ERROR, "cannot start the editor: %s", editor);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return EXIT_OK;
    cli_fail(cli, EXIT_ERROR, "the editor (%s) did not end well; no run was made", editor);
    return cli_hint(cli, "set $VISUAL or $EDITOR, or write the changes to a file: --edit-file FILE");
}

static int write_draft(struct cli *cli, const struct fork *base, const struct json *known, char *path)
{
    struct json tree;
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    buf_text(&text, head_of_file);
    tree = JSON_OF(&cli->io.arena, {"inputs", base->inputs}, {"outputs", *known});
    bool ok = json_ok(&tree);
    if (ok) yaml_write(&text, &tree);
    int fd = ok && buf_ok(&text) ? mkstemps(path, 5) : -1;
    ok = fd >= 0 && os_write_all(fd, buf_str(&text));
    if (fd >= 0 && close(fd) != 0) ok = false;
    return ok ? EXIT_OK : cli_fail(cli, EXIT_ERROR, "cannot write %s: %s", path, strerror(errno));
}

int changes_edit(struct cli *cli, const struct fork *base, struct changes *out, bool *unchanged)
{
    struct json known;
    char path[4096];
    *unchanged = false;
    if (!known_outputs(cli, base, &known)) return cli_nomem(cli);
    if (args_has(&cli->args, FLAG_EDIT_FILE))
        return read_edited(cli, args_text(&cli->args, FLAG_EDIT_FILE, "").ptr, base, &known, out);
    if (!args_has(&cli->args, FLAG_EDIT)) return EXIT_OK;
    const char *dir = getenv("TMPDIR");
    const char *name = cli_format(cli, "%.3000s/cairn-fork-XXXXXX.yaml", dir && dir[0] ? dir : "/tmp");
    memcpy(path, name, strlen(name) + 1);
    int code = write_draft(cli, base, &known, path);
    if (code) return code;
    uint32_t inputs = out->inputs.count;
    size_t outputs = out->count;
    code = run_editor(cli, path);
    if (!code) {
        code = read_edited(cli, path, base, &known, out);
        if (code) {
            cli_hint(cli, "what you wrote is kept: go on with --edit-file %s", path);
            return code;
        }
    }
    *unchanged = !code && out->inputs.count == inputs && out->count == outputs;
    (void)unlink(path);
    return code;
}
