#include "cli/config.h"
#include "term/text.h"

#include "doc/doc.h"
#include "os/os.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

static const struct setting settings[] = {
    {"store", FLAG_STORE, "sqlite:$XDG_STATE_HOME/cairn/cairn.db", "where runs are kept"},
    {"results", FLAG_RESULTS, "", "object store for large results of playbooks: nats://HOST:PORT/BUCKET, or a file"},
    {"tenant", FLAG_TENANT, "default", "tenant of runs"},
    {"project", FLAG_PROJECT, "default", "project of new runs"},
    {"environment", FLAG_ENVIRONMENT, "default", "environment of new runs"},
    {"color", FLAG_COLOR, "auto", "colours: auto, always, never"},
    {"ascii", FLAG_ASCII, "false", "true: ASCII instead of ✓ ● ◌"},
    {"progress", FLAG_PROGRESS, "auto", "live progress: auto, tree, plain, json, none"},
    {"time", FLAG_TIME, "relative", "times in tables: relative, iso, unix"},
    {"on-interrupt", FLAG_ON_INTERRUPT, "pause",
     "what the first ^C does: pause, cancel, kill, or of a server's run detach"},
    {"max-steps", FLAG_MAX_STEPS, "10000", "steps that a document may have, up to 100000"},
    {"limits", FLAG_LIMITS, "", "what one run may come to: events=N, bytes, segments, iterations, sqlBytes"},
    {"artifact-retention", FLAG_RETENTION, "", "how long files of steps are kept, by kind: report=7d,default=30d"},
    {"confine", FLAG_CONFINE, "none", "what steps are kept from: none, auto, basic, files, full"},
    {"server", FLAG_SERVER, "", "the server that commands and workers ask instead of a store"},
    {"token-file", FLAG_TOKEN_FILE, "", "file with the token for the server"},
    {"ca-file", FLAG_CA_FILE, "", "certificates that the server's is checked against"},
    {"secrets", FLAG_SECRETS, "", "file with the providers of secret://PROVIDER/NAME"},
    {"credentials", FLAG_CREDENTIALS, "", "file with the credentials of the tasks of playbooks"},
    {"containers", FLAG_CONTAINERS, "", "file that says who runs the containers of playbooks"},
    {"fetch", FLAG_FETCH, "", "file that says where tasks of a worker may send requests"},
    {"tools", FLAG_TOOLS, "", "directory of further tools of playbooks"},
};

const struct setting *setting_at(size_t index)
{
    return index < ARRAY_COUNT(settings) ? &settings[index] : NULL;
}

const struct setting *setting_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        if (str_is(name, settings[i].name)) return &settings[i];
    return NULL;
}

const char *setting_variable(struct cli *cli, const struct setting *setting)
{
    char name[64] = "CAIRN_";
    size_t at = strlen(name);
    for (const char *c = setting->name; *c && at + 1 < sizeof(name); c++)
        name[at++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    name[at] = '\0';
    return cli_format(cli, "%s", name);
}

// ---- faults
static void fault(struct cli *cli, bool fatal, const char *hint, const char *text)
{
    struct config *config = cli->config;
    if (config->fault_count < ARRAY_COUNT(config->faults))
        config->faults[config->fault_count++] = (struct config_fault){str_from(text), hint, fatal};
}

static const char *nearest_setting(struct cli *cli, struct str name)
{
    const char *names[ARRAY_COUNT(settings) + 1];
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) names[i] = settings[i].name;
    names[ARRAY_COUNT(settings)] = "default-profile";
    const char *near = nearest_name(name, names, ARRAY_COUNT(names));
    return near ? cli_format(cli, "did you mean %s?", near) : "`cairn config list` shows every setting";
}

// ---- values
// A relative path in a store URL of a file is meant from that file on, wherever the command is typed.
static struct str place_url(struct cli *cli, struct str url, const char *file)
{
    struct str path;
    struct str kind = str_cut(url, ':', &path);
    const char *slash = file ? strrchr(file, '/') : NULL;
    bool has_path = STR_AMONG(kind, "sqlite", "files", "unix");
    if (!slash || !has_path || path.len == 0 || path.ptr[0] == '/') return url;
    if (str_starts(path, STR("./"))) path = str_slice(path, 2, path.len);
    return str_from(cli_format(cli, "%.*s:%.*s/%.*s", STR_ARG(kind), (int)(slash - file), file, STR_ARG(path)));
}

static struct str place_path(struct cli *cli, struct str path, const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (!slash || path.len == 0 || path.ptr[0] == '/') return path;
    return str_from(cli_format(cli, "%.*s/%.*s", (int)(slash - file), file, STR_ARG(path)));
}

