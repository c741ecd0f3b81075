// The canonical layout of a document, and the proof that it means what it meant.
#include "author/fmt.h"

// The compiled program without places and hashes: those change with every blank.
enum code author_meaning(struct buf *out, const struct program *program, struct error *err)
{
    struct buf dump SCOPED(buf_release) = buf_of((size_t)256 << 20);
    program_dump(&dump, program);
    struct str rest = buf_str(&dump);
    for (uint32_t number = 0; rest.len > 0; number++) {
        struct str line = str_cut(rest, '\n', &rest);
        size_t end = line.len;
        if (number == 0) { // kind "id" version "v" [schema s] sha256 hex
            while (end > 0 && line.ptr[end - 1] != ' ') end--;
            bool hashed = str_eq(program->plan_version, (struct str){program->sha256_hex, 12});
            if (hashed) {
                buf_printf(out, "%s ", document_kind_name(program->kind));
                json_write_string(out, program->plan_id);
                buf_text(out, " version of its bytes\n");
                continue;
            }
        } else {
            // " @line:column" at the end of a step
            while (end > 0 && ((line.ptr[end - 1] >= '0' && line.ptr[end - 1] <= '9') || line.ptr[end - 1] == ':'))
                end--;
            end = end > 1 && line.ptr[end - 1] == '@' && line.ptr[end - 2] == ' ' ? end - 2 : line.len;
        }
        buf_add(out, str_slice(line, 0, end));
        buf_byte(out, '\n');
    }
    bool ok = buf_ok(&dump) && buf_ok(out);
    return ok ? OK : error_nomem(err);
}

static bool is_json(struct str text)
{
    text = str_trim(text);
    if (str_starts(text, STR("\xEF\xBB\xBF"))) text = str_trim(str_slice(text, 3, text.len));
    return text.len > 0 && (text.ptr[0] == '{' || text.ptr[0] == '[');
}

static enum code lay_out(struct str text, struct arena *arena, struct buf *out, struct error *err)
{
    if (is_json(text))
        return fmt_json(str_starts(text, STR("\xEF\xBB\xBF")) ? str_slice(text, 3, text.len) : text, arena, out, err);
    fmt_yaml(text, out);
    return buf_ok(out) ? OK : error_nomem(err);
}

// The same values, comments aside, whatever the layout.
static bool same_tree(struct str a, struct str b, struct arena *arena)
{
    struct diagnostics ignored;
    struct json x, y;
    diagnostics_init(&ignored, arena);
    return doc_tree(a, STR("a"), &doc_limits_default, arena, &x, &ignored) == OK &&
           doc_tree(b, STR("b"), &doc_limits_default, arena, &y, &ignored) == OK && json_equal(&x, &y);
}

enum code author_same(const struct program *program, struct str text, const struct program_loader *loader,
                      struct arena *arena, bool *same, struct error *err)
{
    struct diagnostics ignored;
    struct program *other = NULL;
    *same = false;
    diagnostics_init(&ignored, arena);
    enum code rc = program_load(text, program->file, loader, &ignored, &other, err);
    if (rc == E_INVALID) return OK;
    if (rc) return rc;
    struct buf a SCOPED(buf_release) = buf_of((size_t)256 << 20);
    struct buf b SCOPED(buf_release) = buf_of((size_t)256 << 20);
    rc = author_meaning(&a, program, err);
    if (!rc) rc = author_meaning(&b, other, err);
    *same = !rc && str_eq(buf_str(&a), buf_str(&b));
    program_release(other);
    return rc;
}

enum code author_format(const struct program *program, const struct program_loader *loader, struct arena *arena,
                        struct str *out, struct error *err)
{
    bool same = false;
    struct buf once SCOPED(buf_release) = buf_of((size_t)64 << 20);
    struct buf twice SCOPED(buf_release) = buf_of((size_t)64 << 20);
    enum code rc = lay_out(program->text, arena, &once, err);
    if (!rc) rc = lay_out(buf_str(&once), arena, &twice, err);
    if (!rc && !(str_eq(buf_str(&once), buf_str(&twice)) && same_tree(program->text, buf_str(&once), arena)))
        rc = error_set(err, E_UNSUPPORTED, "its layout cannot be changed without changing what it says");
    if (!rc) *out = arena_copy(arena, buf_str(&once));
    if (!rc && !out->ptr) rc = error_nomem(err);
    if (!rc) rc = author_same(program, *out, loader, arena, &same, err);
    if (!rc && !same) rc = error_set(err, E_UNSUPPORTED, "its layout cannot be changed without changing what it says");
    return rc;
}

enum code author_canonical(const struct program *program, const struct program_loader *loader, struct arena *arena,
                           struct str *out, struct error *err)
{
    struct diagnostics ignored;
    struct json tree;
    bool same = false;
    diagnostics_init(&ignored, arena);
    if (doc_tree(program->text, program->file, &doc_limits_default, arena, &tree, &ignored)) return error_nomem(err);
    struct buf flat SCOPED(buf_release) = buf_of((size_t)64 << 20);
    struct buf laid SCOPED(buf_release) = buf_of((size_t)64 << 20);
    json_write(&flat, &tree);
    struct str text = arena_copy(arena, buf_str(&flat));
    enum code rc = text.ptr ? fmt_json(text, arena, &laid, err) : error_nomem(err);
    if (!rc) *out = arena_copy(arena, buf_str(&laid));
    if (!rc && !out->ptr) rc = error_nomem(err);
    if (!rc) rc = author_same(program, *out, loader, arena, &same, err);
    if (!rc && !same) rc = error_set(err, E_UNSUPPORTED, "it does not mean the same as JSON");
    return rc;
}
