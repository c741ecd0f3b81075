// Documents to begin with: example, new, init. Nothing is ever overwritten.
#include "cli/commands.h"
#include "cli/document.h"
#include "term/text.h"

#include "author/author.h"
#include "os/os.h"
#include "schema/schema.h"

#include <string.h>

// ---- example

static int list_examples(struct cli *cli)
{
    enum format format = format_of(cli, FORMAT_TEXT);
    struct json all = json_array();
    struct example t;
    struct buf out = buf_of(TEXT_MAX);
    for (size_t i = 0; example_at(i, &t); i++) {
        json_append(&cli->io.arena, &all, JSON_OF(&cli->io.arena, {"id", json_string(t.id)},
                                                  {"file", json_string(t.file)}, {"what", json_string(t.what)}));
        bool ok = json_ok(&all);
        if (!ok) return cli_nomem(cli);
        if (format == FORMAT_TEXT) {
            tone_begin(&out, &cli->io.out, TONE_BOLD);
            buf_add(&out, t.id);
            tone_end(&out, &cli->io.out, TONE_BOLD);
            text_pad(&out, t.id.len, 12);
        } else {
            buf_add(&out, t.id);
        }
        if (format == FORMAT_TEXT)
            text_cut(&out, t.what, cli->io.out.columns > 20 ? cli->io.out.columns - 13 : 60, cli->io.out.utf8);
        buf_byte(&out, '\n');
    }
    if (format == FORMAT_JSON)
        print_json(&cli->io, format, &all);
    else
        cli_print(cli, &out);
    buf_release(&out);
    if (format == FORMAT_TEXT && cli->io.out.tty) cli_next(cli, "new NAME --template ID");
    return EXIT_OK;
}

static int no_template(struct cli *cli, struct str id)
{
    const char *names[64];
    size_t count = 0;
    struct example t;
    while (count < ARRAY_COUNT(names) && example_at(count, &t)) names[count++] = cli_format(cli, "%.*s", STR_ARG(t.id));
    const char *near = nearest_name(id, names, count);
    int code = cli_fail(cli, EXIT_NOT_FOUND, "there is no example %.*s", STR_ARG(id));
    if (near)
        cli_hint(cli, "did you mean %s?", near);
    else
        cli_next(cli, "example");
    return code;
}

int command_example(struct cli *cli)
{
    struct example t;
    if (cli->args.word_count == 0) return list_examples(cli);
    if (!example_find(cli->args.words[0], &t)) return no_template(cli, cli->args.words[0]);
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_add(&out, t.text);
    cli_print(cli, &out);
    if (t.needs.len > 0)
        cli_hint(cli, "it needs %.*s beside it: cairn new NAME --template %.*s writes both", STR_ARG(t.needs),
                 STR_ARG(t.id));
    return EXIT_OK;
}

// ---- files that were not there

enum made { MADE = 1, KEPT, NOT_MADE };

static enum made make_file(struct cli *cli, const char *path, struct str text, struct error *err)
{
    const char *slash = strrchr(path, '/');
    if (slash && slash != path && os_make_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), err))
        return NOT_MADE;
    enum code rc = os_write_file(path, text, 0666, false, err);
    return rc == OK ? MADE : rc == E_EXISTS ? KEPT : NOT_MADE;
}

// ---- new

static int refuse_name(struct cli *cli, struct str name)
{
    int code = cli_fail(cli, EXIT_USAGE, "%.*s cannot be the name of a document", STR_ARG(name));
    cli_hint(cli, "letters, digits, '_' and '-'; a path before it is the directory");
    return code;
}

static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool word = char_is_word(c) || c == '-';
        if (!word || (i == 0 && c == '-')) return false;
    }
    return name.len > 0 && name.len <= 64;
}

static int write_new(struct cli *cli, const struct example *t, const char *path, struct str name)
{
    struct error err = {0};
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (!example_named(&text, t, name)) return cli_nomem(cli);
    enum made made = make_file(cli, path, buf_str(&text), &err);
    if (made == NOT_MADE) return cli_error(cli, &err);
    if (made == KEPT) {
        int code = cli_fail(cli, EXIT_CONFLICT, "%s exists, and is not overwritten", path);
        cli_hint(cli, "take another name, or remove it first");
        return code;
    }
    cli_note(cli, "wrote %s", path);
    if (t->needs.len == 0) return EXIT_OK;
    const char *slash = strrchr(path, '/');
    const char *beside = cli_format(cli, "%.*s%.*s", slash ? (int)(slash - path + 1) : 0, path, STR_ARG(t->needs));
    made = make_file(cli, beside, example_file(t->needs), &err);
    if (made == NOT_MADE) return cli_error(cli, &err);
    cli_note(cli, made == MADE ? "wrote %s" : "kept %s, which was there", beside);
    return EXIT_OK;
}

int command_new(struct cli *cli)
{
    struct example t;
    struct str word = cli->args.words[0], id = args_text(&cli->args, FLAG_TEMPLATE, "hello");
    if (!example_find(id, &t)) return no_template(cli, id);
    struct str extension = str_slice(t.file, t.id.len, t.file.len);
    if (str_ends(word, extension)) word.len -= extension.len;
    size_t from = word.len;
    while (from > 0 && word.ptr[from - 1] != '/') from--;
    struct str name = str_slice(word, from, word.len);
    if (!is_name(name)) return refuse_name(cli, name);
    const char *path = cli_format(cli, "%.*s%.*s", STR_ARG(word), STR_ARG(extension));
    int code = write_new(cli, &t, path, name);
    if (code) return code;
    cli_next(cli, "run %s", path);
    return EXIT_OK;
}

// ---- init

static const char settings[] = "# Settings of this project: what a flag is when nobody gives it.\n"
                               "# store = \"sqlite:.cairn/cairn.db\"\n";

static const char first[] = "# yaml-language-server: $schema=../schemas/nodes.json\n"
                            "# The smallest workflow that does something: two nodes, one after the other.\n"
                            "name: hello\n"
                            "inputs:\n"
                            "  who: world\n"
                            "nodes:\n"
                            "  - id: greet\n"
                            "    echo: \"Hello, $INPUTS.who!\"\n"
                            "\n"
                            "  - id: shout\n"
                            "    depends_on: [greet]\n"
                            "    bash: echo $greet.output | tr a-z A-Z\n";

int command_init(struct cli *cli)
{
    const struct {
        const char *path;
        struct str text;
    } files[] = {{"cairn.toml", str_from(settings)},
                 {"flows/hello.yaml", str_from(first)},
                 {"schemas/plan.json", schema_embedded("plan.json")},
                 {"schemas/nodes.json", schema_embedded("nodes.json")},
                 {"schemas/playbook.json", schema_embedded("playbook.json")}};
    const char *dir = cli->args.word_count > 0 ? cli->args.words[0].ptr : ".";
    struct error err = {0};
    if (os_make_dirs(dir, &err)) return cli_error(cli, &err);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        const char *path = cli_format(cli, "%s/%s", dir, files[i].path);
        enum made made = make_file(cli, path, files[i].text, &err);
        if (made == NOT_MADE) return cli_error(cli, &err);
        cli_note(cli, made == MADE ? "wrote %s" : "kept %s, which was there", path);
    }
    cli_next(cli, "run %s/flows/hello.yaml", dir);
    return EXIT_OK;
}
