// A commit as bytes, and those bytes applied: the same function serves the commit itself, the retry after a full disk, and recovery.
#include "store/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_PER_WRITE = 128 };

// ---- building

// Events and ledger entries of each run, as chains of indexes + 1.
struct chains {
    uint32_t *head_of; // by run_log.touched
    uint32_t *first_event, *first_ledger;
    uint32_t *next_event, *next_ledger;
};

static bool make_chains(const struct commit *commit, struct arena *turn, struct chains *out)
{
    uint32_t touched_max = 0;
    for (size_t i = 0; i < commit->head_count; i++)
        if (commit->heads[i].log->touched > touched_max) touched_max = commit->heads[i].log->touched;
    out->head_of = ARENA_ARRAY(turn, touched_max + 1, uint32_t);
    out->first_event = ARENA_ARRAY(turn, commit->head_count + 1, uint32_t);
    out->first_ledger = ARENA_ARRAY(turn, commit->head_count + 1, uint32_t);
    out->next_event = ARENA_ARRAY(turn, commit->event_count + 1, uint32_t);
    out->next_ledger = ARENA_ARRAY(turn, commit->ledger_count + 1, uint32_t);
    if (!out->head_of || !out->first_event || !out->first_ledger || !out->next_event || !out->next_ledger) return false;
    for (size_t i = 0; i < commit->head_count; i++) out->head_of[commit->heads[i].log->touched] = (uint32_t)i;
    for (size_t i = commit->event_count; i > 0; i--) {
        uint32_t head = out->head_of[commit->events[i - 1].log->touched];
        out->next_event[i] = out->first_event[head];
        out->first_event[head] = (uint32_t)i;
    }
    for (size_t i = commit->ledger_count; i > 0; i--) {
        uint32_t head = out->head_of[commit->ledger[i - 1].log->touched];
        out->next_ledger[i] = out->first_ledger[head];
        out->first_ledger[head] = (uint32_t)i;
    }
    return true;
}

static void add_entry(struct buf *out, const struct commit_ledger *entry)
{
    ledger_line_write(out, &(struct record){.seq = entry->after_seq,
                                            .ledger_seq = entry->ledger_seq,
                                            .type = entry->kind,
                                            .signal_id = entry->signal_id,
                                            .bytes = entry->bytes,
                                            .hash = entry->hash});
}

static void fill_slot(struct disk_slot *slot, const struct commit_head *head)
{
    const struct run_log *log = head->log;
    const struct run_summary *summary = &head->summary;
    slot->vocabulary = (uint8_t)log->vocabulary;
    slot->status = (uint8_t)summary->status;
    if (head->terminal) slot->flags |= SLOT_TERMINAL;
    if (log->parent_run.len) slot->flags |= SLOT_CHILD;
    slot->epoch = log->epoch;
    slot->key = run_key(log->ids.tenant, log->ids.run);
    slot->last_seq = head->last_seq;
    slot->ledger_seq = head->ledger_seq;
    slot->created_ms = summary->created_ms;
    slot->started_ms = summary->started_ms;
    slot->ended_ms = summary->ended_ms;
    slot->updated_ms = head->updated_ms;
    slot->counts[0] = summary->counts.total;
    slot->counts[1] = summary->counts.completed;
    slot->counts[2] = summary->counts.failed;
    slot->counts[3] = summary->counts.skipped;
    slot->running = summary->running;
    memcpy(slot->head, head->head.b, SHA256_SIZE);
    memcpy(slot->ledger_head, head->ledger_head.b, SHA256_SIZE);
    memcpy(slot->document, log->document.b, SHA256_SIZE);
    memcpy(slot->substatus, summary->substatus, sizeof(slot->substatus) - 1);
}

// The identity stays where it was written first; a cause is at most 159 bytes, for which there is always room.
static void fill_text(struct disk_slot *slot, const struct commit_head *head, const struct names_ref *names)
{
    enum { CAUSE_SIZE_MAX = 159 };
    size_t cause = strnlen(head->summary.cause, CAUSE_SIZE_MAX);
    if (names->size) {
        slot->flags |= SLOT_NAMES_OUTSIDE;
        memcpy(slot->text, names, sizeof(*names));
        slot->names_size = sizeof(*names);
    } else
        slot->names_size = (uint16_t)names_encode(head->log, slot->text, sizeof(slot->text) - CAUSE_SIZE_MAX);
    INVARIANT(slot->names_size > 0);
    slot->cause_size = (uint16_t)cause;
    memcpy(slot->text + slot->names_size, head->summary.cause, cause);
}

