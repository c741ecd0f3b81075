// The files store keeps the contract of store/store.h. Damage is done to the lines of its files, as somebody with an editor would.
#include "conformance/store_kit.h"
#include "conformance/store_suite.h"
#include "store/files.h"

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
struct file_lines {
    struct str text;
    struct str items[4096];
    size_t count;
};

static void read_lines(const char *path, struct file_lines *out)
{
    out->text = test_read_file(path);
    out->count = 0;
    for (struct str rest = out->text; rest.len > 0 && out->count < ARRAY_COUNT(out->items);) {
        size_t end = str_find(rest, '\n', 0);
        out->items[out->count++] = str_slice(rest, 0, end);
        rest = end < rest.len ? str_slice(rest, end + 1, rest.len) : (struct str){rest.ptr, 0};
    }
}

static void write_lines(const char *path, const struct file_lines *lines)
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

static bool change(struct file_lines *lines, enum tamper what, uint64_t seq)
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
    case TAMPER_DOCUMENT:
    case TAMPER_RUN:
        return false; // of slots
    case TAMPER_REPEAT: // no event for any reader, and cut off at the next claim; but it was never stored
        if (lines->count == ARRAY_COUNT(lines->items)) return false;
        lines->items[lines->count++] = line;
        return true;
    }
    return false;
}

// The slot of a run is found by the id in it. 1: it and those behind it are cut off; 2: one bit of it is flipped; 3: half of it is cut.
static bool change_slot(const char *path, enum tamper what, struct str run, uint64_t way)
{
    struct disk_slot slot;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    off_t at = 0;
    char name[64];
    int len = snprintf(name, sizeof(name), "%c%.*s", (int)run.len, STR_ARG(run)); // as it stands in a slot
    while (pread(fd, &slot, sizeof(slot), at) == (ssize_t)sizeof(slot) &&
           !memmem(slot.text, slot.names_size, name, (size_t)len))
        at += (off_t)sizeof(slot);
    struct digest other = sha256(STR("another document"));
    bool done = what == TAMPER_DOCUMENT || way <= 3;
    if (what == TAMPER_DOCUMENT) {
        memcpy(slot.document, other.b, SHA256_SIZE);
        slot_seal(&slot);
    } else if (way == 2) {
        slot.head[7] ^= 1;
    }
    if (done && (what == TAMPER_DOCUMENT || way == 2))
        CHECK_INT(pwrite(fd, &slot, sizeof(slot), at), (ssize_t)sizeof(slot));
    else if (done)
        CHECK_INT(ftruncate(fd, way == 1 ? at : at + (off_t)sizeof(slot) / 2), 0);
    close(fd);
    return done;
}

