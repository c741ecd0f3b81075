// Lists in eight formats. A row is a JSON object; columns say which of its members people see and how.
#include "term/term.h"
#include "term/text.h"

#include "author/author.h"
#include "base/civil.h"

#include <string.h>

enum { NARROW_COLUMNS = 80 };

static const struct column *find_column(const struct list *list, struct str key)
{
    for (size_t i = 0; i < list->column_count; i++)
        if (str_is(key, list->columns[i].key)) return &list->columns[i];
    return NULL;
}

static bool read_fields(struct list *list, struct str rest)
{
    struct console *console = list->console;
    while (rest.len > 0) {
        struct str key = str_trim(str_cut(rest, ',', &rest));
        const struct column *column = find_column(list, key);
        if (!column) {
            const char *names[32];
            for (size_t i = 0; i < list->column_count; i++) names[i] = list->columns[i].key;
            const char *near = nearest_name(key, names, list->column_count);
            console_fail(console, EXIT_USAGE, "there is no field %.*s", STR_ARG(key));
            struct buf all SCOPED(buf_release) = buf_of(4096);
            for (size_t i = 0; i < list->column_count; i++) buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
            console_hint(console, "%s%s%sfields: %s", near ? "did you mean " : "", near ? near : "", near ? "? " : "",
                         all.ptr);
            return false;
        }
        if (list->field_count < ARRAY_COUNT(list->fields)) list->fields[list->field_count++] = column->key;
    }
    return true;
}

bool list_begin(struct list *list, struct console *console, const struct column *columns, size_t count,
                const char *name_key, enum format format, struct str fields)
{
    const struct term *term = &console->out;
    INVARIANT(count <= ARRAY_COUNT(list->fields));
    *list = (struct list){.console = console,
                          .columns = columns,
                          .column_count = count,
                          .name_key = name_key,
                          .format = format,
                          .picked = fields.len > 0,
                          .narrow = format == FORMAT_TABLE && term->tty && term->columns < NARROW_COLUMNS};
    if (!read_fields(list, fields)) return false;
    for (size_t i = 0; !list->picked && i < count; i++)
        if (format != FORMAT_TABLE || !columns[i].wide) list->fields[list->field_count++] = columns[i].key;
    buf_init(&list->text, TEXT_MAX);
    if (list->format == FORMAT_JSON) buf_byte(&list->text, '[');
    return true;
}

// The value of a cell as text that machines read: strings bare, all else as JSON.
static void raw_text(struct buf *out, const struct json *value)
{
    if (!value || value->type == JSON_NULL) return;
    if (value->type == JSON_STRING)
        buf_add(out, value->text);
    else
        json_write(out, value);
}

// A list of texts as people write one.
static void people_text(struct buf *out, const struct json *value)
{
    bool texts = json_is(value, JSON_ARRAY);
    for (uint32_t i = 0; texts && i < value->count; i++) texts = value->items[i].type == JSON_STRING;
    if (!texts) raw_text(out, value);
    for (uint32_t i = 0; texts && i < value->count; i++) {
        if (i) buf_text(out, ", ");
        buf_add(out, value->items[i].text);
    }
}

static void human_text(const struct list *list, struct buf *out, const struct column *column, const struct json *value)
{
    int64_t ms;
    char duration[24];
    struct buf raw SCOPED(buf_release) = buf_of(1 << 20);
    people_text(&raw, value);
    switch (column->cell) {
    case CELL_STATUS:
        if (run_status_parse(buf_str(&raw))) {
            look_run(out, &list->console->out, run_status_parse(buf_str(&raw)));
            break;
        }
        text_safe(out, buf_str(&raw));
        break;
    case CELL_TIME:
        if (civil_parse(buf_str(&raw), &ms)) time_text(out, list->console, ms);
        break;
    case CELL_MS:
        if (json_is(value, JSON_INT)) {
            duration_format(value->integer, duration);
            buf_text(out, duration);
        }
        break;
    case CELL_RUN:
        text_safe(out, list->narrow ? short_id(buf_str(&raw)) : buf_str(&raw));
        break;
    case CELL_TEXT:
    case CELL_NUMBER:
        text_safe(out, buf_str(&raw));
        break;
    }
}

// One cell of a table, cut to its column. row NULL: the title.
static void table_cell(const struct list *list, struct buf *out, size_t field, const struct json *row)
{
    const struct column *column = find_column(list, str_from(list->fields[field]));
    bool limited = column->width_max > 0 && list->format == FORMAT_TABLE;
    struct buf whole SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (row)
        human_text(list, &whole, column, json_at(row, str_from(column->key)));
    else
        buf_text(&whole, column->title);
    buf_clear(out);
    text_cut(out, buf_str(&whole), limited ? column->width_max : SIZE_MAX, list->console->out.utf8);
}

static void table_row(struct list *list, const size_t *widths, struct buf *cell, const struct json *row)
{
    const struct term *term = &list->console->out;
    struct buf line SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (size_t f = 0; f < list->field_count; f++) {
        enum cell kind = find_column(list, str_from(list->fields[f]))->cell;
        bool right = kind == CELL_NUMBER || kind == CELL_MS;
        table_cell(list, cell, f, row);
        size_t width = text_width(buf_str(cell));
        if (right) text_pad(&line, width, widths[f]);
        tone_text(&line, term, row ? TONE_NONE : TONE_DIM, cell->ptr);
        if (!right) text_pad(&line, width, widths[f]);
        buf_text(&line, "  ");
    }
    text_trim(&line);
    text_cut(&list->text, buf_str(&line), term->tty && list->format == FORMAT_TABLE ? term->columns : SIZE_MAX,
             term->utf8);
    buf_byte(&list->text, '\n');
}

