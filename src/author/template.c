// Documents to begin with: the examples, carried in the binary.
#include "author/author.h"

#include "schema/embedded.h"

#include <string.h>

// What a template needs beside it. Everything else that is embedded is a template of its own.
static const struct {
    const char *file, *needs;
} needs[] = {{"parent.yaml", "child.yaml"}, {"runtimes.yaml", "scripts/count-words.py"}};

static struct str bytes_of(size_t index)
{
    return (struct str){(const char *)embedded_templates[index].bytes, embedded_templates[index].size};
}

// The first line of the comment on top, or the description.
static struct str summary(struct str text)
{
    if (str_starts(text, STR("#"))) {
        size_t end = str_find(text, '\n', 0);
        text = str_trim(str_slice(text, 1, end));
    } else {
        static const char key[] = "\"description\": \"";
        const char *at = strstr(text.ptr, key);
        if (!at) return STR("");
        size_t from = (size_t)(at - text.ptr) + sizeof(key) - 1;
        text = str_slice(text, from, str_find(text, '"', from));
    }
    return str_ends(text, STR(".")) ? str_slice(text, 0, text.len - 1) : text;
}

bool example_at(size_t index, struct example *out)
{
    size_t seen = 0;
    for (size_t i = 0; i < embedded_template_count; i++) {
        struct str file = str_from(embedded_templates[i].name);
        if (str_find(file, '/', 0) < file.len || seen++ != index) continue;
        *out = (struct example){.file = file, .text = bytes_of(i), .what = summary(bytes_of(i))};
        size_t dot = file.len;
        while (file.ptr[dot - 1] != '.') dot--;
        out->id = str_slice(file, 0, dot - 1);
        for (size_t k = 0; k < ARRAY_COUNT(needs); k++)
            if (str_is(file, needs[k].file)) out->needs = str_from(needs[k].needs);
        return true;
    }
    return false;
}

bool example_find(struct str id, struct example *out)
{
    for (size_t i = 0; example_at(i, out); i++)
        if (str_eq(out->id, id) || str_eq(out->file, id)) return true;
    return false;
}

struct str example_file(struct str name)
{
    for (size_t i = 0; i < embedded_template_count; i++)
        if (str_is(name, embedded_templates[i].name)) return bytes_of(i);
    return STR("");
}

// The place of the value of the first `key` that stands at the start of a line or of a JSON member.
static bool find_value(struct str text, const char *key, size_t *from, size_t *end)
{
    struct str rest = text;
    while (rest.len > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        struct str content = str_trim(line);
        bool quoted = str_starts(content, STR("\""));
        if (quoted) content = str_slice(content, 1, content.len);
        if (!str_starts(content, str_from(key))) continue;
        const char *value = content.ptr + strlen(key) + (quoted ? 1 : 0);
        if (value >= line.ptr + line.len || *value != ':') continue;
        value++;
        while (*value == ' ' || *value == '"') value++;
        *from = (size_t)(value - text.ptr);
        *end = *from;
        while (*end < text.len && !strchr("\",\n #", text.ptr[*end])) (*end)++;
        return true;
    }
    return false;
}

bool example_named(struct buf *out, const struct example *from, struct str name)
{
    size_t start, end;
    bool plan = find_value(from->text, "planId", &start, &end);
    if (!plan && !find_value(from->text, "name", &start, &end)) return false;
    buf_add(out, str_slice(from->text, 0, start));
    buf_add(out, name);
    struct str rest = str_slice(from->text, end, from->text.len);
    bool playbook = find_value(from->text, "apiVersion", &start, &end);
    if (playbook && find_value(rest, "path", &start, &end)) { // its id
        buf_add(out, str_slice(rest, 0, start));
        buf_add(out, name);
        rest = str_slice(rest, end, rest.len);
    }
    buf_add(out, rest);
    return buf_ok(out);
}
