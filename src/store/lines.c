// Records as lines of text, the same in the files store and in bundles.
#include "store/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEDGER_CRC_BLANK "00000000"

// ---- writing

// The body is JSON text already and is stored as it is hashed, so the object around it is put together here.
static void add_name(struct buf *out, char before, const char *name)
{
    buf_byte(out, before);
    json_write_string(out, str_from(name));
    buf_byte(out, ':');
}

void ledger_line_write(struct buf *out, const struct record *entry)
{
    char hash[SHA256_HEX + 1], crc[9];
    size_t from = out->len, crc_at;
    digest_hex(&entry->hash, hash);
    add_name(out, '{', "after");
    buf_int(out, (int64_t)entry->seq);
    add_name(out, ',', "body");
    buf_add(out, entry->bytes);
    add_name(out, ',', "crc");
    crc_at = out->len + 1;
    json_write_string(out, STR(LEDGER_CRC_BLANK));
    add_name(out, ',', "hash");
    json_write_string(out, str_from(hash));
    add_name(out, ',', "kind");
    json_write_string(out, entry->type);
    add_name(out, ',', "seq");
    buf_int(out, (int64_t)entry->ledger_seq);
    if (entry->signal_id.len) {
        add_name(out, ',', "signalId");
        json_write_string(out, entry->signal_id);
    }
    buf_byte(out, '}');
    if (!buf_ok(out)) return;
    snprintf(crc, sizeof(crc), "%08" PRIx32, crc32c(0, out->ptr + from, out->len - from));
    memcpy(out->ptr + crc_at, crc, 8);
    buf_byte(out, '\n');
}

// ---- reading

// The value of a member of the canonical object `line`, as it stands there. Empty when there is none.
struct str line_member(struct str line, const char *name)
{
    size_t depth = 0, key_from = 0, key_to = 0, value_from = 0;
    size_t name_len = strlen(name);
    bool found = false;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        if (c == '"') {
            size_t from = i + 1;
            for (i = from; i < line.len && line.ptr[i] != '"'; i++)
                if (line.ptr[i] == '\\') i++;
            if (depth == 1 && !value_from) {
                key_from = from;
                key_to = i;
            }
        } else if (c == '{' || c == '[')
            depth++;
        else if (c == ':' && depth == 1 && !value_from) {
            value_from = i + 1;
            found = key_to - key_from == name_len && memcmp(line.ptr + key_from, name, name_len) == 0;
        } else if (c == '}' || c == ']' || (c == ',' && depth == 1)) {
            if (depth == 1 && found) return str_slice(line, value_from, i);
            if (depth == 1) value_from = 0;
            if (c != ',' && depth-- == 0) break;
        }
    }
    return (struct str){"", 0};
}

static struct str text_of(struct str value, struct arena *arena)
{
    if (value.len < 2 || value.ptr[0] != '"') return (struct str){"", 0};
    if (!memchr(value.ptr, '\\', value.len)) return str_slice(value, 1, value.len - 1);
    struct json text;
    if (json_parse(value, &json_limits_default, arena, &text, NULL) != OK) return (struct str){"", 0};
    return json_text(&text);
}

void event_line_read(struct str line, uint64_t number, enum vocabulary vocabulary, struct arena *arena,
                     struct record *out)
{
    const char *type = vocabulary == VOCABULARY_RUN ? "eventType" : "event_type";
    *out = (struct record){.seq = number, .bytes = line, .type = text_of(line_member(line, type), arena)};
}

// The hash is of the body alone; the checksum is of everything around it, too.
static bool entry_is_whole(struct str line, uint64_t number)
{
    struct str crc = line_member(line, "crc");
    int64_t seq = 0;
    char text[9];
    if (crc.len != 10 || !str_int64(line_member(line, "seq"), &seq) || (uint64_t)seq != number) return false;
    size_t at = (size_t)(crc.ptr + 1 - line.ptr);
    uint32_t sum = crc32c(0, line.ptr, at);
    sum = crc32c(sum, LEDGER_CRC_BLANK, 8);
    sum = crc32c(sum, line.ptr + at + 8, line.len - at - 8);
    snprintf(text, sizeof(text), "%08" PRIx32, sum);
    return memcmp(text, line.ptr + at, 8) == 0;
}

// An entry that is not whole comes out with what could be read; its hash will not fit.
void ledger_line_read(struct str line, uint64_t number, struct arena *arena, struct record *record)
{
    int64_t after = 0;
    *record = (struct record){
        .ledger_seq = number,
        .bytes = line_member(line, "body"),
        .type = text_of(line_member(line, "kind"), arena),
        .signal_id = text_of(line_member(line, "signalId"), arena),
    };
    if (str_int64(line_member(line, "after"), &after)) record->seq = (uint64_t)after;
    if (!entry_is_whole(line, number) || !digest_parse(text_of(line_member(line, "hash"), arena), &record->hash))
        record->hash = (struct digest){{0}};
}
