#include "cli/document.h"
#include "cli/plugins.h"

#include "os/os.h"

#include <errno.h>
#include <unistd.h>

#define FILE_SIZE_MAX ((size_t)64 << 20) // the reader's own limits are lower and say more

static enum code read_stdin(struct arena *arena, struct str *out, struct error *err)
{
    struct buf text = buf_of(FILE_SIZE_MAX);
    for (;;) {
        char *room = buf_reserve(&text, 64 * 1024);
        ssize_t n = room ? read(STDIN_FILENO, room, 64 * 1024) : -1;
        if (n < 0 && room && errno == EINTR) continue;
        if (n <= 0) {
            bool failed = n < 0;
            *out = failed ? STR("") : arena_copy(arena, buf_str(&text));
            buf_release(&text);
            if (failed && room) return os_errno(err, "read", "stdin");
            return failed || !out->ptr ? error_set(err, E_LIMIT, "stdin is too large") : OK;
        }
        text.len += (size_t)n;
    }
}

static enum code read_document(struct cli *cli, struct str path, struct str *text, struct error *err)
{
    if (str_is(path, "-")) return read_stdin(&cli->io.arena, text, err);
    return os_read_file(path.ptr, FILE_SIZE_MAX, &cli->io.arena, text, err);
}

int document_load(struct cli *cli, struct str path, struct document *out)
{
    struct error err = {0};
    struct str text;
    *out = (struct document){.sources = {.cli = cli}};
    int refused = steps_max_read(cli, &out->sources.steps_max);
    if (!refused) refused = plugins_open(cli);
    if (refused) return refused;
    diagnostics_init(&out->diagnostics, &cli->io.arena);
    enum code rc = read_document(cli, path, &text, &err);
    if (rc) {
        int code = cli_error(cli, &err);
        if (rc == E_NOT_FOUND)
            cli_hint(cli, "give the path of a plan or a workflow: cairn %s FILE", cli->args.command->name);
        return code;
    }
    struct str shown = str_is(path, "-") ? STR("<stdin>") : path;
    if (!sources_add(&out->sources, &(struct source){.file = shown, .text = text})) return cli_nomem(cli);
    struct program_loader loader = source_loader(&out->sources);
    rc = program_load(text, shown, &loader, &out->diagnostics, &out->program, &err);
    if (rc && rc != E_INVALID) return cli_error(cli, &err);
    if (rc) out->program = NULL;
    diagnostics_sort(&out->diagnostics);
    return EXIT_OK;
}

bool word_is_document(struct str word)
{
    static const char *const extensions[] = {".json", ".yaml", ".yml"};
    if (str_is(word, "-") || (access(word.ptr, F_OK) == 0 && !os_is_dir(word.ptr))) return true;
    for (size_t i = 0; i < ARRAY_COUNT(extensions); i++)
        if (str_ends(word, str_from(extensions[i]))) return true;
    return false;
}

static struct str text_of(const struct document *document, struct str file)
{
    for (size_t i = 0; i < document->sources.count; i++)
        if (str_eq(document->sources.items[i].file, file)) return document->sources.items[i].text;
    return STR("");
}

void document_report(struct cli *cli, const struct document *document)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)16 << 20);
    const struct diagnostics *all = &document->diagnostics;
    for (size_t i = 0; i < all->count; i++) {
        bool warning = all->items[i].severity == SEVERITY_WARNING;
        if (!warning || !cli->io.quiet)
            diagnostic_write(&text, &all->items[i], text_of(document, all->items[i].file), cli->io.err.color);
    }
    uint32_t shown = (uint32_t)all->count, total = all->error_count + all->warning_count;
    if (total > shown) buf_printf(&text, "and %u more\n", total - shown);
    cli_talk(cli, &text);
}