static bool tamper(struct store *store, enum tamper what, struct str run, uint64_t seq, size_t bit)
{
    bool ledger = what == TAMPER_LEDGER_FLIP || what == TAMPER_LEDGER_DELETE || what == TAMPER_LEDGER_CUT;
    struct str dir = store_url(store);
    char path[1024];
    snprintf(path, sizeof(path), "%.*s/%.*s/%s", STR_ARG(str_slice(dir, 6, dir.len)), STR_ARG(run),
             ledger ? "ledger.jsonl" : "events.jsonl");
    if (what == TAMPER_FLIP || what == TAMPER_LEDGER_FLIP) return flip(path, seq, bit);
    if (what == TAMPER_DOCUMENT || what == TAMPER_RUN) {
        snprintf(path, sizeof(path), "%.*s/.cairn/runs", STR_ARG(str_slice(dir, 6, dir.len)));
        return change_slot(path, what, run, seq);
    }
    struct file_lines *lines = calloc(1, sizeof(*lines));
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

// ---- the feed and the notes

static void open_store(struct kit *kit, const char *url, enum store_mode mode)
{
    struct store_options options = kit_options(kit, mode);
    options.journal_size = 64 * 1024; // so that it is begun anew now and then
    kit->err = (struct error){0};
    CHECK_OK(store_open(str_from(url), &options, &kit->store, &kit->err), &kit->err);
}

static void close_store(struct kit *kit)
{
    store_close(kit->store);
    kit->store = NULL;
}

static void add_steps(struct kit *kit, const char *run, bool create, unsigned from, unsigned count)
{
    struct run_log *log = create ? kit_create(kit, run, VOCABULARY_RUN) : kit_claim(kit, run);
    for (unsigned i = 0; i < count; i++) {
        char step[32];
        snprintf(step, sizeof(step), "s%u", from + i);
        kit_step(kit, log, step);
    }
    store_release_run(kit->store, log);
}

static struct feed read_feed(struct kit *kit, uint64_t after)
{
    struct feed feed;
    kit->err = (struct error){0};
    CHECK_OK(store_feed(kit->store, after, SIZE_MAX, &kit->arena, &feed, &kit->err), &kit->err);
    return feed;
}

static void path_in(const char *url, const char *name, char out[1024])
{
    snprintf(out, 1024, "%s/.cairn/%s", url + strlen("files:"), name);
}

// As a version that does not know the feed leaves the journal.
static void forget_feed(const char *url)
{
    char path[1024];
    path_in(url, "journal", path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    for (off_t block = 0; block < 2; block++) {
        struct journal_header header;
        CHECK_INT(pread(fd, &header, sizeof(header), block * BLOCK_SIZE), sizeof(header));
        if (header.sequence == 0) continue;
        header.fed = 0;
        size_t from = offsetof(struct journal_header, fed);
        header.crc = crc32c(0, (const char *)&header + from, sizeof(header) - from);
        CHECK_INT(pwrite(fd, &header, sizeof(header), block * BLOCK_SIZE), sizeof(header));
    }
    close(fd);
}

// Each run's events, in order and whole.
static void check_told(const struct feed *feed, const char *run, uint64_t count)
{
    uint64_t seen = 0, last = 0;
    for (size_t i = 0; i < feed->count; i++) {
        CHECK(feed->items[i].position > last);
        last = feed->items[i].position;
        if (str_is(feed->items[i].run, run)) CHECK_INT(feed->items[i].record.seq, ++seen);
    }
    CHECK_INT(seen, count);
}

static void S16_a_store_of_before_the_feed_gets_one_with_its_old_events(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char path[1024];
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "a", true, 0, 40); // more than the journal holds
    add_steps(&kit, "b", true, 0, 3);
    add_steps(&kit, "a", false, 40, 2);
    close_store(&kit);
    path_in(url, "feed", path);
    CHECK_INT(unlink(path), 0);
    forget_feed(url);
    open_store(&kit, url, STORE_READ); // nobody has made it yet
    struct feed none;
    CHECK_INT(store_feed(kit.store, 0, 10, &kit.arena, &none, NULL), E_UNSUPPORTED);
    struct note note;
    CHECK_INT(store_note(kit.store, STR("s"), STR("k"), &kit.arena, &note, NULL), E_NOT_FOUND);
    struct store *early = kit.store;
    open_store(&kit, url, STORE_WRITE);
    struct feed feed = read_feed(&kit, 0);
    CHECK_INT(feed.count, 45);
    check_told(&feed, "a", 42);
    check_told(&feed, "b", 3);
    struct feed late;
    CHECK_OK(store_feed(early, 0, 1000, &kit.arena, &late, &kit.err), &kit.err);
    CHECK_INT(late.count, 45);
    store_close(early);
    add_steps(&kit, "b", false, 3, 1);
    CHECK_INT(read_feed(&kit, feed.next).count, 1);
    close_store(&kit);
    open_store(&kit, url, STORE_WRITE); // and it stays so
    struct feed again = read_feed(&kit, 0);
    CHECK_INT(again.count, 46);
    for (size_t i = 0; i < feed.count; i++) {
        CHECK_INT(again.items[i].position, feed.items[i].position);
        CHECK_STR(again.items[i].record.bytes, feed.items[i].record.bytes);
    }
    kit_release(&kit);
}

// An older version has written in between: it left the file as it was.
static void S16_events_that_an_older_version_added_come_into_the_feed(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char path[1024];
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "a", true, 0, 5);
    struct feed before = read_feed(&kit, 0);
    close_store(&kit);
    path_in(url, "feed", path);
    struct str kept = test_read_file(path);
    kept = arena_copy(&kit.arena, kept);
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "a", false, 5, 40);
    add_steps(&kit, "b", true, 0, 4);
    close_store(&kit);
    test_write_file(path, kept);
    forget_feed(url);
    open_store(&kit, url, STORE_WRITE);
    struct feed after = read_feed(&kit, 0);
    CHECK_INT(after.count, 49);
    check_told(&after, "a", 45);
    check_told(&after, "b", 4);
    for (size_t i = 0; i < before.count; i++) CHECK_INT(after.items[i].position, before.items[i].position);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void S16_a_damaged_entry_is_told_and_not_stepped_over(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char path[1024];
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "a", true, 0, 40);
    close_store(&kit);
    path_in(url, "feed", path);
    struct str bytes = test_read_file(path);
    char *changed = (char *)(uintptr_t)arena_copy(&kit.arena, bytes).ptr;
    changed[40 * 6 + 9] ^= 4; // the sixth event
    test_write_file(path, (struct str){changed, bytes.len});
    open_store(&kit, url, STORE_WRITE);
    struct feed feed;
    CHECK_INT(store_feed(kit.store, 0, 100, &kit.arena, &feed, NULL), E_CORRUPT);
    CHECK_OK(store_feed(kit.store, 0, 5, &kit.arena, &feed, &kit.err), &kit.err);
    CHECK_INT(feed.count, 5);
    feed = read_feed(&kit, 6); // what follows is where it was
    CHECK_INT(feed.count, 34);
    CHECK_INT(feed.items[0].record.seq, 7);
    add_steps(&kit, "b", true, 0, 1); // and the runs go on
    CHECK_INT(read_feed(&kit, 40).count, 1);
    kit_release(&kit);
}

