// Contexts: places where runs are, by name. A context is a profile of the config files; these commands only make them easy.
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/session.h"
#include "store/server.h"

#include <string.h>

static const struct column columns[] = {
    {"name", "CONTEXT", CELL_TEXT, false, 0},  {"current", "CURRENT", CELL_TEXT, false, 0},
    {"place", "RUNS AT", CELL_TEXT, false, 0}, {"tokenFile", "TOKEN", CELL_TEXT, true, 0},
    {"tenant", "TENANT", CELL_TEXT, true, 0},  {"origin", "FROM", CELL_TEXT, true, 0},
};

// ---- ls

static bool listed(const struct json *rows, struct str name)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (str_eq(json_text(json_key(&rows->items[i], "name")), name)) return true;
    return false;
}

// A setting of a profile, from the strongest file that has it.
static struct str setting_of(const struct config *config, struct str profile, const char *name)
{
    for (size_t i = 0; i < CONFIG_LEVELS; i++) {
        const struct json *table = json_get(json_key(&config->files[i].root, "profile"), profile);
        struct str text = json_text(json_key(table, name));
        if (text.len) return text;
    }
    return STR("");
}

static bool add_row(struct cli *cli, struct json *rows, struct str name, const char *file)
{
    const struct config *config = cli->config;
    struct str server = setting_of(config, name, "server"), store = setting_of(config, name, "store");
    bool current = str_eq(config->profile, name);
    json_append(&cli->io.arena, rows,
                JSON_OF(&cli->io.arena, {"name", json_or_null(name)},
                        {"current", current ? json_word("yes") : json_null()},
                        {"place", json_or_null(server.len ? server : store)},
                        {"tokenFile", json_or_null(setting_of(config, name, "token-file"))},
                        {"tenant", json_or_null(setting_of(config, name, "tenant"))},
                        {"origin", json_or_null(str_from(file))}));
    return json_ok(rows);
}

int command_context_ls(struct cli *cli)
{
    struct list list;
    struct json rows = json_array();
    bool ok = true;
    if (!list_open(&list, cli, columns, ARRAY_COUNT(columns), "name")) return EXIT_USAGE;
    for (size_t i = 0; i < CONFIG_LEVELS; i++) {
        const struct json *profiles = json_key(&cli->config->files[i].root, "profile");
        for (uint32_t p = 0; ok && json_is(profiles, JSON_OBJECT) && p < profiles->count; p++)
            if (!listed(&rows, profiles->members[p].key))
                ok = add_row(cli, &rows, profiles->members[p].key, cli->config->files[i].path);
    }
    if (ok) list_page(&list, &rows);
    list_close(&list);
    if (ok && rows.count == 0) {
        cli_note(cli, "there are no contexts yet");
        cli_next(cli, "context add NAME --server URL --token-file FILE");
    }
    return ok ? EXIT_OK : cli_nomem(cli);
}

// ---- use, add

static bool is_profile(const struct config *config, struct str name)
{
    for (size_t i = 0; i < CONFIG_LEVELS; i++)
        if (json_get(json_key(&config->files[i].root, "profile"), name)) return true;
    return false;
}

static int no_profile(struct cli *cli, struct str name)
{
    cli_fail(cli, EXIT_NOT_FOUND, "there is no context %.*s", STR_ARG(name));
    return cli_next(cli, "context ls");
}

int command_context_use(struct cli *cli)
{
    struct str name = cli->args.word_count ? cli->args.words[0] : STR("");
    if (name.len == 0) return config_change(cli, "default-profile", STR(""), STR(""));
    if (!is_profile(cli->config, name)) return no_profile(cli, name);
    return config_change(cli, "default-profile", STR(""), name);
}

// A bare key of TOML.
static bool is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool good = char_is_alnum(c) || c == '-' || c == '_';
        if (!good) return false;
    }
    return name.len > 0;
}

