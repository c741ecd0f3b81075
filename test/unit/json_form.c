// Configuration, member by member: the first fault with its name and place, and no member that nobody asked for.
#include "harness/test.h"

#include "json/form.h"

struct settings {
    struct str name, path;
    bool on;
    uint32_t count;
    int choice;
    const struct str *list;
    size_t list_count;
    int64_t inner;
};

static enum code read(const char *text, struct arena *arena, struct settings *out, struct error *err)
{
    static const char *const words[] = {"", "red", "green", NULL};
    struct json value;
    struct form form, part;
    *err = (struct error){0};
    CHECK_OK(json_parse(str_from(text), NULL, arena, &value, err), err);
    form_begin(&form, "lamp", &value, arena, err);
    form_text(&form, "name", &out->name);
    form_path(&form, "path", &out->path);
    form_flag(&form, "on", &out->on);
    form_count(&form, "count", 1, 9, &out->count);
    form_choice(&form, "colour", words, &out->choice);
    form_texts(&form, "list", true, 2, &out->list, &out->list_count);
    if (form_part(&form, "part", &part)) {
        form_number(&part, "inner", -5, 5, &out->inner);
        form_take(&part, "whole", JSON_INT);
        form.rc = form_end(&part);
    }
    return form_end(&form);
}

static void members_are_read_and_what_is_absent_stays(void)
{
    struct arena arena = arena_of(4096, SIZE_MAX);
    struct error err;
    struct settings out = {.count = 7, .inner = 1};
    CHECK_OK(read("{\"name\":\"a\",\"path\":\"/x\",\"on\":true,\"colour\":\"green\",\"list\":[\"/a\",\"/b\"],"
                  "\"part\":{\"inner\":-5}}",
                  &arena, &out, &err),
             &err);
    CHECK_STR(out.name, STR("a"));
    CHECK_STR(out.path, STR("/x"));
    CHECK(out.on && out.count == 7 && out.choice == 2 && out.list_count == 2 && out.inner == -5);
    CHECK_STR(out.list[1], STR("/b"));
    arena_release(&arena);
}

static void the_first_fault_is_told_with_its_name_and_place(void)
{
    static const struct {
        const char *text, *why;
        uint32_t line;
    } cases[] = {
        {"{\"name\":\"\"}", "lamp.name: must be a text", 1},
        {"{\"name\":\"a\\u0000\"}", "lamp.name: must be a text", 1},
        {"{\n\"path\":\"x\"}", "lamp.path: must be an absolute path", 2},
        {"{\"on\":1}", "lamp.on: must be true or false", 1},
        {"{\"count\":10}", "lamp.count: must be a whole number from 1 to 9", 1},
        {"{\"count\":1.5}", "lamp.count: must be a whole number from 1 to 9", 1},
        {"{\"colour\":\"blue\"}", "lamp.colour: is one of red, green", 1},
        {"{\"colour\":\"\"}", "lamp.colour: is one of red, green", 1},
        {"{\"colour\":7}", "lamp.colour: is one of red, green", 1},
        {"{\"list\":[\"/a\",\"b\"]}", "lamp.list: must hold absolute paths", 1},
        {"{\"list\":[\"/a\",\"/b\",\"/c\"]}", "lamp.list: has too many elements", 1},
        {"{\"list\":\"/a\"}", "lamp.list: must be a list", 1},
        {"{\"part\":[]}", "lamp.part: must be an object", 1},
        {"{\"part\":{\"inner\":6}}", "part.inner: must be a whole number from -5 to 5", 1},
        {"{\"part\":{\"outer\":6}}", "part: there is no setting \"outer\"", 1},
        {"{\"name\":\"a\",\n\"nam\":\"b\"}", "lamp: there is no setting \"nam\"", 2},
        {"{\"on\":1,\"nam\":\"b\",\"count\":0}", "lamp.on: must be true or false", 1}, // the others are of no interest
        {"{\"part\":{\"whole\":1e400}}", "part.whole: must be a whole number", 1},
        {"[]", "lamp: must be an object", 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = arena_of(4096, SIZE_MAX);
        struct settings out = {0};
        struct error err;
        CHECK_INT(read(cases[i].text, &arena, &out, &err), E_INVALID);
        CHECK_TEXT(err.message, cases[i].why);
        CHECK_INT(err.line, cases[i].line);
        arena_release(&arena);
    }
}

static void memory_that_runs_out_is_told(void)
{
    struct arena arena = arena_of(4096, SIZE_MAX), small = arena_of(64, 64);
    struct json value;
    struct error err = {0};
    struct form form;
    struct str text = {0};
    CHECK_OK(json_parse(STR("{\"name\":\"abc\"}"), NULL, &arena, &value, &err), &err);
    form_begin(&form, "", &value, &small, &err);
    small.fail_in = 1;
    form_text(&form, "name", &text);
    CHECK_INT(form_end(&form), E_NOMEM);
    arena_release(&small);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(members_are_read_and_what_is_absent_stays),
        TEST(the_first_fault_is_told_with_its_name_and_place),
        TEST(memory_that_runs_out_is_told),
    };
    return test_main("json_form", tests, ARRAY_COUNT(tests), argc, argv);
}
