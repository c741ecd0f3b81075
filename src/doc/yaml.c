// libyaml's events to a tree. The only file that knows libyaml.
//
// Nesting is a stack of frames, one per open list or mapping, so the depth of a document never becomes depth of the C
// stack. An alias shares the value it names (values are immutable), so expansion costs no memory; what it would cost a
// reader that walks the tree is counted all the same (E0504). What a merge key puts into a mapping was counted with its aliases.
//
// libyaml counts characters, struct json counts bytes in lines: `cursor` walks the text from mark to mark. Marks come
// in order but for a few steps back, so the walk is linear.
#include "doc/internal.h"

#include "base/map.h"

#include <string.h>
#include <yaml.h>

enum {
    ANCHOR_COUNT_MAX = 1000,
    ALIAS_NODE_MAX = 10000,
    LINEAR_KEYS_MAX = 8, // mappings up to this size find repeated keys by looking
};

struct cursor {
    size_t index;  // characters before it
    size_t offset; // bytes before it
    size_t line_start;
    uint32_t line;
};

struct position {
    uint32_t line, column;
};

struct anchor {
    struct str name;
    struct json value;
    uint32_t node_count;
    uint32_t depth; // levels of nesting inside; 0 for scalars
    bool open;      // still being read: an alias to it would be a cycle
};

struct frame {
    struct json value; // the list or mapping
    struct json_member key;
    struct json merges; // mappings that << names
    uint32_t again;     // index + 1 of the member that has the key already
    bool has_key;
    bool merging;         // the key is <<
    bool dropped;         // the key was refused: its value is read and forgotten
    struct map keys;      // of a mapping with many
    uint32_t node_before; // nodes counted before this one
    uint32_t depth;       // levels of nesting seen inside
    uint32_t anchor;      // index + 1
};

struct yaml_reader {
    yaml_parser_t parser;
    struct str text, file;
    const struct doc_limits *limits;
    struct arena *arena;
    struct diagnostics *diagnostics;
    struct cursor cursor;
    struct frame *frames;
    uint32_t frame_count;
    struct anchor *anchors;
    size_t anchor_count, anchor_capacity;
    uint32_t node_count, alias_node_count;
    uint32_t document_count;
    uint32_t fault_count;
    size_t *repeats; // diagnostics of keys that are given twice
    size_t repeat_count, repeat_capacity;
    struct json root;
};

static void step_forward(const struct str text, struct cursor *cursor)
{
    size_t size = str_utf8_size(text, cursor->offset);
    if (text.ptr[cursor->offset] == '\n') {
        cursor->line++;
        cursor->line_start = cursor->offset + 1;
    }
    cursor->offset += size ? size : 1;
    cursor->index++;
}

static void step_back(const struct str text, struct cursor *cursor)
{
    do cursor->offset--;
    while (cursor->offset && ((unsigned char)text.ptr[cursor->offset] & 0xC0) == 0x80);
    cursor->index--;
    if (text.ptr[cursor->offset] != '\n') return;
    cursor->line--;
    size_t start = cursor->offset;
    while (start && text.ptr[start - 1] != '\n') start--;
    cursor->line_start = start;
}

static struct position place_of(struct yaml_reader *r, yaml_mark_t mark)
{
    while (r->cursor.index < mark.index && r->cursor.offset < r->text.len) step_forward(r->text, &r->cursor);
    while (r->cursor.index > mark.index && r->cursor.offset) step_back(r->text, &r->cursor);
    size_t column = r->cursor.offset - r->cursor.line_start + 1;
    return (struct position){r->cursor.line, column > UINT32_MAX ? UINT32_MAX : (uint32_t)column};
}

static uint32_t width_of(yaml_mark_t start, yaml_mark_t end)
{
    return end.line == start.line && end.column > start.column ? (uint32_t)(end.column - start.column) : 1;
}

