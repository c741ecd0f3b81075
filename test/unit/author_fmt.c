// Layout: goldens, every example from another layout to the same one, comments kept, and refusing what cannot be proved.
#include "program_kit.h"

#include "author/author.h"

#include <dirent.h>
#include <stdlib.h>

static struct kit kit;

static enum code no_files(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    static const char child[] = "nodes: [{id: a, noop: true}]";
    (void)context, (void)err;
    part->file = arena_copy(arena, part->request);
    part->text = arena_copy(arena, part->kind == PART_DOCUMENT ? str_from(child) : STR("echo"));
    return OK;
}
static const struct program_loader loader = {.load = no_files};

static void load(struct str text)
{
    kit_release(&kit);
    arena_init(&kit.arena, 4096, (size_t)256 << 20);
    diagnostics_init(&kit.diagnostics, &kit.arena);
    kit.rc = program_load(text, STR("t.yaml"), &loader, &kit.diagnostics, &kit.program, &kit.err);
    if (kit.rc) test_fail(__FILE__, __LINE__, "%s\n%s", text.ptr, kit_shown(&kit, text).ptr);
}

// In memory of its own: the kit is loaded again by the next call.
static struct str formatted(struct str text)
{
    struct str out;
    struct error err = {0};
    load(text);
    CHECK_OK(author_format(kit.program, &loader, &kit.arena, &out, &err), &err);
    char *copy = malloc(out.len + 1);
    CHECK(copy);
    memcpy(copy, out.ptr, out.len);
    copy[out.len] = '\0';
    return (struct str){copy, out.len};
}

static const char messy[] = "# a comment on top\n"
                            "\n\n"
                            "name:    messy   \n"
                            "inputs:   # of the run\n"
                            "      a:   1\n"
                            "      b: {default: 2,\n"
                            "          type: integer}\n"
                            "nodes:\n"
                            "-   id:  first\n"
                            "    # about the text\n"
                            "    bash:  |\n"
                            "           if true; then\n"
                            "             echo '  - not: a list'\n"
                            "\n\n"
                            "           fi\n"
                            "\n\n"
                            "    # about the retry\n"
                            "    retry:\n"
                            "          max_attempts:   2\n"
                            "-   id: second\n"
                            "    depends_on:\n"
                            "    -   first\n"
                            "    when: \"$first.output ==\n"
                            "       'x'\"\n"
                            "    echo: plain text that\n"
                            "        goes on\n"
                            "-   id: third\n"
                            "    echo: >-\n"
                            "      folded\n"
                            "      text\n";

static void goldens(void)
{
    static const char plan[] =
        "{\"steps\":[{\"dependsOn\":[],\"kind\":\"shell\",\"with\":{\"command\":\"echo "
        "caf\\u00e9\"},\"retry\":{\"delay\":"
        "\"1s\",\"maxAttempts\":2},\"stepId\":\"a\"},{\"stepId\":\"b\",\"description\":\"a long text that makes the "
        "step too "
        "long for one line of the document\",\"kind\":\"noop\"}],\"metadata\":{\"planVersion\":2.10,\"planId\":\"p\"},"
        "\"x-own\":[1,2,{\"z\":1,\"a\":2}],\"inputs\":{\"z\":1,\"a\":2}}";
    struct str text = formatted(str_from(messy));
    test_golden("fmt/messy.yaml", text);
    free((char *)(uintptr_t)text.ptr);
    text = formatted(str_from(plan));
    test_golden("fmt/plan.json", text);
    free((char *)(uintptr_t)text.ptr);
    kit_release(&kit);
}

static void other_layouts_come_to_the_same(void)
{
    DIR *dir = opendir("examples");
    if (!dir) test_skip("not in the repository");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct str name = str_from(entry->d_name);
        if (!str_ends(name, STR(".yaml"))) continue;
        char path[300];
        snprintf(path, sizeof(path), "examples/%s", entry->d_name);
        struct str text = test_read_file(path), rest = text;
        struct buf wide;
        buf_init(&wide, 1 << 20);
        while (rest.len > 0) { // every indentation twice as deep
            struct str line = str_cut(rest, '\n', &rest);
            for (size_t i = 0; i < line.len && line.ptr[i] == ' '; i++) buf_byte(&wide, ' ');
            size_t at = 0;
            while (at < line.len && line.ptr[at] == ' ') at++;
            bool item = str_starts(str_slice(line, at, line.len), STR("- "));
            buf_add(&wide, str_slice(line, 0, item ? at + 1 : at));
            buf_text(&wide, item ? "  " : "");
            buf_add(&wide, str_slice(line, item ? at + 1 : at, line.len));
            buf_text(&wide, line.len > 0 ? "\n" : "  \n");
        }
        struct str a = formatted(text), b = formatted(buf_str(&wide));
        struct str again = formatted(a);
        CHECK_STR(again, a);
        CHECK_STR(a, text);                            // the examples are formatted
        if (!strstr(text.ptr, "|\n")) CHECK_STR(b, a); // in block texts the blanks count
        free((char *)(uintptr_t)a.ptr);
        free((char *)(uintptr_t)b.ptr);
        free((char *)(uintptr_t)again.ptr);
        buf_release(&wide);
        count++;
    }
    closedir(dir);
    CHECK(count > 5);
    kit_release(&kit);
}

static void meaning_forgets_places_only(void)
{
    bool same;
    struct error err = {0};
    load(STR("name: n\nnodes:\n  - { id: a, bash: x }\n"));
    CHECK_OK(author_same(kit.program, STR("name: n\n\nnodes: [{bash: x, id: a}]"), &loader, &kit.arena, &same, &err),
             &err);
    CHECK(same);
    CHECK_OK(author_same(kit.program, STR("name: n\nnodes: [{bash: y, id: a}]"), &loader, &kit.arena, &same, &err),
             &err);
    CHECK(!same);
    CHECK_OK(author_same(kit.program, STR("name: n\nversion: 2\nnodes: [{bash: x, id: a}]"), &loader, &kit.arena, &same,
                         &err),
             &err);
    CHECK(!same);
    CHECK_OK(author_same(kit.program, STR("nodes: ["), &loader, &kit.arena, &same, &err), &err);
    CHECK(!same);
    kit_release(&kit);
}

static void differences(void)
{
    struct arena arena;
    struct error err = {0};
    struct buf out;
    arena_init(&arena, 4096, 1 << 24);
    buf_init(&out, 1 << 16);
    CHECK_OK(author_diff(&out, STR("f"), STR("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"),
                         STR("a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\n"), &arena, &err),
             &err);
    CHECK_STR(buf_str(&out),
              STR("--- f\n+++ f\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -8,3 +8,4 @@\n h\n i\n j\n+k\n"));
    buf_release(&out);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(goldens),
        TEST(other_layouts_come_to_the_same),
        TEST(meaning_forgets_places_only),
        TEST(differences),
    };
    return test_main("author_fmt", tests, ARRAY_COUNT(tests), argc, argv);
}
