// Keys for signing bundles.
#include "archive/archive.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "term/text.h"

#include <string.h>
#include <unistd.h>

static int write_new(struct cli *cli, const char *path, struct str bytes, unsigned mode)
{
    struct error err = {0};
    enum code rc = os_write_file(path, bytes, mode, false, &err);
    if (rc == E_EXISTS) {
        cli_fail(cli, EXIT_CONFLICT, "%s is there already", path);
        cli_hint(cli, "choose another name with --out PREFIX");
        return EXIT_CONFLICT;
    }
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

static int show(struct cli *cli, const char *id, const char *secret_file, const char *public_file, struct str pem)
{
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        struct json out = JSON_OF(&cli->io.arena, {"keyId", json_word(id)}, {"publicKey", json_string(pem)});
        bool ok = json_ok(&out);
        if (ok && secret_file)
            ok = json_put(&cli->io.arena, &out, STR("privateFile"), json_string(str_from(secret_file))) &&
                 json_put(&cli->io.arena, &out, STR("publicFile"), json_string(str_from(public_file)));
        if (!ok) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &out);
        return EXIT_OK;
    }
    struct buf text = buf_of(TEXT_MAX);
    if (secret_file) buf_printf(&text, "private  %s  (keep it to yourself)\npublic   %s\n", secret_file, public_file);
    buf_printf(&text, "key id   %s\n", id);
    if (!secret_file) buf_add(&text, pem);
    cli_print(cli, &text);
    buf_release(&text);
    return EXIT_OK;
}

static int make_place(struct cli *cli, const char *path)
{
    struct error err = {0};
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return EXIT_OK;
    return os_make_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), &err) ? cli_error(cli, &err) : EXIT_OK;
}

int command_key_new(struct cli *cli)
{
    struct archive_key *key = NULL;
    struct error err = {0};
    struct str secret, public;
    char id[KEY_ID_SIZE];
    struct str prefix = args_text(&cli->args, FLAG_OUT, "cairn");
    const char *secret_file = cli_format(cli, "%.*s.key", STR_ARG(prefix));
    const char *public_file = cli_format(cli, "%.*s.pub", STR_ARG(prefix));
    enum code rc = key_new(&key, &err);
    if (!rc) rc = key_pem(key, true, &cli->io.arena, &secret, &err);
    if (!rc) rc = key_pem(key, false, &cli->io.arena, &public, &err);
    if (!rc) rc = key_id(key, id, &err);
    key_free(key);
    if (rc) return cli_error(cli, &err);
    int code = make_place(cli, secret_file);
    if (!code && access(public_file, F_OK) == 0)
        code = write_new(cli, public_file, public, 0644); // says that it is there
    if (!code) code = write_new(cli, secret_file, secret, 0600);
    if (!code) code = write_new(cli, public_file, public, 0644);
    if (code) return code;
    code = show(cli, id, secret_file, public_file, public);
    if (!code && format_of(cli, FORMAT_TEXT) != FORMAT_JSON) cli_next(cli, "log export @last --sign %s", secret_file);
    return code;
}

int command_key_show(struct cli *cli)
{
    struct archive_key *key = NULL;
    struct error err = {0};
    struct str pem = {0};
    char id[KEY_ID_SIZE] = "";
    enum code rc = key_load(cli->args.words[0].ptr, &key, &err);
    if (!rc) rc = key_pem(key, false, &cli->io.arena, &pem, &err);
    if (!rc) rc = key_id(key, id, &err);
    key_free(key);
    return rc ? cli_error(cli, &err) : show(cli, id, NULL, NULL, pem);
}