// One fault that does not end the reading; a hint is optional.
static void fault(struct yaml_reader *r, const char *id, const yaml_event_t *event, const char *message,
                  const char *hint)
{
    struct position at = place_of(r, event->start_mark);
    uint32_t width = width_of(event->start_mark, event->end_mark);
    struct diagnostic *d =
        diagnose(r->diagnostics, SEVERITY_ERROR, id, "", r->file, at.line, at.column, width, "%s", message);
    if (hint) diagnostic_hint(r->diagnostics, d, "%s", hint);
    r->fault_count++;
}

static enum code fatal(struct yaml_reader *r, const char *id, const yaml_event_t *event, const char *message)
{
    fault(r, id, event, message, NULL);
    return E_INVALID;
}

static enum code count_nodes(struct yaml_reader *r, const yaml_event_t *event, uint32_t count)
{
    if (count > r->limits->node_count_max - r->node_count) {
        fault(r, "E0503", event, "the document has too many values", DOC_MORE_STEPS);
        return E_INVALID;
    }
    r->node_count += count;
    return OK;
}

// ---- anchors

// libyaml ends the name of an anchor before a colon and takes the rest for the value. Names that hold one are legal YAML,
// so the value would silently be another one than was written.
static void check_anchor_end(struct yaml_reader *r, const yaml_event_t *event, struct str name)
{
    place_of(r, event->start_mark);
    struct str rest = str_slice(r->text, r->cursor.offset, r->text.len);
    if (rest.len <= name.len + 1 || rest.ptr[0] != '&') return;
    if (rest.ptr[name.len + 1] == ':') fault(r, "E0108", event, "the name of an anchor cannot hold a colon", NULL);
}

// *index: position + 1 of a new anchor, or 0 when the event has none.
static enum code add_anchor(struct yaml_reader *r, const yaml_event_t *event, const yaml_char_t *name, uint32_t *index)
{
    *index = 0;
    if (!name) return OK;
    if (r->anchor_count == ANCHOR_COUNT_MAX)
        return fatal(r, "E0504", event, "the document has more than 1,000 anchors");
    check_anchor_end(r, event, str_from((const char *)name));
    if (!ARENA_ROOM(r->arena, r->anchors, r->anchor_count, &r->anchor_capacity)) return E_NOMEM;
    struct str copy = arena_copy(r->arena, str_from((const char *)name));
    if (!copy.ptr) return E_NOMEM;
    r->anchors[r->anchor_count++] = (struct anchor){.name = copy, .open = true};
    *index = (uint32_t)r->anchor_count;
    return OK;
}

static void close_anchor(struct yaml_reader *r, uint32_t index, const struct json *value, uint32_t node_count,
                         uint32_t depth)
{
    if (!index) return;
    struct anchor *anchor = &r->anchors[index - 1];
    anchor->value = *value;
    anchor->node_count = node_count;
    anchor->depth = depth;
    anchor->open = false;
}

// The latest definition counts.
static const struct anchor *find_anchor(const struct yaml_reader *r, struct str name)
{
    for (size_t i = r->anchor_count; i-- > 0;)
        if (str_eq(r->anchors[i].name, name)) return &r->anchors[i];
    return NULL;
}

// ---- placing values

static enum code push_item(struct yaml_reader *r, struct frame *frame, const struct json *value)
{
    size_t capacity = frame->value.capacity;
    size_t count = frame->value.count;
    if (!ARENA_ROOM(r->arena, frame->value.items, count, &capacity)) return E_NOMEM;
    frame->value.capacity = (uint32_t)capacity;
    frame->value.items[frame->value.count++] = *value;
    return OK;
}

// The key is <<: what it names is put under the other keys when the mapping ends.
static enum code push_merge(struct yaml_reader *r, struct frame *frame, const struct json *value)
{
    bool fits;
    frame->merging = false;
    if (frame->merges.type == 0) frame->merges = json_array();
    if (!merge_add(r->arena, &frame->merges, value, &fits)) return E_NOMEM;
    if (fits || (value->type == JSON_NULL && r->fault_count > 0)) return OK; // an alias of nothing was reported
    struct diagnostic *d = diagnose(r->diagnostics, SEVERITY_ERROR, "E0106", "", r->file, frame->key.line,
                                    frame->key.column, 2, "<< takes a mapping or a list of mappings");
    diagnostic_hint(r->diagnostics, d, "<<: *name, or <<: [*one, *other]; quote \"<<\" when it is a key");
    r->fault_count++;
    return OK;
}