static bool accept(struct cli *cli, const struct setting *setting, struct str value, const char *origin)
{
    const struct flag_info *info = flag_info(setting->flag);
    const char *choices = setting->flag == FLAG_ASCII ? "true|false" : info->choices;
    if (choices[0] && choice_index(value, choices) == SIZE_MAX) {
        fault(cli, true, cli_format(cli, "one of: %s", choices),
              cli_format(cli, "%s: %s cannot be \"%.*s\"", origin, setting->name, STR_ARG(value)));
        return false;
    }
    return true;
}

static void set_default(struct cli *cli, const struct setting *setting, struct str value, const char *file,
                        const char *origin, unsigned rank)
{
    struct flag_default *out = &cli->args.defaults[setting->flag];
    if (out->text.ptr || !accept(cli, setting, value, origin)) return; // a stronger one is there
    if (setting->flag == FLAG_STORE || setting->flag == FLAG_SERVER) value = place_url(cli, value, file);
    bool path = setting->flag == FLAG_TOKEN_FILE || setting->flag == FLAG_CA_FILE ||
                (setting->flag == FLAG_RESULTS && !memmem(value.ptr, value.len, "://", 3));
    if (path) value = place_path(cli, value, file);
    *out = (struct flag_default){value, origin, rank};
}

static void take_table(struct cli *cli, const struct config_file *file, const struct json *table, bool top,
                       unsigned rank)
{
    for (uint32_t i = 0; json_is(table, JSON_OBJECT) && i < table->count; i++) {
        const struct json_member *m = &table->members[i];
        const struct setting *setting = setting_find(m->key);
        const char *place = cli_format(cli, "%s:%u:%u", file->path, m->line, (unsigned)m->column);
        if (top && (str_is(m->key, "profile") || str_is(m->key, "default-profile"))) continue;
        if (str_is(m->key, "serve")) continue; // read by who needs it (serve_config.c)
        if (!setting) {
            fault(cli, false, nearest_setting(cli, m->key),
                  cli_format(cli, "%s: there is no setting \"%.*s\"", place, STR_ARG(m->key)));
            continue;
        }
        bool number = setting->flag == FLAG_MAX_STEPS && json_is(&m->value, JSON_INT);
        bool fits =
            setting->flag == FLAG_ASCII ? json_is(&m->value, JSON_BOOL) : number || json_is(&m->value, JSON_STRING);
        if (!fits) {
            fault(cli, true, setting->flag == FLAG_ASCII ? "true or false, without quotes" : "write it as \"text\"",
                  cli_format(cli, "%s: %s cannot be %s", place, setting->name,
                             json_type_name((enum json_type)m->value.type)));
            continue;
        }
        struct str value = number ? str_from(cli_format(cli, "%lld", (long long)m->value.integer))
                           : setting->flag != FLAG_ASCII ? json_text(&m->value)
                           : m->value.boolean          ? STR("true")
                                                       : STR("false");
        set_default(cli, setting, value, file->path, cli_format(cli, "%s:%u", file->path, m->line), rank);
    }
}

static void take_variables(struct cli *cli)
{
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++) {
        const char *name = setting_variable(cli, &settings[i]);
        const char *value = getenv(name);
        if (value && value[0]) set_default(cli, &settings[i], str_from(value), NULL, cli_format(cli, "$%s", name), 0);
    }
}

// ---- files
static bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

// cairn.toml here or further up, not beyond the root of the repository or the home directory.
static const char *project_path(struct cli *cli)
{
    char directory[3800];
    const char *home = getenv("HOME");
    if (!getcwd(directory, sizeof(directory))) return NULL;
    const char *here = cli_format(cli, "%s/cairn.toml", strcmp(directory, "/") == 0 ? "" : directory);
    for (;;) {
        const char *path = cli_format(cli, "%s/cairn.toml", strcmp(directory, "/") == 0 ? "" : directory);
        if (is_there(path)) return path;
        char *slash = strrchr(directory, '/');
        bool root = is_there(cli_format(cli, "%s/.git", directory)) || (home && strcmp(directory, home) == 0);
        if (root || !slash || slash == directory) return here;
        *slash = '\0';
    }
}

static const char *user_path(struct cli *cli)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/') return cli_format(cli, "%s/cairn/config.toml", config);
    return home && home[0] == '/' ? cli_format(cli, "%s/.config/cairn/config.toml", home) : NULL;
}