static void write_table(struct list *list, const struct json *rows)
{
    size_t *widths = list->widths;
    struct buf cell SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (size_t r = 0; r <= rows->count; r++)
        for (size_t f = 0; f < list->field_count; f++) {
            table_cell(list, &cell, f, r ? &rows->items[r - 1] : NULL);
            size_t width = text_width(buf_str(&cell));
            widths[f] = width > widths[f] ? width : widths[f];
        }
    for (size_t r = list->headed ? 1 : 0; r <= rows->count; r++)
        table_row(list, widths, &cell, r ? &rows->items[r - 1] : NULL);
}

// RFC 4180; a text that a spreadsheet would take for a formula gets an apostrophe in front (H6).
static void csv_cell(struct buf *out, struct str text, bool is_text)
{
    bool formula = is_text && text.len > 0 && strchr("=+-@\t\r", text.ptr[0]);
    bool quote = formula;
    for (size_t i = 0; i < text.len && !quote; i++) quote = strchr(",\"\r\n", text.ptr[i]) != NULL;
    if (!quote) {
        buf_add(out, text);
        return;
    }
    buf_byte(out, '"');
    if (formula) buf_byte(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') buf_byte(out, '"');
        buf_byte(out, text.ptr[i]);
    }
    buf_byte(out, '"');
}

static void write_separated(struct list *list, const struct json *rows)
{
    bool csv = list->format == FORMAT_CSV;
    struct buf raw SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (size_t r = list->headed ? 1 : 0; r <= rows->count; r++)
        for (size_t f = 0; f < list->field_count; f++) {
            const struct json *value = r ? json_at(&rows->items[r - 1], str_from(list->fields[f])) : NULL;
            buf_clear(&raw);
            if (r == 0)
                buf_text(&raw, list->fields[f]);
            else
                raw_text(&raw, value);
            if (csv)
                csv_cell(&list->text, buf_str(&raw), r == 0 || json_is(value, JSON_STRING));
            else
                text_safe(&list->text, buf_str(&raw));
            bool last = f + 1 == list->field_count;
            buf_text(&list->text, last ? (csv ? "\r\n" : "\n") : csv ? "," : "\t");
        }
}

// The row as it is, or only what --fields names.
static struct json pick(const struct list *list, const struct json *row)
{
    struct json out = json_object();
    if (!list->picked) return *row;
    for (size_t f = 0; f < list->field_count; f++) {
        const struct json *value = json_at(row, str_from(list->fields[f]));
        JSON_ADD(&list->console->arena, &out, {list->fields[f], value ? *value : json_null()});
        if (!json_ok(&out)) return *row;
    }
    return out;
}

static void write_json(struct list *list, const struct json *row, size_t index)
{
    struct json picked = pick(list, row);
    if (list->format == FORMAT_JSON) buf_text(&list->text, index ? ",\n  " : "\n  ");
    if (list->format == FORMAT_YAML) {
        struct json one = {.type = JSON_ARRAY, .count = 1, .capacity = 1};
        one.items = &picked;
        yaml_write(&list->text, &one);
        return;
    }
    json_write(&list->text, &picked);
    if (list->format == FORMAT_JSONL) buf_byte(&list->text, '\n');
}

void list_page(struct list *list, const struct json *rows)
{
    switch (list->format) {
    case FORMAT_TABLE:
    case FORMAT_WIDE:
        write_table(list, rows);
        break;
    case FORMAT_CSV:
    case FORMAT_TSV:
        write_separated(list, rows);
        break;
    case FORMAT_NAME:
        for (uint32_t i = 0; i < rows->count; i++) {
            struct buf raw SCOPED(buf_release) = buf_of(1 << 16);
            raw_text(&raw, json_at(&rows->items[i], str_from(list->name_key)));
            text_safe(&list->text, buf_str(&raw));
            buf_byte(&list->text, '\n');
        }
        break;
    case FORMAT_JSON:
    case FORMAT_JSONL:
    case FORMAT_YAML:
        for (uint32_t i = 0; i < rows->count; i++) write_json(list, &rows->items[i], list->row_count + i);
        break;
    case FORMAT_NONE:
    case FORMAT_TEXT:
    case FORMAT_JUNIT:
        break;
    }
    list->headed = true;
    list->row_count += rows->count;
    if (list->format == FORMAT_JSON || list->format == FORMAT_JSONL || list->format == FORMAT_YAML)
        print_data(list->console, &list->text);
    else
        console_print(list->console, &list->text);
}

void list_close(struct list *list)
{
    if (list->format == FORMAT_JSON) buf_text(&list->text, list->row_count ? "\n]\n" : "]\n");
    if (list->format == FORMAT_YAML && list->row_count == 0) buf_text(&list->text, "[]\n");
    console_print(list->console, &list->text);
    buf_release(&list->text);
}