static enum code push_member(struct yaml_reader *r, struct frame *frame, const struct json *value)
{
    frame->has_key = false;
    if (frame->merging) return push_merge(r, frame, value);
    if (frame->again) {
        frame->key.value = *value;
        frame->value.members[frame->again - 1] = frame->key;
        return OK;
    }
    if (frame->dropped) {
        frame->dropped = false;
        return OK;
    }
    size_t capacity = frame->value.capacity;
    size_t count = frame->value.count;
    if (!ARENA_ROOM(r->arena, frame->value.members, count, &capacity)) return E_NOMEM;
    frame->value.capacity = (uint32_t)capacity;
    frame->key.value = *value;
    frame->value.members[frame->value.count++] = frame->key;
    return OK;
}

static enum code place_value(struct yaml_reader *r, const struct json *value, uint32_t depth)
{
    if (r->frame_count == 0) {
        r->root = *value;
        return OK;
    }
    struct frame *frame = &r->frames[r->frame_count - 1];
    if (depth + 1 > frame->depth) frame->depth = depth + 1;
    return frame->value.type == JSON_ARRAY ? push_item(r, frame, value) : push_member(r, frame, value);
}

// ---- keys

static bool wants_key(const struct yaml_reader *r)
{
    if (r->frame_count == 0) return false;
    const struct frame *frame = &r->frames[r->frame_count - 1];
    return frame->value.type == JSON_OBJECT && !frame->has_key;
}

// Is `key` already in the mapping? Keys of large mappings are kept in a map.
static enum code find_key(struct yaml_reader *r, struct frame *frame, struct str key, uint32_t *index)
{
    *index = MAP_NONE;
    uint32_t count = frame->value.count;
    if (count < LINEAR_KEYS_MAX) {
        for (uint32_t i = 0; i < count; i++)
            if (str_eq(frame->value.members[i].key, key)) *index = i;
        return OK;
    }
    if (frame->keys.count == 0) map_init(&frame->keys, r->arena);
    for (size_t i = frame->keys.count; i < count; i++)
        if (!map_put(&frame->keys, frame->value.members[i].key, (uint32_t)i, NULL)) return E_NOMEM;
    *index = map_get(&frame->keys, key);
    return OK;
}

// The last one is kept; whether that will do is seen when all is read.
static enum code repeated_key(struct yaml_reader *r, const yaml_event_t *event, struct frame *frame, uint32_t first)
{
    struct str key = frame->key.key;
    size_t at = r->diagnostics->count;
    struct diagnostic *d = diagnose(r->diagnostics, SEVERITY_ERROR, "E0104", "", r->file, frame->key.line,
                                    frame->key.column, width_of(event->start_mark, event->end_mark),
                                    "the key \"%.*s\" is given twice", (int)(key.len > 64 ? 64 : key.len), key.ptr);
    diagnostic_hint(r->diagnostics, d, "the first one is on line %u", frame->value.members[first].line);
    r->fault_count++;
    frame->again = first + 1;
    if (!d) return OK;
    if (!ARENA_ROOM(r->arena, r->repeats, r->repeat_count, &r->repeat_capacity)) return E_NOMEM;
    r->repeats[r->repeat_count++] = at;
    return OK;
}

static enum code set_key(struct yaml_reader *r, const yaml_event_t *event, struct str key, bool plain)
{
    struct frame *frame = &r->frames[r->frame_count - 1];
    struct position at = place_of(r, event->start_mark);
    frame->key = (struct json_member){.key = key, .line = at.line, .column = at.column};
    frame->has_key = true;
    frame->dropped = false;
    frame->again = 0;
    if (frame->value.count == json_limits_default.key_count_max)
        return fatal(r, "E0508", event, "a mapping has too many keys");
    frame->merging = plain && str_eq(key, STR("<<"));
    if (frame->merging) return OK;
    uint32_t first;
    enum code rc = find_key(r, frame, key, &first);
    if (rc) return rc;
    if (first == MAP_NONE) return OK;
    return repeated_key(r, event, frame, first);
}