// Decides where the identity of a new run goes; when outside, its bytes are appended to `bytes`.
static void place_names(uint64_t offset, const struct run_log *log, struct buf *bytes, struct names_ref *out)
{
    uint8_t room[sizeof(((struct disk_slot *)0)->text) - 159];
    *out = (struct names_ref){.offset = offset};
    if (names_encode(log, room, sizeof(room)) > 0) return;
    size_t from = bytes->len;
    names_encode_outside(log, bytes);
    if (!buf_ok(bytes)) return;
    out->size = (uint32_t)(bytes->len - from);
    out->crc = crc32c(0, bytes->ptr + from, out->size);
}

struct builder {
    struct files_store *files;
    const struct commit *commit;
    struct chains chains;
    uint64_t next_position, names_end;
};

static void add_run(struct builder *builder, size_t i)
{
    struct files_store *files = builder->files;
    struct buf *frame = &files->frame;
    const struct commit *commit = builder->commit;
    const struct commit_head *head = &commit->heads[i];
    const struct active_run *active = head->create ? NULL : files->entries[head->log->backend_id - 1].active;
    struct frame_run run = {
        .position = head->create ? builder->next_position++ : (uint64_t)head->log->backend_id,
        .events_offset = active ? active->events_size : 0,
        .ledger_offset = active ? active->ledger_size : 0,
        .names_offset = builder->names_end,
    };
    size_t start = frame->len;
    size_t lines = start + sizeof(run) + SLOT_SIZE;
    if (!buf_reserve(frame, sizeof(run) + SLOT_SIZE)) return;
    frame->len = lines;
    for (uint32_t at = builder->chains.first_event[i]; at; at = builder->chains.next_event[at]) {
        buf_add(frame, commit->events[at - 1].encoded.bytes);
        buf_byte(frame, '\n');
    }
    run.events_size = (uint32_t)(frame->len - lines);
    for (uint32_t at = builder->chains.first_ledger[i]; at; at = builder->chains.next_ledger[at])
        add_entry(frame, &commit->ledger[at - 1]);
    run.ledger_size = (uint32_t)(frame->len - lines) - run.events_size;
    struct names_ref names = active ? active->names : (struct names_ref){0};
    if (!active) place_names(builder->names_end, head->log, frame, &names);
    run.names_size = active ? 0 : names.size;
    builder->names_end += run.names_size;
    if (!buf_ok(frame)) return;
    struct disk_slot slot = {
        .position = run.position,
        .batch = files->journal.next_batch,
        .events_size = run.events_offset + run.events_size,
        .ledger_size = run.ledger_offset + run.ledger_size,
    };
    fill_slot(&slot, head);
    fill_text(&slot, head, &names);
    slot_seal(&slot);
    memcpy(frame->ptr + start, &run, sizeof(run));
    memcpy(frame->ptr + start + sizeof(run), &slot, SLOT_SIZE);
}

enum code frame_build(struct files_store *files, const struct commit *commit, struct note_node **notes,
                      struct arena *turn, struct error *err)
{
    INVARIANT(!files->pending);
    struct builder builder = {
        .files = files, .commit = commit, .next_position = files->run_count + 1, .names_end = files->names_size};
    struct frame_header header = {
        .magic = FRAME_MAGIC, .run_count = (uint32_t)commit->head_count, .inbox_count = (uint32_t)commit->inbox_count};
    struct buf *frame = &files->frame;
    if (!make_chains(commit, turn, &builder.chains)) return error_nomem(err);
    buf_clear(frame);
    buf_add(frame, (struct str){(const char *)&header, sizeof(header)});
    for (size_t i = 0; i < commit->inbox_count; i++)
        buf_add(frame, (struct str){(const char *)&commit->inbox_done[i], sizeof(commit->inbox_done[i])});
    size_t before = frame->len;
    if (commit->note_count > 0) {
        enum code rc = notes_build(files, commit, notes, err);
        if (rc != OK) return rc;
    }
    header.notes_size = (uint32_t)(frame->len - before);
    for (size_t i = 0; i < commit->head_count && buf_ok(frame); i++) add_run(&builder, i);
    if (!buf_ok(frame)) return error_nomem(err);
    header.size = (uint32_t)frame->len;
    memcpy(frame->ptr, &header, sizeof(header));
    return OK;
}

