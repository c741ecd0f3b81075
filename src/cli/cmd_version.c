// The version of the program, and of everything that others rely on.
#include "cli/cli.h"
#include "cli/commands.h"

int command_version(struct cli *cli)
{
    struct buf text;
    struct json value = json_object(), contracts = json_object();
    if (format_of(cli, FORMAT_TEXT) != FORMAT_JSON) {
        buf_init(&text, 256);
        buf_text(&text, "cairn " CAIRN_VERSION "\n");
        cli_print(cli, &text);
        buf_release(&text);
        return EXIT_OK;
    }
    bool ok = json_put(&cli->arena, &value, STR("name"), json_string(STR("cairn"))) &&
              json_put(&cli->arena, &value, STR("version"), json_string(STR(CAIRN_VERSION))) &&
              json_put(&cli->arena, &value, STR("planSchemaVersions"), json_string(STR("v1.0, v1.1, v1.2"))) &&
              json_put(&cli->arena, &value, STR("stores"), json_string(STR("sqlite, files, memory"))) &&
              json_put(&cli->arena, &contracts, STR("runEvents"), json_string(STR("1.1"))) &&
              json_put(&cli->arena, &contracts, STR("executionSemantics"), json_string(STR("1.1"))) &&
              json_put(&cli->arena, &contracts, STR("eventLog"), json_string(STR("1.0"))) &&
              json_put(&cli->arena, &value, STR("contracts"), contracts) &&
              json_put(&cli->arena, &value, STR("keyFormula"), json_string(STR("v1")));
    if (!ok) return cli_nomem(cli);
    print_json(cli, FORMAT_JSON, &value);
    return EXIT_OK;
}
