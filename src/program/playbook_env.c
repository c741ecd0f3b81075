// Which variables of the environment a playbook asks for: env.NAME, env['NAME'] and env.get('NAME') in its templates. The
// process that starts a run from a command line gives them as the input `env`, so that the log has what was read.
#include "program/playbook.h"

static struct str word_at(struct str text)
{
    size_t len = 0;
    while (len < text.len && char_is_word(text.ptr[len])) len++;
    return str_slice(text, 0, len);
}

// What follows "env": the name that is asked for, or nothing.
static struct str asked_name(struct str rest)
{
    bool called = str_starts(rest, STR(".get("));
    if (str_starts(rest, STR(".")) && !called) return word_at(str_slice(rest, 1, rest.len));
    if (!called && !str_starts(rest, STR("["))) return (struct str){0};
    struct str quoted = str_trim(str_slice(rest, called ? 5 : 1, rest.len));
    bool quote = quoted.len > 0 && (quoted.ptr[0] == '\'' || quoted.ptr[0] == '"');
    return quote ? word_at(str_slice(quoted, 1, quoted.len)) : (struct str){0};
}

static void scan_text(struct playbook *pb, struct str text, struct name_list *list)
{
    static const struct str env = STR_INIT("env");
    for (size_t at = str_find(text, 'e', 0); at < text.len; at = str_find(text, 'e', at + 1)) {
        struct str rest = str_slice(text, at, text.len);
        bool inside = at > 0 && (char_is_word(text.ptr[at - 1]) || text.ptr[at - 1] == '.');
        if (inside || !str_starts(rest, env)) continue;
        struct str name = asked_name(str_slice(rest, env.len, rest.len));
        if (name.len > 0 && !str_is(name, "get")) name_list_add(pb, list, name);
    }
}

static void scan(struct playbook *pb, const struct json *value, struct name_list *list)
{
    bool array = value->type == JSON_ARRAY;
    if (value->type == JSON_STRING && template_is_dynamic(value->text)) scan_text(pb, value->text, list);
    if (!array && value->type != JSON_OBJECT) return;
    for (uint32_t i = 0; i < value->count && !pb->r->failed; i++)
        if (array || !str_is(value->members[i].key, "code"))
            scan(pb, array ? &value->items[i] : &value->members[i].value, list);
}

void find_env(struct playbook *pb, const struct json *root)
{
    struct name_list list = {0};
    if (!json_get(&pb->workload, STR("env"))) scan(pb, root, &list); // else it is a value of its own
    pb->net->env = (struct net_names){list.items, (uint32_t)list.count};
}

void add_env_of(struct playbook *pb, const struct program *child)
{
    const struct net_names *own = &pb->net->env;
    struct name_list list = {0};
    if (!child || !child->net || child->net->env.count == 0 || json_get(&pb->workload, STR("env"))) return;
    for (uint32_t i = 0; i < own->count; i++) name_list_add(pb, &list, own->items[i]);
    for (uint32_t i = 0; i < child->net->env.count; i++) name_list_add(pb, &list, child->net->env.items[i]);
    pb->net->env = (struct net_names){list.items, (uint32_t)list.count};
}