// ---- parsing

bool frame_begin(struct str frame, struct frame_header *header, struct frame_cursor *cursor)
{
    if (frame.len < sizeof(*header)) return false;
    memcpy(header, frame.ptr, sizeof(*header));
    if (header->magic != FRAME_MAGIC || header->size > frame.len || header->size < sizeof(*header)) return false;
    uint64_t body = sizeof(*header) + (uint64_t)header->inbox_count * sizeof(uint64_t) + header->notes_size;
    if (body > header->size) return false;
    *cursor = (struct frame_cursor){.rest = str_slice(frame, body, header->size), .left = header->run_count};
    return true;
}

bool frame_next(struct frame_cursor *cursor, struct frame_part *part)
{
    struct str rest = cursor->rest;
    if (cursor->left == 0 || rest.len < sizeof(part->run) + SLOT_SIZE) return false;
    memcpy(&part->run, rest.ptr, sizeof(part->run));
    memcpy(&part->slot, rest.ptr + sizeof(part->run), SLOT_SIZE);
    uint64_t size = (uint64_t)part->run.events_size + part->run.ledger_size + part->run.names_size;
    size_t at = sizeof(part->run) + SLOT_SIZE;
    if (rest.len - at < size) return false;
    part->events = str_slice(rest, at, at + part->run.events_size);
    at += part->run.events_size;
    part->ledger = str_slice(rest, at, at + part->run.ledger_size);
    at += part->run.ledger_size;
    part->names = str_slice(rest, at, at + part->run.names_size);
    at += part->run.names_size;
    cursor->rest = str_slice(rest, at, rest.len);
    cursor->left--;
    return true;
}

int64_t frame_inbox(struct str frame, uint32_t i)
{
    int64_t id;
    memcpy(&id, frame.ptr + sizeof(struct frame_header) + i * sizeof(id), sizeof(id));
    return id;
}

struct str frame_notes(struct str frame)
{
    struct frame_header header;
    struct frame_cursor cursor;
    if (!frame_begin(frame, &header, &cursor)) return STR("");
    size_t at = sizeof(header) + header.inbox_count * sizeof(uint64_t);
    return str_slice(frame, at, at + header.notes_size);
}

// ---- applying

// The journal is right, but that a file of a run held something else in the place of its lines is reported and kept: a power cut leaves
// such places, and so does a person who edits.
static enum code tell_difference(struct files_store *files, const struct frame_part *part, struct file *file,
                                 uint64_t offset, struct str lines, struct error *err)
{
    char *found = malloc(lines.len);
    size_t got = 0;
    if (!found) return error_nomem(err);
    enum code rc = files->disk->ops->read(file, offset, found, lines.len, &got, err);
    if (rc == OK && memcmp(found, lines.ptr, got) != 0) {
        char name[80];
        snprintf(name, sizeof(name), "torn-%" PRIu64 "-%" PRIu64 "-replaced", part->run.position, offset);
        os_log(LOG_WARN,
               "lines of a run were not those of the journal and were put right position=%" PRIu64 " offset=%" PRIu64,
               part->run.position, offset);
        rc = files_keep_torn(files, name, (struct str){found, got}, err);
    }
    free(found);
    return rc;
}

static enum code apply_lines(struct files_store *files, const struct frame_part *part, enum run_file kind,
                             struct error *err)
{
    struct str lines = kind == RUN_EVENTS ? part->events : part->ledger;
    uint64_t offset = kind == RUN_EVENTS ? part->run.events_offset : part->run.ledger_offset;
    struct file *file;
    if (lines.len == 0) return OK;
    enum code rc = files_open_run(files, &part->slot, kind, true, &file, err);
    if (rc != OK) return rc;
    if (files->recovering) {
        uint64_t size = 0;
        rc = files->disk->ops->size(file, &size, err);
        if (rc != OK) return rc;
        if (size < offset) // what came before is durable, so it cannot be missing
            return error_set(err, E_CORRUPT, "a file ends at %" PRIu64 ", %" PRIu64 " bytes too early", size,
                             offset - size);
        rc = tell_difference(files, part, file, offset, lines, err);
        if (rc != OK) return rc;
    }
    return files->disk->ops->write(file, offset, lines.ptr, lines.len, err);
}