// ---- events

static bool is_tag(const yaml_char_t *tag, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *text = (const char *)tag;
    return strncmp(text, prefix, sizeof(prefix) - 1) == 0 && strcmp(text + sizeof(prefix) - 1, name) == 0;
}

static void refuse_tag(struct yaml_reader *r, const yaml_event_t *event, const yaml_char_t *tag)
{
    struct position at = place_of(r, event->start_mark);
    struct diagnostic *d = diagnose(r->diagnostics, SEVERITY_ERROR, "E0105", "", r->file, at.line, at.column, 1,
                                    "the tag %.80s is not supported here", (const char *)tag);
    diagnostic_hint(r->diagnostics, d, "leave the tag out");
    r->fault_count++;
}

// The kind that an explicit tag asks for, 0 when the tag is refused.
static enum scalar tagged_kind(const yaml_char_t *tag, enum scalar plain)
{
    if (strcmp((const char *)tag, "!") == 0 || is_tag(tag, "str")) return SCALAR_STRING;
    if (is_tag(tag, "null")) return SCALAR_NULL;
    if (is_tag(tag, "bool")) return SCALAR_BOOL;
    if (is_tag(tag, "int")) return SCALAR_INT;
    if (is_tag(tag, "float")) return plain == SCALAR_NONFINITE ? plain : SCALAR_FLOAT;
    return (enum scalar)0;
}

static enum scalar kind_of(struct yaml_reader *r, const yaml_event_t *event, struct str text)
{
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const yaml_char_t *tag = event->data.scalar.tag;
    if (!tag) return plain ? scalar_kind(text) : SCALAR_STRING;
    enum scalar found = scalar_kind(text);
    enum scalar asked = tagged_kind(tag, found);
    if (!asked) {
        refuse_tag(r, event, tag);
        return SCALAR_STRING;
    }
    bool whole = asked == SCALAR_FLOAT && found == SCALAR_INT; // !!float 3 is 3.0
    if (asked != SCALAR_STRING && asked != found && !whole) {
        fault(r, "E0110", event, "the value is not of the type its tag asks for", NULL);
        return SCALAR_STRING;
    }
    return asked;
}

static enum code read_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
    struct str text =
        arena_copy(r->arena, (struct str){(const char *)event->data.scalar.value, event->data.scalar.length});
    if (!text.ptr) return E_NOMEM;
    uint32_t anchor;
    enum code rc = add_anchor(r, event, event->data.scalar.anchor, &anchor);
    if (rc) return rc;
    enum scalar kind = kind_of(r, event, text);
    if (wants_key(r)) {
        struct json key = json_string(text);
        close_anchor(r, anchor, &key, 1, 0);
        return set_key(r, event, text, event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
    }
    rc = count_nodes(r, event, 1);
    if (rc) return rc;
    struct json value = json_null();
    rc = kind == SCALAR_NONFINITE ? E_INVALID : scalar_value(text, kind, r->arena, &value);
    if (rc == E_NOMEM) return rc;
    if (rc == E_LIMIT) fault(r, "E0508", event, "the number is too long", "quote it when it is a text");
    if (rc == E_INVALID) fault(r, "E0110", event, "the number cannot be held by JSON", "quote it when it is a text");
    struct position at = place_of(r, event->start_mark);
    json_set_place(&value, at.line, at.column);
    close_anchor(r, anchor, &value, 1, 0);
    return place_value(r, &value, 0);
}