static void put_note(struct kit *kit, const char *key, struct str value)
{
    struct note_put note = {.space = STR("s"), .key = str_from(key), .value = value, .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &note, .note_count = 1};
    kit->err = (struct error){0};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
}

static struct note get_note(struct kit *kit, struct store *store, const char *key)
{
    struct note note;
    kit->err = (struct error){0};
    CHECK_OK(store_note(store, STR("s"), str_from(key), &kit->arena, &note, &kit->err), &kit->err);
    return note;
}

// What is out of date is left behind when the file is written anew; readers that have the old one open find the new one.
static void S15_the_file_of_notes_does_not_grow_for_ever(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char path[1024];
    open_store(&kit, url, STORE_WRITE);
    path_in(url, "notes", path);
    CHECK(access(path, F_OK) != 0); // a store without notes has no such file
    static char value[400000];
    put_note(&kit, "stays", STR("here"));
    struct store *writer = kit.store;
    open_store(&kit, url, STORE_READ);
    struct store *reader = kit.store;
    kit.store = writer;
    for (unsigned i = 0; i < 60; i++) {
        memset(value, 'a' + (int)(i % 26), sizeof(value));
        put_note(&kit, "moves", (struct str){value, sizeof(value)});
        struct note note = get_note(&kit, i % 7 ? writer : reader, "moves");
        CHECK_INT(note.version, i + 1);
        CHECK(note.value.len == sizeof(value) && note.value.ptr[77] == value[77]);
        CHECK_STR(get_note(&kit, reader, "stays").value, STR("here"));
    }
    CHECK(test_read_file(path).len < 6u << 20); // of 24 MB
    close_store(&kit);
    open_store(&kit, url, STORE_WRITE);
    CHECK_INT(get_note(&kit, kit.store, "moves").version, 60);
    CHECK_INT(get_note(&kit, reader, "stays").version, 1);
    store_close(reader);
    kit_release(&kit);
}