// A path of the command line is meant from here, wherever the file stands.
static struct str absolute(struct cli *cli, enum flag flag, struct str value)
{
    struct error err = {0};
    struct str out;
    bool path = flag == FLAG_TOKEN_FILE || flag == FLAG_CA_FILE;
    return path && os_absolute(value.ptr, &cli->io.arena, &out, &err) == OK ? out : value;
}

int command_context_add(struct cli *cli)
{
    static const enum flag kept[] = {FLAG_SERVER, FLAG_STORE, FLAG_TOKEN_FILE, FLAG_CA_FILE, FLAG_TENANT};
    struct str name = cli->args.words[0];
    bool server = args_has(&cli->args, FLAG_SERVER), store = args_has(&cli->args, FLAG_STORE);
    if (!is_name(name))
        return cli_fail(cli, EXIT_USAGE, "%.*s cannot be a name: letters, digits, - and _ can", STR_ARG(name));
    if (server == store) return cli_fail(cli, EXIT_USAGE, "a context is one place: --server URL or --store URL");
    int code = EXIT_OK;
    for (size_t i = 0; !code && i < ARRAY_COUNT(kept); i++) {
        struct str value = args_text(&cli->args, kept[i], "");
        if (!args_has(&cli->args, kept[i])) continue;
        code = config_change(cli, flag_info(kept[i])->name, name, absolute(cli, kept[i], value));
    }
    if (!code) cli_next(cli, "context test %.*s", STR_ARG(name));
    return code;
}

int command_context_rm(struct cli *cli)
{
    struct str name = cli->args.words[0];
    const struct config_file *file = &cli->config->files[args_has(&cli->args, FLAG_LOCAL) ? CONFIG_PROJECT : CONFIG_USER];
    if (!is_profile(cli->config, name)) return no_profile(cli, name);
    if (!json_get(json_key(&file->root, "profile"), name)) {
        cli_fail(cli, EXIT_NOT_FOUND, "context %.*s is not in %s", STR_ARG(name), file->path ? file->path : "any file");
        return cli_next(cli, "context ls -o wide");
    }
    int code = config_drop(cli, name);
    // A default that names nothing would fail every command.
    if (!code && str_eq(json_text(json_key(&file->root, "default-profile")), name))
        code = config_change(cli, "default-profile", STR(""), STR(""));
    return code;
}

// ---- test

// As if --profile NAME had been given.
static bool take_profile(struct cli *cli, struct str name)
{
    struct args *args = &cli->args;
    struct flag_value *flags = ARENA_ARRAY(&cli->io.arena, args->flag_count + 1, struct flag_value);
    if (!flags) return false;
    for (size_t i = 0; i < args->flag_count; i++) flags[i] = args->flags[i];
    flags[args->flag_count++] = (struct flag_value){FLAG_PROFILE, name};
    args->flags = flags;
    memset(args->defaults, 0, sizeof(args->defaults));
    config_load(cli);
    return cli->config != NULL;
}

int command_context_test(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json who;
    struct error err = {0};
    if (cli->args.word_count > 0) {
        if (!is_profile(cli->config, cli->args.words[0])) return no_profile(cli, cli->args.words[0]);
        if (!take_profile(cli, cli->args.words[0])) return cli_nomem(cli);
    }
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    struct buf out SCOPED(buf_release) = buf_of(1 << 16);
    if (!session.remote) {
        buf_printf(&out, "%s: %s\n", session.url, session.store ? "a store that can be read" : "no store yet");
    } else {
        struct server_call call = {"GET", STR("/v1/whoami"), NULL, STR(""), {0}};
        const struct json *roles = NULL;
        if (store_server_call(session.store, &call, &cli->io.arena, &who, &err))
            code = cli_error(cli, &err);
        else
            roles = json_key(&who, "roles");
        buf_printf(&out, "%s: tenant %.*s, as", session.url, STR_ARG(session.tenant));
        for (uint32_t i = 0; roles && i < roles->count; i++)
            buf_printf(&out, "%s %.*s", i ? "," : "", STR_ARG(json_text(&roles->items[i])));
        buf_byte(&out, '\n');
    }
    if (!code) cli_print(cli, &out);
    return code;
}
