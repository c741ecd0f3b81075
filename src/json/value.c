#include "json/internal.h"

#undef json_is // the analyzer's

const struct json_limits json_limits_default = {
    .size_max = 8 * 1024 * 1024,
    .depth_max = 64,
    .node_count_max = 100000,
    .string_size_max = 1024 * 1024,
    .key_count_max = 10000,
};

const struct json_limits json_limits_result = {
    .size_max = 64 * 1024 * 1024,
    .depth_max = 128,
    .node_count_max = 2000000,
    .string_size_max = 64 * 1024 * 1024,
    .key_count_max = 1000000,
};

const struct json_limits json_limits_record = {
    .size_max = 64 * 1024 * 1024,
    .depth_max = 128 + 32,
    .node_count_max = 2000000,
    .string_size_max = 64 * 1024 * 1024,
    .key_count_max = 1000000,
};

struct json json_null(void)
{
    return (struct json){.type = JSON_NULL};
}

struct json json_bool(bool value)
{
    return (struct json){.type = JSON_BOOL, .boolean = value};
}

struct json json_int(int64_t value)
{
    return (struct json){.type = JSON_INT, .integer = value};
}

struct json json_string(struct str text)
{
    return (struct json){.type = JSON_STRING, .text = text};
}

struct json json_number(struct str lexeme)
{
    bool integral;
    INVARIANT(lexeme.len > 0 && lexeme.len <= JSON_NUMBER_SIZE_MAX);
    INVARIANT(json_number_scan(lexeme, &integral) == lexeme.len);
    int64_t integer;
    if (integral && str_int64(lexeme, &integer)) return json_int(integer);
    return (struct json){.type = JSON_NUMBER, .text = lexeme};
}

struct json json_array(void)
{
    return (struct json){.type = JSON_ARRAY};
}

struct json json_object(void)
{
    return (struct json){.type = JSON_OBJECT};
}

bool json_object_with(struct arena *arena, uint32_t capacity, struct json *out)
{
    struct json object = json_object();
    if (capacity) {
        object.members = ARENA_ARRAY(arena, capacity, struct json_member);
        if (!object.members) return false;
        object.capacity = capacity;
    }
    *out = object;
    return true;
}

// Room for one more element of `size` bytes in a container; NULL on failure.
static void *room_for_one(struct arena *arena, struct json *container, void *elements, size_t size)
{
    if (container->count < container->capacity) return elements;
    size_t capacity = container->capacity;
    size_t need = (size_t)container->count + 1;
    void *grown = arena_grow(arena, elements, container->count, need, size, &capacity);
    if (!grown || capacity > UINT32_MAX) return NULL;
    container->capacity = (uint32_t)capacity;
    return grown;
}

bool json_put(struct arena *arena, struct json *object, struct str key, struct json value)
{
    INVARIANT(object->type == JSON_OBJECT);
    INVARIANT(value.type != 0);
#ifdef CAIRN_VERIFY
    // The caller sees to it that keys differ; only small objects are checked, to stay linear.
    if (object->count < 64) INVARIANT(!json_get(object, key));
#endif
    if (value.type == JSON_FAILED) return false;
    struct json_member *members = room_for_one(arena, object, object->members, sizeof(struct json_member));
    if (!members) return false;
    object->members = members;
    members[object->count++] = (struct json_member){.key = key, .value = value};
    return true;
}

bool json_push(struct arena *arena, struct json *array, struct json value)
{
    INVARIANT(array->type == JSON_ARRAY);
    INVARIANT(value.type != 0);
    if (value.type == JSON_FAILED) return false;
    struct json *items = room_for_one(arena, array, array->items, sizeof(struct json));
    if (!items) return false;
    array->items = items;
    items[array->count++] = value;
    return true;
}

const struct json *json_get(const struct json *object, struct str key)
{
    if (!object || object->type != JSON_OBJECT) return NULL;
    for (uint32_t i = 0; i < object->count; i++) {
        if (str_eq(object->members[i].key, key)) return &object->members[i].value;
    }
    return NULL;
}

const struct json *json_key(const struct json *object, const char *key)
{
    return json_get(object, str_from(key));
}

static const struct json *item_at(const struct json *array, struct str index)
{
    int64_t i;
    if (index.len == 0 || index.ptr[0] == '-' || !str_int64(index, &i)) return NULL;
    return i < array->count ? &array->items[i] : NULL;
}

const struct json *json_at(const struct json *value, struct str path)
{
    bool more = path.len > 0;
    while (value && more) {
        more = str_find(path, '.', 0) < path.len;
        struct str part = str_cut(path, '.', &path);
        value = value->type == JSON_ARRAY ? item_at(value, part) : json_get(value, part);
    }
    return value;
}

bool json_is(const struct json *value, enum json_type type)
{
    return value && value->type == type;
}

struct str json_text(const struct json *value)
{
    return json_is(value, JSON_STRING) ? value->text : STR("");
}

int64_t json_integer(const struct json *value, int64_t otherwise)
{
    return json_is(value, JSON_INT) ? value->integer : otherwise;
}

bool json_true(const struct json *value)
{
    return json_is(value, JSON_BOOL) && value->boolean;
}

static bool equal(const struct json *a, const struct json *b, uint32_t depth);