// While opening, a run whose files are not what the journal expects must not keep the others from their lines.
static enum code apply_part(struct files_store *files, const struct frame_part *part, struct error *err)
{
    struct error told = {.code = OK};
    enum code rc = apply_lines(files, part, RUN_EVENTS, &told);
    if (rc == OK) rc = apply_lines(files, part, RUN_LEDGER, &told);
    if (files->recovering && (rc == E_CORRUPT || rc == E_NOT_FOUND)) {
        os_log(LOG_WARN, "lines of the journal have no place position=%" PRIu64 " reason=\"%s\"", part->run.position,
               told.message);
        rc = OK;
    }
    if (rc == OK && part->names.len > 0)
        rc = files->disk->ops->write(files->names, part->run.names_offset, part->names.ptr, part->names.len, &told);
    return rc == OK ? OK : error_set(err, rc, "%s", told.message);
}

// A slot that later frames have brought further is left alone, so that readers never see a run go back.
static bool slot_is_newer(struct files_store *files, const struct disk_slot *slot)
{
    struct disk_slot stored;
    return files->recovering && files_read_slot(files, slot->position, &stored, NULL) == OK &&
           stored.batch > slot->batch;
}

static enum code apply_slots(struct files_store *files, struct str frame, struct error *err)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    uint8_t slots[SLOTS_PER_WRITE * SLOT_SIZE];
    uint64_t first = 0, count = 0;
    enum code rc = OK;
    if (!frame_begin(frame, &header, &cursor)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    while (rc == OK && frame_next(&cursor, &part)) {
        if (slot_is_newer(files, &part.slot)) continue;
        if (count > 0 && (part.run.position != first + count || count == SLOTS_PER_WRITE)) {
            rc = files->disk->ops->write(files->runs, (first - 1) * SLOT_SIZE, slots, count * SLOT_SIZE, err);
            count = 0;
        }
        if (count == 0) first = part.run.position;
        memcpy(slots + count++ * SLOT_SIZE, &part.slot, SLOT_SIZE);
    }
    if (rc == OK && count > 0)
        rc = files->disk->ops->write(files->runs, (first - 1) * SLOT_SIZE, slots, count * SLOT_SIZE, err);
    return rc;
}

static enum code apply_index(struct files_store *files, struct str frame, struct error *err)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    enum code rc = OK;
    if (files->recovering || !frame_begin(frame, &header, &cursor)) return OK; // files_load_slots brings it up to date
    while (rc == OK && frame_next(&cursor, &part)) {
        struct run_entry *entry = &files->entries[part.run.position - 1];
        if (!entry->index_dirty) continue;
        rc = files->disk->ops->write(files->index, (part.run.position - 1) * sizeof(entry->index), &entry->index,
                                     sizeof(entry->index), err);
        entry->index_dirty = rc != OK;
    }
    return rc;
}

enum code frame_apply(struct files_store *files, struct str frame, struct error *err)
{
    struct frame_header header;
    struct frame_cursor cursor;
    struct frame_part part;
    if (!frame_begin(frame, &header, &cursor)) return error_set(err, E_CORRUPT, "a frame of the journal is malformed");
    enum code rc = OK;
    while (rc == OK && frame_next(&cursor, &part)) rc = apply_part(files, &part, err);
    if (rc == OK) rc = apply_slots(files, frame, err);
    if (rc == OK) rc = apply_index(files, frame, err);
    if (rc == OK) rc = feed_apply(files, frame, err);
    if (rc == OK && header.notes_size > 0) rc = notes_apply(files, frame, err);
    if (rc == OK && header.inbox_count > 0) rc = files_settle_inbox(files, frame, err);
    return rc;
}

enum code files_flush(struct files_store *files, struct error *err)
{
    if (!files->pending) return OK;
    enum code rc = frame_apply(files, buf_str(&files->frame), err);
    if (rc == OK) files->pending = false;
    return rc;
}

enum code files_settle(struct files_store *files, struct error *err)
{
    struct error told = {.code = OK};
    files->pending = true;
    enum code rc = files_flush(files, &told);
    if (rc == E_FULL || rc == E_NOMEM || rc == E_LIMIT) {
        os_log(LOG_WARN, "stored in the journal, but not in the files of runs yet reason=\"%s\"", told.message);
        return OK;
    }
    return rc == OK ? OK : error_set(err, E_IO, "%s", told.message);
}