static void S15_a_damaged_file_of_notes_is_told_and_runs_go_on(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char path[1024];
    open_store(&kit, url, STORE_WRITE);
    put_note(&kit, "k", STR("value"));
    put_note(&kit, "l", STR("value"));
    add_steps(&kit, "r", true, 0, 60); // the notes are out of the journal
    close_store(&kit);
    path_in(url, "notes", path);
    struct str bytes = test_read_file(path);
    char *changed = (char *)(uintptr_t)arena_copy(&kit.arena, bytes).ptr;
    changed[16 + 24 + 3] ^= 1;
    test_write_file(path, (struct str){changed, bytes.len});
    open_store(&kit, url, STORE_WRITE);
    struct note note;
    CHECK_INT(store_note(kit.store, STR("s"), STR("l"), &kit.arena, &note, NULL), E_CORRUPT);
    struct note_put put = {.space = STR("s"), .key = STR("m"), .value = STR("x"), .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &put, .note_count = 1};
    CHECK_INT(store_append(kit.store, &batch, KIT_NOW, &kit.arena, NULL), E_CORRUPT);
    add_steps(&kit, "r", false, 60, 2);
    kit_check_sound(&kit);
    kit_release(&kit);
}

static void add_to_events(const char *url, const char *text)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/r/events.jsonl", url + strlen("files:"));
    struct str before = test_read_file(path);
    struct buf bytes;
    buf_init(&bytes, SIZE_MAX / 4);
    buf_add(&bytes, before);
    buf_text(&bytes, text);
    CHECK(buf_ok(&bytes));
    test_write_file(path, buf_str(&bytes));
    buf_release(&bytes);
}

// A writer that is killed between the lines of a batch and the slot leaves lines that go on with the chain, and half a line.
static void S9_what_a_killed_writer_leaves_behind_the_head_is_no_fault_and_other_lines_are_I6_I7(void)
{
    struct kit kit;
    kit_init(&kit);
    const char *url = scratch();
    char slots[1024];
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "r", true, 0, 2);
    close_store(&kit);
    path_in(url, "runs", slots);
    struct str before = arena_copy(&kit.arena, test_read_file(slots));
    open_store(&kit, url, STORE_WRITE);
    add_steps(&kit, "r", false, 2, 2);
    close_store(&kit);
    test_write_file(slots, before);
    open_store(&kit, url, STORE_READ);
    kit_check_sound(&kit);
    CHECK_INT(kit_head(&kit, "r").last_seq, 2);
    add_to_events(url, "{\"emittedAt\":");
    kit_check_sound(&kit);
    add_to_events(url, "0}\n");
    struct verify_report report = kit_verify(&kit);
    CHECK_INT(report.fault_count, 1);
    CHECK_INT(report.faults[0].seq, 5);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test more[] = {
        TEST(S16_a_store_of_before_the_feed_gets_one_with_its_old_events),
        TEST(S16_events_that_an_older_version_added_come_into_the_feed),
        TEST(S16_a_damaged_entry_is_told_and_not_stepped_over),
        TEST(S15_the_file_of_notes_does_not_grow_for_ever),
        TEST(S15_a_damaged_file_of_notes_is_told_and_runs_go_on),
        TEST(S9_what_a_killed_writer_leaves_behind_the_head_is_no_fault_and_other_lines_are_I6_I7)};
    static const struct store_case files = {.name = "files",
                                            .durable = true,
                                            .shared = true,
                                            .scratch = scratch,
                                            .tamper = tamper,
                                            .usurp = usurp,
                                            .more = more,
                                            .more_count = ARRAY_COUNT(more)};
    return store_suite(&files, argc, argv);
}