static enum code read_alias(struct yaml_reader *r, const yaml_event_t *event)
{
    struct str name = str_from((const char *)event->data.alias.anchor);
    const struct anchor *anchor = find_anchor(r, name);
    struct json value = json_null();
    uint32_t depth = 0;
    if (!anchor) {
        fault(r, "E0108", event, "the alias names no anchor before it", NULL);
    } else if (anchor->open) {
        fault(r, "E0108", event, "the alias is inside of what it repeats", NULL);
    } else {
        if (anchor->node_count > ALIAS_NODE_MAX - r->alias_node_count)
            return fatal(r, "E0504", event, "aliases expand to more than 10,000 values");
        r->alias_node_count += anchor->node_count;
        enum code rc = count_nodes(r, event, anchor->node_count);
        if (rc) return rc;
        if (anchor->depth > r->limits->depth_max - r->frame_count)
            return fatal(r, "E0502", event, "the document is nested too deeply");
        value = anchor->value;
        depth = anchor->depth;
    }
    if (!wants_key(r)) return place_value(r, &value, depth);
    if (value.type == JSON_STRING) return set_key(r, event, value.text, false);
    if (anchor) fault(r, "E0109", event, "a key must be a text", NULL);
    r->frames[r->frame_count - 1].has_key = true;
    r->frames[r->frame_count - 1].dropped = true;
    return OK;
}

static enum code open_frame(struct yaml_reader *r, const yaml_event_t *event, enum json_type type,
                            const yaml_char_t *tag, const yaml_char_t *anchor_name)
{
    if (r->frame_count == r->limits->depth_max) return fatal(r, "E0502", event, "the document is nested too deeply");
    if (wants_key(r)) return fatal(r, "E0109", event, "a key must be a text, not a list or a mapping");
    if (tag && strcmp((const char *)tag, "!") != 0 && !is_tag(tag, type == JSON_ARRAY ? "seq" : "map"))
        refuse_tag(r, event, tag);
    struct frame frame = {.node_before = r->node_count};
    enum code rc = add_anchor(r, event, anchor_name, &frame.anchor);
    if (!rc) rc = count_nodes(r, event, 1);
    if (rc) return rc;
    struct position at = place_of(r, event->start_mark);
    frame.value = type == JSON_ARRAY ? json_array() : json_object();
    json_set_place(&frame.value, at.line, at.column);
    r->frames[r->frame_count++] = frame;
    return OK;
}

static enum code close_frame(struct yaml_reader *r, const yaml_event_t *event)
{
    INVARIANT(r->frame_count > 0);
    struct frame *frame = &r->frames[--r->frame_count];
    INVARIANT(!frame->has_key);
    if (frame->merges.count > 0) {
        uint32_t key_max = (uint32_t)json_limits_default.key_count_max;
        enum code rc = merge_apply(r->arena, &frame->merges, key_max, &frame->value);
        if (rc == E_LIMIT) return fatal(r, "E0508", event, "a mapping has too many keys");
        if (rc) return rc;
    }
    uint32_t depth = frame->depth ? frame->depth : 1;
    close_anchor(r, frame->anchor, &frame->value, r->node_count - frame->node_before, depth);
    return place_value(r, &frame->value, depth);
}