static void read_file(struct cli *cli, struct config_file *file)
{
    struct error err = {0};
    struct str text;
    file->root = json_object();
    if (!file->path || !is_there(file->path)) return;
    file->exists = true;
    enum code rc = os_read_file(file->path, FILE_MAX, &cli->io.arena, &text, &err);
    if (rc) {
        fault(cli, true, NULL, cli_format(cli, "%s", err.message));
    } else if (toml_parse(text, &cli->io.arena, &file->root, &err)) {
        fault(cli, true, NULL, cli_format(cli, "%s:%u:%u: %s", file->path, err.line, err.column, err.message));
        file->root = json_object();
    }
}

static void choose_profile(struct cli *cli)
{
    struct config *config = cli->config;
    const char *variable = args_has(&cli->args, FLAG_NO_CONFIG_ENV) ? NULL : getenv("CAIRN_PROFILE");
    config->profile = args_text(&cli->args, FLAG_PROFILE, "");
    config->profile_origin = "--profile";
    if (config->profile.len == 0 && variable && variable[0]) {
        config->profile = str_from(variable);
        config->profile_origin = "$CAIRN_PROFILE";
    }
    for (size_t i = 0; config->profile.len == 0 && i < CONFIG_LEVELS; i++) {
        const struct json *named = json_key(&config->files[i].root, "default-profile");
        if (!json_is(named, JSON_STRING)) continue;
        config->profile = json_text(named);
        config->profile_origin = cli_format(cli, "%s:%u", config->files[i].path, named->line);
    }
}

static void check_profile(struct cli *cli)
{
    const struct config *config = cli->config;
    const char *names[32];
    size_t count = 0;
    if (config->profile.len == 0) return;
    for (size_t i = 0; i < CONFIG_LEVELS; i++) {
        const struct json *profiles = json_key(&config->files[i].root, "profile");
        if (json_get(profiles, config->profile)) return;
        for (uint32_t p = 0; json_is(profiles, JSON_OBJECT) && p < profiles->count && count < ARRAY_COUNT(names); p++)
            names[count++] = cli_format(cli, "%.*s", STR_ARG(profiles->members[p].key));
    }
    const char *near = nearest_name(config->profile, names, count);
    fault(cli, true,
          near    ? cli_format(cli, "did you mean %s?", near)
          : count ? cli_format(cli, "there is %s%s", names[0], count > 1 ? ", and others" : "")
                  : "a profile is a table [profile.NAME] in a config file",
          cli_format(cli, "%s: there is no profile \"%.*s\"", config->profile_origin, STR_ARG(config->profile)));
}

void config_load(struct cli *cli)
{
    cli->config = ARENA_NEW(&cli->io.arena, struct config);
    if (!cli->config) return;
    struct config_file *files = cli->config->files;
    files[CONFIG_PROJECT].path = project_path(cli);
    files[CONFIG_USER].path = user_path(cli);
    files[CONFIG_SYSTEM].path = "/etc/cairn/config.toml";
    for (size_t i = 0; i < CONFIG_LEVELS && !args_has(&cli->args, FLAG_NO_CONFIG_FILE); i++) read_file(cli, &files[i]);
    if (!args_has(&cli->args, FLAG_NO_CONFIG_ENV)) take_variables(cli);
    choose_profile(cli);
    check_profile(cli);
    for (size_t i = 0; i < CONFIG_LEVELS; i++) {
        const struct json *profiles = json_key(&files[i].root, "profile");
        take_table(cli, &files[i], json_get(profiles, cli->config->profile), false, 2 * (unsigned)i + 1);
        take_table(cli, &files[i], &files[i].root, true, 2 * (unsigned)i + 2);
    }
}

bool config_report(struct cli *cli)
{
    static const char *const helpers[] = {"help",         "version",     "config list", "config get", "config set",
                                          "config unset", "config path", "doctor",      "completion", "man",
                                          "complete",     "context ls",  "context use", "context add"};
    bool helps = false, fatal = false;
    for (size_t i = 0; i < ARRAY_COUNT(helpers); i++) helps = helps || strcmp(helpers[i], cli->args.command->name) == 0;
    for (size_t i = 0; cli->config && !helps && i < cli->config->fault_count; i++) {
        const struct config_fault *f = &cli->config->faults[i];
        fatal = fatal || f->fatal;
        if (f->fatal)
            cli_fail(cli, EXIT_USAGE, "%.*s", STR_ARG(f->text));
        else
            cli_warn(cli, "%.*s", STR_ARG(f->text));
        if (f->hint) cli_hint(cli, "%s", f->hint);
    }
    if (fatal) cli_hint(cli, "--no-config-file goes on without config files");
    return !fatal;
}
