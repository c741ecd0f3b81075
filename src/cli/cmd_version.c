// The version of the program, and of everything that others rely on.
#include "cli/cli.h"
#include "cli/commands.h"

static bool put_list(struct cli *cli, struct json *object, const char *key, const char *const *items, size_t count)
{
    struct json list = json_array();
    for (size_t i = 0; i < count; i++)
        json_append(&cli->io.arena, &list, json_string(str_from(items[i])));
    return json_put(&cli->io.arena, object, str_from(key), list);
}

int command_version(struct cli *cli)
{
    static const char *const versions[] = {"v1.0", "v1.1", "v1.2"}, *const stores[] = {"sqlite", "files", "postgres",
                                                                                       "memory"};
    struct buf text;
    struct json value = json_object(), contracts = json_object();
    if (format_of(cli, FORMAT_TEXT) != FORMAT_JSON) {
        buf_init(&text, 256);
        buf_text(&text, "cairn " CAIRN_VERSION "\n");
        cli_print(cli, &text);
        buf_release(&text);
        return EXIT_OK;
    }
    bool ok = json_put(&cli->io.arena, &value, STR("name"), json_string(STR("cairn"))) &&
              json_put(&cli->io.arena, &value, STR("version"), json_string(STR(CAIRN_VERSION))) &&
              put_list(cli, &value, "planSchemaVersions", versions, ARRAY_COUNT(versions)) &&
              put_list(cli, &value, "stores", stores, ARRAY_COUNT(stores)) &&
              json_put(&cli->io.arena, &contracts, STR("runEvents"), json_string(STR("1.1"))) &&
              json_put(&cli->io.arena, &contracts, STR("executionSemantics"), json_string(STR("1.1"))) &&
              json_put(&cli->io.arena, &contracts, STR("eventLog"), json_string(STR("1.0"))) &&
              json_put(&cli->io.arena, &value, STR("contracts"), contracts) &&
              json_put(&cli->io.arena, &value, STR("keyFormula"), json_string(STR("v1")));
    if (!ok) return cli_nomem(cli);
    print_json(&cli->io, FORMAT_JSON, &value);
    return EXIT_OK;
}
