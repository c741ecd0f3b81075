// Bundles: written, taken in, proved.
#include "cli/bundles.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "term/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool bundle_named(struct str word)
{
    struct stat status;
    if (str_starts(word, STR("bundle:")) || str_ends(word, STR(".cairn"))) return true;
    return stat(word.ptr, &status) == 0 && S_ISREG(status.st_mode);
}

static const char *path_of(struct str word)
{
    return str_starts(word, STR("bundle:")) ? word.ptr + strlen("bundle:") : word.ptr;
}

// --pubkey; NULL when there is none. EXIT_OK, or what was reported.
static int read_pubkey(struct cli *cli, struct archive_key **out)
{
    struct error err = {0};
    *out = NULL;
    struct str file = args_text(&cli->args, FLAG_PUBKEY, "");
    if (file.len == 0) return EXIT_OK;
    return key_load(file.ptr, out, &err) ? cli_error(cli, &err) : EXIT_OK;
}

// ---- proof

static void write_seal(struct buf *out, const struct proof *proof)
{
    if (proof->trusted)
        buf_printf(out, ", signed by %.16s", proof->key_id);
    else if (proof->is_signed)
        buf_printf(out, ", signed by %.16s (nobody said whether that key is to be trusted: --pubkey)", proof->key_id);
    else
        buf_text(out, ", not signed");
}

static bool is_intact(const struct proof *proof)
{
    return proof->fault_count == 0 && proof->runs.fault_count == 0;
}

static void write_faults(const struct term *term, struct buf *out, const struct proof *proof)
{
    faults_write(term, out, &proof->runs);
    for (size_t i = 0; i < proof->fault_count; i++) {
        tone_text(out, term, TONE_BAD, look_glyph(LOOK_FAILED, term->utf8));
        buf_byte(out, ' ');
        text_safe(out, proof->faults[i]);
        buf_byte(out, '\n');
    }
}

static void print_proof(struct cli *cli, const struct proof *proof)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    write_faults(&cli->io.out, &out, proof);
    enum look look = is_intact(proof) ? LOOK_DONE : LOOK_FAILED;
    const struct verify_report *runs = &proof->runs;
    tone_text(&out, &cli->io.out, look_tone(look), look_glyph(look, cli->io.out.utf8));
    buf_printf(&out, " %llu run%s, %llu events: ", (unsigned long long)runs->run_count, runs->run_count == 1 ? "" : "s",
               (unsigned long long)runs->event_count);
    if (is_intact(proof)) {
        buf_text(&out, "intact");
        if (proof->redacted)
            buf_printf(&out, " by their hashes (%llu records redacted)", (unsigned long long)runs->redacted_count);
        write_seal(&out, proof);
    } else {
        size_t count = proof->fault_count + runs->fault_count;
        buf_printf(&out, "%zu fault%s", count, count == 1 ? "" : "s");
    }
    buf_byte(&out, '\n');
    cli_print(cli, &out);
}

static bool proof_json(struct cli *cli, const struct proof *proof, struct json *out)
{
    struct json faults = json_array();
    if (!faults_json(cli, &proof->runs, out)) return false;
    for (size_t i = 0; i < proof->fault_count; i++)
        json_append(&cli->io.arena, &faults, json_string(proof->faults[i]));
    for (uint32_t i = 0; i < out->count; i++)
        if (str_is(out->members[i].key, "intact")) out->members[i].value = json_bool(is_intact(proof));
    JSON_ADD(&cli->io.arena, out, {"bundleFaults", faults}, {"redacted", json_bool(proof->redacted)},
             {"signed", json_bool(proof->is_signed)}, {"trusted", json_bool(proof->trusted)},
             {"keyId", proof->is_signed ? json_word(proof->key_id) : json_null()});
    return json_ok(out);
}

static int prove(struct cli *cli, const char *path, struct proof *out)
{
    struct archive_key *key;
    struct error err = {0};
    int code = read_pubkey(cli, &key);
    if (code) return code;
    enum code rc = archive_prove(path, key, &cli->io.arena, out, &err);
    key_free(key);
    if (rc) error_wrap(&err, "%s", path);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

// Prints what is wrong with it on stderr: EXIT_INTEGRITY then.
static int prove_intact(struct cli *cli, const char *path, struct proof *out)
{
    int code = prove(cli, path, out);
    if (code || is_intact(out)) return code;
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    write_faults(&cli->io.err, &text, out);
    cli_talk(cli, &text);
    return cli_fail(cli, EXIT_INTEGRITY, "%s is not what was written", path);
}

int bundle_verify(struct cli *cli, struct str word)
{
    struct proof proof;
    struct json json;
    int code = prove(cli, path_of(word), &proof);
    if (code) return code;
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        if (!proof_json(cli, &proof, &json)) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
    } else {
        print_proof(cli, &proof);
    }
    return is_intact(&proof) ? EXIT_OK : EXIT_INTEGRITY;
}

// ---- export

struct sink {
    int fd;
    const char *path;
};

