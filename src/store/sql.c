#include "store/sql.h"

#include "schema/embedded.h"

#include <stdio.h>
#include <string.h>

struct str sql_file(const char *name)
{
    const struct embedded_file *file = embedded_sqls;
    while (file < embedded_sqls + embedded_sql_count && strcmp(file->name, name) != 0) file++;
    INVARIANT(file < embedded_sqls + embedded_sql_count);
    return (struct str){(const char *)file->bytes, file->size};
}

static bool sql_copy(const struct sql_row *row, int column, struct arena *arena, struct str *out)
{
    *out = arena_copy(arena, row->bytes(row, column));
    return out->ptr != NULL;
}

bool sql_take_digest(const struct sql_row *row, int column, struct digest *out)
{
    struct str bytes = row->bytes(row, column);
    if (bytes.len != SHA256_SIZE) return false;
    memcpy(out->b, bytes.ptr, SHA256_SIZE);
    return true;
}

static void take_text(const struct sql_row *row, int column, char *out, size_t size)
{
    snprintf(out, size, "%.*s", STR_ARG(row->bytes(row, column)));
}

static uint64_t take_u64(const struct sql_row *row, int column)
{
    return (uint64_t)row->number(row, column);
}

static uint32_t take_u32(const struct sql_row *row, int column)
{
    return (uint32_t)row->number(row, column);
}

// ---- heads

static bool take_identity(const struct sql_row *row, struct arena *arena, struct run_head *out)
{
    struct run_ids *ids = &out->ids;
    struct str *texts[] = {&ids->tenant,  &ids->run,          &ids->project, &ids->environment,
                           &ids->plan_id, &ids->plan_version, &out->name};
    for (int i = 0; i < (int)ARRAY_COUNT(texts); i++)
        if (!sql_copy(row, i + 1, arena, texts[i])) return false;
    return sql_copy(row, 10, arena, &out->parent_run) && sql_copy(row, 11, arena, &out->original_run);
}

static void take_summary(const struct sql_row *row, struct run_summary *out)
{
    out->status = run_status_parse(row->bytes(row, 20));
    take_text(row, 21, out->substatus, sizeof(out->substatus));
    out->counts.total = take_u32(row, 22);
    out->counts.completed = take_u32(row, 23);
    out->counts.failed = take_u32(row, 24);
    out->counts.skipped = take_u32(row, 25);
    out->running = take_u32(row, 26);
    out->created_ms = row->number(row, 27);
    out->started_ms = row->number(row, 28);
    out->ended_ms = row->number(row, 29);
    take_text(row, 30, out->cause, sizeof(out->cause));
    summary_read(out);
}

enum code sql_take_head(const struct sql_row *row, struct arena *arena, struct run_head *out, int64_t *owner,
                        struct error *err)
{
    *out = (struct run_head){0};
    if (!take_identity(row, arena, out)) return error_nomem(err);
    out->position = take_u64(row, 0);
    out->vocabulary = vocabulary_parse(row->bytes(row, 8));
    out->last_seq = take_u64(row, 12);
    out->last_ledger_seq = take_u64(row, 13);
    out->updated_ms = row->number(row, 16);
    out->terminal = row->number(row, 17) != 0;
    out->epoch = take_u64(row, 18);
    *owner = row->number(row, 19);
    take_summary(row, &out->summary);
    if (!out->vocabulary || !out->summary.status || !sql_take_digest(row, 9, &out->document) ||
        !sql_take_digest(row, 14, &out->head) || !sql_take_digest(row, 15, &out->ledger_head))
        return error_set(err, E_CORRUPT, "run %.*s: its row is damaged", STR_ARG(out->ids.run));
    return OK;
}

// ---- records

enum code sql_take_event(const struct sql_row *row, struct arena *arena, struct record *out)
{
    const struct str parts[] = {row->bytes(row, 4), row->bytes(row, 3), row->bytes(row, 5)};
    struct record_columns *columns = ARENA_NEW(arena, struct record_columns);
    char *bytes = arena_alloc(arena, parts[0].len + parts[1].len + parts[2].len + 1);
    if (!columns || !bytes) return E_NOMEM;
    char *to = bytes;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        memcpy(to, parts[i].ptr, parts[i].len);
        to += parts[i].len;
    }
    columns->payload = (struct str){bytes + parts[0].len, parts[1].len};
    *out = (struct record){.seq = take_u64(row, 0), .bytes = {bytes, (size_t)(to - bytes)}, .columns = columns};
    bool copied = sql_copy(row, 1, arena, &out->type) && sql_copy(row, 2, arena, &columns->timestamp) &&
                  sql_copy(row, 6, arena, &columns->key) && sql_copy(row, 7, arena, &columns->run);
    return copied ? OK : E_NOMEM;
}

enum code sql_take_entry(const struct sql_row *row, struct arena *arena, struct record *out)
{
    *out = (struct record){.seq = take_u64(row, 1), .ledger_seq = take_u64(row, 0)};
    if (!sql_take_digest(row, 5, &out->hash)) return E_CORRUPT;
    bool copied = sql_copy(row, 2, arena, &out->type) && sql_copy(row, 3, arena, &out->signal_id) &&
                  sql_copy(row, 4, arena, &out->bytes);
    return copied ? OK : E_NOMEM;
}

enum code sql_take_item(const struct sql_row *row, struct arena *arena, struct feed_item *out)
{
    *out = (struct feed_item){.position = take_u64(row, 8)};
    enum code rc = sql_take_event(row, arena, &out->record);
    if (rc) return rc;
    out->run = out->record.columns->run;
    out->vocabulary = vocabulary_parse(row->bytes(row, 10));
    if (!out->vocabulary) return E_CORRUPT;
    return sql_copy(row, 9, arena, &out->tenant) ? OK : E_NOMEM;
}

enum code sql_take_missing(const struct sql_row *row, struct arena *arena, struct faults *out)
{
    INVARIANT(row->number(row, 0) > 0);
    char name[48];
    struct verify_fault one = {.run = row->bytes(row, 1),
                               .what = row->number(row, 2) ? STR("its head is missing") : STR("its row is missing")};
    snprintf(name, sizeof(name), "number-%lld", (long long)row->number(row, 0));
    if (one.run.len == 0) one.run = str_from(name);
    return fault_add(out, arena, &one) ? OK : E_NOMEM;
}

struct sql_record sql_record(const struct encoded *encoded)
{
    struct str bytes = encoded->bytes;
    size_t from = bytes.len, to = bytes.len;
    if (encoded->payload.len) {
        INVARIANT(encoded->payload.ptr >= bytes.ptr);
        from = (size_t)(encoded->payload.ptr - bytes.ptr);
        to = from + encoded->payload.len;
        INVARIANT(to <= bytes.len);
    }
    return (struct sql_record){str_slice(bytes, 0, from), str_slice(bytes, from, to), str_slice(bytes, to, bytes.len)};
}

// ---- leases and the inbox

void sql_release(struct sql_released_list *list, int64_t run_no, uint64_t epoch)
{
    INVARIANT(run_no > 0 && epoch > 0);
    if (!LIST_ROOM(list->items, list->count, &list->capacity)) return;
    list->items[list->count++] = (struct sql_released){run_no, epoch};
}
