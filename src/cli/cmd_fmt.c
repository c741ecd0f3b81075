// Documents in their canonical layout.
#include "cli/commands.h"
#include "cli/text.h"
#include "cli/trials.h"

#include "author/author.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A new file beside the old one takes its place, so that an interrupted write leaves a whole document.
static bool replace_file(struct cli *cli, struct str path, struct str text, struct error *err)
{
    struct stat old;
    const char *other = cli_format(cli, "%s.fmt-%ld", path.ptr, (long)getpid());
    if (stat(path.ptr, &old) < 0) return os_errno(err, "look at", path.ptr), false;
    int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, old.st_mode & 07777);
    if (fd < 0) return os_errno(err, "create", other), false;
    bool ok = true;
    for (size_t done = 0; ok && done < text.len;) {
        ssize_t n = write(fd, text.ptr + done, text.len - done);
        ok = n > 0 || (n < 0 && errno == EINTR);
        done += n > 0 ? (size_t)n : 0;
    }
    ok = ok && fsync(fd) == 0;
    if (!ok) os_errno(err, "write", other);
    close(fd);
    if (ok && rename(other, path.ptr) < 0) ok = (os_errno(err, "rename", other), false);
    if (!ok) unlink(other);
    return ok;
}

struct tally {
    size_t changed, refused;
};

static int format_one(struct cli *cli, struct str path, struct tally *tally)
{
    struct document document;
    struct error err = {0};
    struct str text;
    bool check = args_has(&cli->args, FLAG_CHECK), in_place = args_has(&cli->args, FLAG_WRITE);
    int code = document_load(cli, path, &document);
    if (code) return code;
    if (!document.program) {
        document_report(cli, &document);
        return EXIT_INVALID;
    }
    struct program_loader loader = source_loader(&document.sources);
    enum code rc = author_format(document.program, &loader, &cli->arena, &text, &err);
    struct str before = document.program->text;
    if (rc == E_UNSUPPORTED) {
        cli_warn(cli, "%s is left as it is: %s", path.ptr, err.message);
        tally->refused++;
        text = before;
        rc = OK;
    }
    bool changed = !rc && !str_eq(text, before);
    struct buf out;
    buf_init(&out, TEXT_MAX);
    tally->changed += changed;
    if (rc || (changed && in_place && !replace_file(cli, path, text, &err))) {
        code = cli_error(cli, &err);
    } else if (check && changed) {
        if (author_diff(&out, path, before, text, &cli->arena, &err)) code = cli_error(cli, &err);
    } else if (!check && !in_place) {
        buf_add(&out, text);
    } else if (in_place && changed) {
        cli_note(cli, "formatted %s", path.ptr);
    }
    cli_print(cli, &out);
    buf_release(&out);
    program_release(document.program);
    return code;
}

int command_fmt(struct cli *cli)
{
    struct tally tally = {0};
    int worst = EXIT_OK;
    bool check = args_has(&cli->args, FLAG_CHECK);
    if (check && args_has(&cli->args, FLAG_WRITE))
        return cli_fail(cli, EXIT_USAGE, "--write and --check exclude each other");
    for (size_t i = 0; i < cli->args.word_count; i++) {
        if (args_has(&cli->args, FLAG_WRITE) && str_is(cli->args.words[i], "-"))
            return cli_fail(cli, EXIT_USAGE, "stdin cannot be written in place; leave --write out");
        if (is_test_file(cli->args.words[i])) { // beside documents, and named by the same patterns
            cli_note(cli, "%s is a test and left as it is", cli->args.words[i].ptr);
            continue;
        }
        int code = format_one(cli, cli->args.words[i], &tally);
        if (!worst) worst = code; // the others are laid out all the same
    }
    if (!check || tally.changed == 0) return worst;
    cli_note(cli, "%zu document%s not formatted", tally.changed, tally.changed == 1 ? " is" : "s are");
    cli_hint(cli, "cairn fmt -w FILE... formats them");
    return worst ? worst : EXIT_DIFFERENCE;
}