static enum code sink_write(void *context, struct str bytes, struct error *err)
{
    const struct sink *sink = context;
    return os_write_all(sink->fd, bytes) ? OK : os_errno(err, "write", sink->path);
}

// Under another name until it is whole.
static int export_to_file(struct session *session, const struct export_options *options, const char *path,
                          struct export_report *report)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    const char *temporary = cli_format(cli, "%s.%ld.tmp", path, (long)getpid());
    struct sink sink = {.fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), .path = path};
    if (sink.fd < 0) {
        os_errno(&err, "make", path);
        return cli_error(cli, &err);
    }
    struct export_options own = *options;
    own.write = sink_write;
    own.context = &sink;
    enum code rc = archive_export(session->store, &own, &cli->io.arena, report, &err);
    if (!rc && fsync(sink.fd) != 0) rc = os_errno(&err, "write", path);
    if (close(sink.fd) != 0 && !rc) rc = os_errno(&err, "write", path);
    if (!rc && rename(temporary, path) != 0) rc = os_errno(&err, "make", path);
    if (rc) unlink(temporary);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

static int export_to_stdout(struct session *session, const struct export_options *options, struct export_report *report)
{
    struct error err = {0};
    struct sink sink = {.fd = STDOUT_FILENO, .path = "stdout"};
    if (session->cli->io.out.tty)
        return cli_fail(session->cli, EXIT_USAGE, "a bundle is not for a terminal; give --out FILE");
    struct export_options own = *options;
    own.write = sink_write;
    own.context = &sink;
    return archive_export(session->store, &own, &session->cli->io.arena, report, &err) ? cli_error(session->cli, &err)
                                                                                       : EXIT_OK;
}

static int report_export(struct cli *cli, const char *path, const struct export_report *report, bool is_signed)
{
    struct json json = json_object();
    bool to_stdout = strcmp(path, "-") == 0;
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON && !to_stdout) {
        JSON_ADD(&cli->io.arena, &json, {"file", json_word(path)}, {"runs", json_count(report->run_count)},
                 {"events", json_count(report->event_count)}, {"blobs", json_count(report->blob_count)},
                 {"redactedEvents", json_count(report->redacted_count)}, {"bytes", json_count(report->byte_count)},
                 {"signed", json_bool(is_signed)});
        bool ok = json_ok(&json);
        if (!ok) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&text, "%s: %llu run%s, %llu events, %llu bytes%s", to_stdout ? "stdout" : path,
               (unsigned long long)report->run_count, report->run_count == 1 ? "" : "s",
               (unsigned long long)report->event_count, (unsigned long long)report->byte_count,
               is_signed ? ", signed" : "");
    if (report->redacted_count)
        buf_printf(&text, ", %llu records redacted", (unsigned long long)report->redacted_count);
    buf_byte(&text, '\n');
    if (to_stdout)
        cli_note(cli, "%.*s", (int)text.len - 1, text.ptr);
    else
        cli_print(cli, &text);
    return EXIT_OK;
}

static int export_runs(struct session *session, struct export_options *options)
{
    struct cli *cli = session->cli;
    struct export_report report = {0};
    struct str out = args_text(&cli->args, FLAG_OUT, "");
    const char *path = out.len ? out.ptr : cli_format(cli, "%.*s.cairn", STR_ARG(options->runs[0].run));
    int code = strcmp(path, "-") == 0 ? export_to_stdout(session, options, &report)
                                      : export_to_file(session, options, path, &report);
    return code ? code : report_export(cli, path, &report, options->sign != NULL);
}

int command_log_export(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct archive_key *key = NULL;
    struct error err = {0};
    struct run_name *names = ARENA_ARRAY(&cli->io.arena, cli->args.word_count, struct run_name);
    if (!names) return cli_nomem(cli);
    struct str key_file = args_text(&cli->args, FLAG_SIGN, "");
    if (key_file.len && key_load(key_file.ptr, &key, &err)) return cli_error(cli, &err);
    int code = session_open(&session, cli, STORE_READ);
    for (size_t i = 0; !code && i < cli->args.word_count; i++) {
        struct target target;
        code = target_find(&session, cli->args.words[i], 0, &target);
        if (!code) names[i] = (struct run_name){target.head.ids.tenant, target.head.ids.run};
    }
    if (!code && args_has(&cli->args, FLAG_REDACT)) code = session_contract(&session);
    struct export_options options = {.runs = names,
                                     .run_count = cli->args.word_count,
                                     .children = !args_has(&cli->args, FLAG_NO_CHILDREN),
                                     .sign = key,
                                     .contract = args_has(&cli->args, FLAG_REDACT) ? session.contract : NULL};
    if (!code) code = export_runs(&session, &options);
    key_free(key);
    return code;
}

// ---- import

