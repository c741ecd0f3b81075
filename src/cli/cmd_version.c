// The version of the program, and of everything that others rely on.
#include "cli/cli.h"
#include "cli/commands.h"

int command_version(struct cli *cli)
{
    static const struct str versions[] = {{"v1.0", 4}, {"v1.1", 4}, {"v1.2", 4}};
    static const struct str stores[] = {{"sqlite", 6}, {"files", 5}, {"postgres", 8}, {"memory", 6}};
    struct arena *arena = &cli->io.arena;
    if (format_of(cli, FORMAT_TEXT) != FORMAT_JSON) {
        struct buf text SCOPED(buf_release) = buf_of(256);
        buf_text(&text, "cairn " CAIRN_VERSION "\n");
        cli_print(cli, &text);
        return EXIT_OK;
    }
    struct json contracts = JSON_OF(arena, {"runEvents", json_word("1.1")}, {"executionSemantics", json_word("1.1")},
                                    {"eventLog", json_word("1.0")});
    struct json value = JSON_OF(arena, {"name", json_word("cairn")}, {"version", json_word(CAIRN_VERSION)},
                                {"planSchemaVersions", json_texts(arena, versions, ARRAY_COUNT(versions))},
                                {"stores", json_texts(arena, stores, ARRAY_COUNT(stores))}, {"contracts", contracts},
                                {"keyFormula", json_word("v1")});
    if (!json_ok(&value)) return cli_nomem(cli);
    print_json(&cli->io, FORMAT_JSON, &value);
    return EXIT_OK;
}