// Two orders side by side: linear but for the sort, whatever order the keys came in.
static bool equal_sorted(const struct json *a, const struct json *b, uint32_t depth)
{
    struct json_order left, right;
    if (!json_order_init(&left, a->members, a->count)) return false;
    if (!json_order_init(&right, b->members, b->count)) {
        json_order_release(&left);
        return false;
    }
    bool same = true;
    for (uint32_t i = 0; i < a->count && same; i++) {
        const struct json_member *x = &a->members[left.index ? left.index[i] : i];
        const struct json_member *y = &b->members[right.index ? right.index[i] : i];
        same = str_eq(x->key, y->key) && equal(&x->value, &y->value, depth + 1);
    }
    json_order_release(&right);
    json_order_release(&left);
    return same;
}

static bool equal_objects(const struct json *a, const struct json *b, uint32_t depth)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!str_eq(a->members[i].key, b->members[i].key)) return equal_sorted(a, b, depth);
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (!equal(&a->members[i].value, &b->members[i].value, depth + 1)) return false;
    }
    return true;
}

static bool equal(const struct json *a, const struct json *b, uint32_t depth)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_cmp(a, b) == 0;
    if (a->type != b->type || a->type == JSON_FAILED || depth > JSON_DEPTH_MAX) return false;
    switch ((enum json_type)a->type) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_STRING:
        return str_eq(a->text, b->text);
    case JSON_ARRAY:
        if (a->count != b->count) return false;
        for (uint32_t i = 0; i < a->count; i++) {
            if (!equal(&a->items[i], &b->items[i], depth + 1)) return false;
        }
        return true;
    case JSON_OBJECT:
        return equal_objects(a, b, depth);
    case JSON_INT:
    case JSON_NUMBER:
        break;
    }
    INVARIANT(a->type >= JSON_NULL && a->type <= JSON_OBJECT);
    return false;
}

bool json_equal(const struct json *a, const struct json *b)
{
    if (!a || !b) return a == b;
    return a == b || equal(a, b, 0);
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {"unknown", "null", "boolean", "integer", "number", "string", "array", "object"};
    return (size_t)type < ARRAY_COUNT(names) ? names[type] : "unknown";
}

// A copy is one allocation: first the containers, then the texts behind them without gaps, because
// parked runs are made of many small values. `measure` and `carve` must agree on every byte.
struct copy {
    size_t nodes_size, texts_size;
    unsigned char *nodes;
    char *texts;
};

static bool add_size(size_t *sum, size_t count, size_t size)
{
    size_t product;
    return !__builtin_mul_overflow(count, size, &product) && !__builtin_add_overflow(*sum, product, sum);
}

static bool measure(const struct json *value, struct copy *copy, uint32_t depth)
{
    if (depth > JSON_DEPTH_MAX || value->type == JSON_FAILED) return false;
    if (value->type == JSON_STRING || value->type == JSON_NUMBER)
        return add_size(&copy->texts_size, value->text.len, 1);
    if (value->type == JSON_ARRAY) {
        if (!add_size(&copy->nodes_size, value->count, sizeof(struct json))) return false;
        for (uint32_t i = 0; i < value->count; i++) {
            if (!measure(&value->items[i], copy, depth + 1)) return false;
        }
    }
    if (value->type == JSON_OBJECT) {
        if (!add_size(&copy->nodes_size, value->count, sizeof(struct json_member))) return false;
        for (uint32_t i = 0; i < value->count; i++) {
            const struct json_member *member = &value->members[i];
            if (!add_size(&copy->texts_size, member->key.len, 1) || !measure(&member->value, copy, depth + 1))
                return false;
        }
    }
    return true;
}

static struct str carve_text(struct copy *copy, struct str text)
{
    if (text.len == 0) return STR("");
    struct str result = {copy->texts, text.len};
    memcpy(copy->texts, text.ptr, text.len);
    copy->texts += text.len;
    return result;
}

static void *carve_nodes(struct copy *copy, size_t size)
{
    if (size == 0) return NULL;
    void *nodes = copy->nodes;
    copy->nodes += size;
    return nodes;
}

static struct json carve(const struct json *value, struct copy *copy)
{
    struct json result = *value;
    if (value->type == JSON_STRING || value->type == JSON_NUMBER) result.text = carve_text(copy, value->text);
    if (value->type == JSON_ARRAY) {
        result.items = carve_nodes(copy, value->count * sizeof(struct json));
        result.capacity = value->count;
        for (uint32_t i = 0; i < value->count; i++) result.items[i] = carve(&value->items[i], copy);
    }
    if (value->type == JSON_OBJECT) {
        result.members = carve_nodes(copy, value->count * sizeof(struct json_member));
        result.capacity = value->count;
        for (uint32_t i = 0; i < value->count; i++) {
            result.members[i] = value->members[i];
            result.members[i].key = carve_text(copy, value->members[i].key);
            result.members[i].value = carve(&value->members[i].value, copy);
        }
    }
    return result;
}

bool json_copy(struct arena *arena, const struct json *value, struct json *out)
{
    struct copy copy = {0};
    size_t size;
    if (!measure(value, &copy, 0) || __builtin_add_overflow(copy.nodes_size, copy.texts_size, &size)) return false;
    if (size == 0) {
        *out = carve(value, &copy);
        return true;
    }
    unsigned char *bytes = arena_alloc(arena, size);
    if (!bytes) return false;
    copy.nodes = bytes;
    copy.texts = (char *)bytes + copy.nodes_size;
    *out = carve(value, &copy);
    INVARIANT(copy.nodes == bytes + copy.nodes_size);
    INVARIANT((unsigned char *)copy.texts == bytes + size);
    return true;
}

bool json_keep(struct arena *arena, struct json *value)
{
    struct json from = *value;
    return from.type == 0 || json_copy(arena, &from, value);
}