// Nothing is written when one of the runs is there with another log.
static int check_conflicts(struct session *session, struct store *bundle, uint64_t *same)
{
    struct cli *cli = session->cli;
    struct run_filter filter = {.limit = 500};
    struct error err = {0};
    do {
        struct run_heads heads;
        if (store_list(bundle, &filter, &cli->io.arena, &heads, &err)) return cli_error(cli, &err);
        for (size_t i = 0; i < heads.count; i++) {
            const struct run_head *head = &heads.items[i];
            struct run_head there;
            enum code rc = store_head(session->store, head->ids.tenant, head->ids.run, &cli->io.arena, &there, &err);
            if (rc == E_NOT_FOUND) {
                err = (struct error){0};
                continue;
            }
            if (rc) return cli_error(cli, &err);
            bool equal = there.last_seq == head->last_seq && digest_eq(&there.head, &head->head) &&
                         digest_eq(&there.ledger_head, &head->ledger_head);
            *same += equal;
            if (equal) continue;
            cli_fail(cli, EXIT_CONFLICT, "run %.*s is in the store with another log (%llu events, in the bundle %llu)",
                     STR_ARG(head->ids.run), (unsigned long long)there.last_seq, (unsigned long long)head->last_seq);
            return cli_hint(cli, "nothing was imported; another store takes it: --store files:DIR");
        }
        filter.before = heads.next;
    } while (filter.before);
    return EXIT_OK;
}

static int report_import(struct cli *cli, const struct copy_report *report)
{
    struct json json = json_object();
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        JSON_ADD(&cli->io.arena, &json, {"imported", json_count(report->new_count)},
                 {"present", json_count(report->same_count)}, {"events", json_count(report->event_count)});
        bool ok = json_ok(&json);
        if (!ok) return cli_nomem(cli);
        print_json(&cli->io, FORMAT_JSON, &json);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    tone_text(&text, &cli->io.out, TONE_GOOD, look_glyph(LOOK_DONE, cli->io.out.utf8));
    if (report->new_count || !report->same_count)
        buf_printf(&text, " %llu run%s imported, %llu events", (unsigned long long)report->new_count,
                   report->new_count == 1 ? "" : "s", (unsigned long long)report->event_count);
    if (report->same_count)
        buf_printf(&text, "%s %llu run%s there already, with the same log", report->new_count ? ";" : "",
                   (unsigned long long)report->same_count, report->same_count == 1 ? " was" : "s were");
    buf_byte(&text, '\n');
    cli_print(cli, &text);
    return EXIT_OK;
}

static int import_runs(struct session *session, struct store *bundle)
{
    struct cli *cli = session->cli;
    struct copy_report report;
    struct error err = {0};
    uint64_t same = 0;
    int code = check_conflicts(session, bundle, &same);
    if (code) return code;
    struct copy_options options = {.mark = true};
    if (archive_copy(bundle, session->store, &options, &cli->io.arena, &report, &err)) return cli_error(cli, &err);
    for (size_t i = 0; i < report.fault_count; i++)
        cli_fail(cli, EXIT_CONFLICT, "%.*s", STR_ARG(report.faults[i].what));
    if (report.fault_count) return EXIT_CONFLICT;
    return report_import(cli, &report);
}

// stdin is kept in a file that has no name any more: a bundle is read more than once.
static int save_stdin(struct cli *cli, const char **path)
{
    const char *dir = getenv("TMPDIR");
    char *name = (char *)(uintptr_t)cli_format(cli, "%s/cairn-bundle-XXXXXX", dir && dir[0] ? dir : "/tmp");
    struct error err = {0};
    int fd = mkostemp(name, O_CLOEXEC);
    enum code rc = fd < 0 ? os_errno(&err, "make", name) : OK;
    struct sink sink = {.fd = fd, .path = name};
    static char bytes[1 << 16];
    for (size_t got = 1; !rc && got > 0;) {
        bool read = os_read_up_to(STDIN_FILENO, bytes, sizeof(bytes), &got);
        rc = read ? sink_write(&sink, (struct str){bytes, got}, &err) : os_errno(&err, "read", "stdin");
    }
    if (fd >= 0) unlink(name);
    if (rc && fd >= 0) close(fd);
    *path = cli_format(cli, "/proc/self/fd/%d", fd); // open until the process ends
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int command_log_import(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct store *bundle = NULL;
    struct proof proof;
    struct error err = {0};
    const char *path = path_of(cli->args.words[0]);
    int code = strcmp(path, "-") == 0 ? save_stdin(cli, &path) : EXIT_OK;
    if (!code) code = prove_intact(cli, path, &proof);
    if (code) return code;
    if (proof.redacted) {
        cli_fail(cli, EXIT_CONFLICT,
                 "the bundle is redacted: its records cannot be stored, because they are not whole");
        return cli_hint(cli, "it can be looked at: cairn ls --store bundle:%s", path);
    }
    struct store_options options = {.mode = STORE_READ, .entropy = os_entropy()};
    if (store_open(str_from(cli_format(cli, "bundle:%s", path)), &options, &bundle, &err)) return cli_error(cli, &err);
    code = session_open(&session, cli, STORE_WRITE);
    if (!code) code = import_runs(&session, bundle);
    store_close(bundle);
    return code;
}
