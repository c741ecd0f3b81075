// The files store keeps the contract of store/store.h. Damage is done to the lines of its files, as somebody with an editor would.
#include "conformance/store_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *scratch(void)
{
    static char url[512];
    static int number;
    snprintf(url, sizeof(url), "files:%s/store-%d", test_dir(), number++);
    return url;
}

// Lines of a file; the last one ends in '\n', too.
struct lines {
    struct str text;
    struct str items[4096];
    size_t count;
};

static void read_lines(const char *path, struct lines *out)
{
    out->text = test_read_file(path);
    out->count = 0;
    for (struct str rest = out->text; rest.len > 0 && out->count < ARRAY_COUNT(out->items);) {
        size_t end = str_find(rest, '\n', 0);
        out->items[out->count++] = str_slice(rest, 0, end);
        rest = end < rest.len ? str_slice(rest, end + 1, rest.len) : (struct str){rest.ptr, 0};
    }
}

static void write_lines(const char *path, const struct lines *lines)
{
    struct buf bytes;
    buf_init(&bytes, SIZE_MAX / 4);
    for (size_t i = 0; i < lines->count; i++) {
        buf_add(&bytes, lines->items[i]);
        buf_byte(&bytes, '\n');
    }
    CHECK(buf_ok(&bytes));
    test_write_file(path, buf_str(&bytes));
    buf_release(&bytes);
}

// In place, since there are tens of thousands of them.
static bool flip(const char *path, uint64_t seq, size_t bit)
{
    // The same again takes it back, also when it has cut the line in two.
    static struct {
        char path[1024];
        uint64_t seq;
        size_t bit, at;
    } last;
    bool back = strcmp(last.path, path) == 0 && last.seq == seq && last.bit == bit;
    char bytes[65536];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
    CHECK(size >= 0 && (size_t)size < sizeof(bytes));
    struct str rest = {bytes, (size_t)size};
    for (; seq > 1; seq--) rest = str_slice(rest, str_find(rest, '\n', 0) + 1, rest.len);
    bool there = back || bit / 8 < str_find(rest, '\n', 0);
    size_t at = back ? last.at : (size_t)(rest.ptr - bytes) + bit / 8;
    last.path[0] = '\0';
    if (there) {
        bytes[at] = (char)((uint8_t)bytes[at] ^ 1u << bit % 8);
        CHECK_INT(pwrite(fd, bytes + at, 1, (off_t)at), 1);
        last.seq = seq;
        last.bit = bit;
        last.at = at;
        if (!back) snprintf(last.path, sizeof(last.path), "%s", path);
    }
    close(fd);
    return there;
}

static bool change(struct lines *lines, enum tamper what, uint64_t seq)
{
    struct str line = lines->items[seq - 1];
    switch (what) {
    case TAMPER_FLIP:
    case TAMPER_LEDGER_FLIP:
        return false; // done in place
    case TAMPER_DELETE:
    case TAMPER_LEDGER_DELETE:
        lines->count--;
        memmove(&lines->items[seq - 1], &lines->items[seq], (lines->count - (seq - 1)) * sizeof(lines->items[0]));
        return true;
    case TAMPER_SWAP:
        if (seq >= lines->count) return false;
        lines->items[seq - 1] = lines->items[seq];
        lines->items[seq] = line;
        return true;
    case TAMPER_CUT:
    case TAMPER_LEDGER_CUT:
        lines->count = seq - 1;
        return true;
    case TAMPER_REPEAT: // what follows the size in the slot is no event for any reader, and is cut off at the next claim
        return false;
    }
    return false;
}

static bool tamper(struct store *store, enum tamper what, struct str run, uint64_t seq, size_t bit)
{
    bool ledger = what == TAMPER_LEDGER_FLIP || what == TAMPER_LEDGER_DELETE || what == TAMPER_LEDGER_CUT;
    struct str dir = store_url(store);
    char path[1024];
    snprintf(path, sizeof(path), "%.*s/%.*s/%s", STR_ARG(str_slice(dir, 6, dir.len)), STR_ARG(run),
             ledger ? "ledger.jsonl" : "events.jsonl");
    if (what == TAMPER_FLIP || what == TAMPER_LEDGER_FLIP) return flip(path, seq, bit);
    struct lines *lines = calloc(1, sizeof(*lines));
    CHECK(lines != NULL);
    read_lines(path, lines);
    bool done = seq >= 1 && seq <= lines->count && change(lines, what, seq);
    if (done) write_lines(path, lines);
    free(lines);
    return done;
}

// The lock keeps other processes out, so only this process can overtake itself.
static void usurp(struct store *store, struct str tenant, struct str run)
{
    struct run_log *log = NULL;
    struct error err = {0};
    CHECK_OK(store_claim_run(store, tenant, run, &log, &err), &err);
    store_release_run(store, log);
}

int main(int argc, char **argv)
{
    static const struct store_case files = {
        .name = "files", .durable = true, .shared = true, .scratch = scratch, .tamper = tamper, .usurp = usurp};
    return store_suite(&files, argc, argv);
}
