// Keys for signing bundles and files.
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
        return cli_hint(cli, "choose another name with --out PREFIX");
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
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (secret_file) buf_printf(&text, "private  %s  (keep it to yourself)\npublic   %s\n", secret_file, public_file);
    buf_printf(&text, "key id   %s\n", id);
    if (!secret_file) buf_add(&text, pem);
    cli_print(cli, &text);
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

// ---- files

#define SIGNED_FILE_MAX ((size_t)16 * 1024 * 1024)

static const char *signature_file(struct cli *cli)
{
    return cli_format(cli, "%s.sig", cli->args.words[0].ptr);
}

// The key that a flag must name, and the file. EXIT_OK, or what was reported.
static int open_signed(struct cli *cli, enum flag flag, const char *name, struct archive_key **key, struct str *bytes)
{
    struct error err = {0};
    struct str file = args_text(&cli->args, flag, "");
    if (file.len == 0) {
        cli_fail(cli, EXIT_USAGE, "no key was given");
        return cli_hint(cli, "--%s FILE; `cairn key new` makes a pair", name);
    }
    enum code rc = os_read_file(cli->args.words[0].ptr, SIGNED_FILE_MAX, &cli->io.arena, bytes, &err);
    if (!rc) rc = key_load(file.ptr, key, &err);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

static int say(struct cli *cli, const char *act, const char *file, const char *id)
{
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        struct json out = JSON_OF(&cli->io.arena, {"file", json_string(cli->args.words[0])}, {"keyId", json_word(id)},
                                  {"signature", json_string(str_from(file))});
        if (!json_ok(&out)) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &out);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&text, "%s %.16s: ", act, id);
    text_safe(&text, str_from(file));
    buf_byte(&text, '\n');
    cli_print(cli, &text);
    return EXIT_OK;
}

int command_key_sign(struct cli *cli)
{
    struct archive_key *key = NULL;
    struct str bytes = {0};
    struct error err = {0};
    uint8_t signature[SIGNATURE_SIZE];
    char id[KEY_ID_SIZE];
    int code = open_signed(cli, FLAG_SIGN, "sign", &key, &bytes);
    if (code) return code;
    struct str begin = str_trim(bytes);
    if (begin.len > 0 && *begin.ptr == '{') {
        key_free(key);
        cli_fail(cli, EXIT_USAGE, "an object of JSON is not signed as a file: the signature would do for a bundle, too");
        return cli_hint(cli, "sign the file of its sum: sha256sum FILE >FILE.sum");
    }
    enum code rc = key_sign(key, bytes, signature, &err);
    if (!rc) rc = key_id(key, id, &err);
    key_free(key);
    const char *file = signature_file(cli);
    if (!rc) rc = os_write_file(file, (struct str){(const char *)signature, SIGNATURE_SIZE}, 0644, true, &err);
    return rc ? cli_error(cli, &err) : say(cli, "signed by", file, id);
}

int command_key_verify(struct cli *cli)
{
    struct archive_key *key = NULL;
    struct str bytes = {0}, signature = {0};
    struct error err = {0};
    char id[KEY_ID_SIZE];
    int code = open_signed(cli, FLAG_PUBKEY, "pubkey", &key, &bytes);
    if (code) return code;
    const char *file = signature_file(cli);
    enum code rc = os_read_file(file, SIGNATURE_SIZE, &cli->io.arena, &signature, &err);
    if (!rc) rc = key_id(key, id, &err);
    bool right = !rc && key_verifies(key, bytes, signature);
    key_free(key);
    if (rc && rc != E_LIMIT) return cli_error(cli, &err);
    if (right) return say(cli, "signed by", file, id);
    return cli_fail(cli, EXIT_INTEGRITY, "%s is not what the owner of this key signed", cli->args.words[0].ptr);
}