static enum code read_event(struct yaml_reader *r, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return OK;
    case YAML_DOCUMENT_START_EVENT:
        if (r->document_count++ > 0) return fatal(r, "E0107", event, "the file holds more than one document");
        return OK;
    case YAML_ALIAS_EVENT:
        return read_alias(r, event);
    case YAML_SCALAR_EVENT:
        return read_scalar(r, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_frame(r, event, JSON_ARRAY, event->data.sequence_start.tag, event->data.sequence_start.anchor);
    case YAML_MAPPING_START_EVENT:
        return open_frame(r, event, JSON_OBJECT, event->data.mapping_start.tag, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_frame(r, event);
    }
    return E_INVALID;
}

// ---- what libyaml says

static const char *hint_for(const struct yaml_reader *r)
{
    char c = r->cursor.offset < r->text.len ? r->text.ptr[r->cursor.offset] : '\0';
    if (c == '\t') return "YAML does not allow tabs for indentation; use blanks";
    if (c == '@' || c == '`' || c == '%') return "quote a text that begins with this character";
    if (r->parser.error == YAML_SCANNER_ERROR && r->parser.problem &&
        strcmp(r->parser.problem, "mapping values are not allowed in this context") == 0)
        return "quote a text that contains \": \", and check the indentation of this line";
    return NULL;
}

static enum code parser_error(struct yaml_reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    if (parser->error == YAML_MEMORY_ERROR) return E_NOMEM;
    const char *problem = parser->problem ? parser->problem : "the text is not YAML";
    struct position at;
    if (parser->error == YAML_READER_ERROR) {
        // The reader counts bytes; everything before the place is well-formed.
        yaml_mark_t mark = {0};
        for (size_t i = 0; i < parser->problem_offset && i < r->text.len; mark.index++) i += str_utf8_size(r->text, i);
        at = place_of(r, mark);
    } else {
        at = place_of(r, parser->problem_mark);
    }
    struct diagnostic *d;
    if (parser->context && strncmp(parser->context, "while parsing", 13) == 0)
        d = diagnose(r->diagnostics, SEVERITY_ERROR, "E0103", "", r->file, at.line, at.column, 1,
                     "%s, %s that starts on line %zu", problem, parser->context, parser->context_mark.line + 1);
    else
        d = diagnose(r->diagnostics, SEVERITY_ERROR, "E0103", "", r->file, at.line, at.column, 1, "%s", problem);
    const char *hint = hint_for(r);
    if (hint) diagnostic_hint(r->diagnostics, d, "%s", hint);
    return E_INVALID;
}

// Playbooks are written for readers that take the last one without a word.
static void forgive(struct yaml_reader *r, size_t index)
{
    struct diagnostic *d = &r->diagnostics->items[index];
    d->severity = SEVERITY_WARNING;
    r->diagnostics->error_count--;
    r->diagnostics->warning_count++;
    r->fault_count--;
}

static enum code read_stream(struct yaml_reader *r)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) return parser_error(r);
        bool done = event.type == YAML_STREAM_END_EVENT;
        enum code rc = read_event(r, &event);
        yaml_event_delete(&event);
        if (rc) return rc;
        if (done) break;
    }
    if (r->document_count == 0) {
        diagnose(r->diagnostics, SEVERITY_ERROR, "E0111", "", r->file, 1, 1, 1, "the document is empty");
        return E_INVALID;
    }
    INVARIANT(r->frame_count == 0);
    bool playbook = json_is(&r->root, JSON_OBJECT) && str_is(json_text(json_key(&r->root, "kind")), "Playbook");
    for (size_t i = 0; playbook && i < r->repeat_count; i++) forgive(r, r->repeats[i]);
    return r->fault_count ? E_INVALID : OK;
}

// A last line of blanks counts as a line of a block scalar, but libyaml sees it only when it is ended.
static bool ends_in_blanks(struct str text)
{
    size_t at = text.len;
    while (at > 0 && text.ptr[at - 1] == ' ') at--;
    return at < text.len && at > 0 && text.ptr[at - 1] == '\n';
}

static bool end_last_line(struct arena *arena, struct str *text)
{
    if (!ends_in_blanks(*text)) return true;
    char *ended = arena_alloc(arena, text->len + 1);
    if (!ended) return false;
    memcpy(ended, text->ptr, text->len);
    ended[text->len] = '\n';
    *text = (struct str){ended, text->len + 1};
    return true;
}

enum code yaml_tree(struct str text, struct str file, const struct doc_limits *limits, struct arena *arena,
                    struct json *out, struct diagnostics *diagnostics)
{
    struct yaml_reader *r = ARENA_NEW(arena, struct yaml_reader);
    struct str ended = text;
    if (!r || !end_last_line(arena, &ended)) return E_NOMEM;
    r->text = text;
    r->file = file;
    r->limits = limits;
    r->arena = arena;
    r->diagnostics = diagnostics;
    r->cursor.line = 1;
    r->frames = ARENA_ARRAY(arena, limits->depth_max, struct frame);
    if (!r->frames || !yaml_parser_initialize(&r->parser)) return E_NOMEM;
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)ended.ptr, ended.len);
    enum code rc = read_stream(r);
    yaml_parser_delete(&r->parser);
    if (rc == OK) *out = r->root;
    return rc;
}
