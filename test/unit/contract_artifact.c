// Names of artifacts: by path, and without saying where that is.
#include "harness/test.h"

#include "contract/contract.h"

static void names_are_those_below_the_directory_of_the_run(void)
{
    static const struct {
        const char *uri, *dir, *name; // NULL: elsewhere
    } cases[] = {
        {"file:///a/r1/out/x.txt", "/a/r1", "out/x.txt"},
        {"/a/r1/x", "/a/r1", "x"},
        {"file:///a/r10/x", "/a/r1", NULL},
        {"file:///a/r1/", "/a/r1", NULL},
        {"file:///b/x", "/a/r1", NULL},
        {"file:///b/x", "", NULL},
        {"cairn://artifacts/r1/out/x.txt", "run:r1", "out/x.txt"},
        {"cairn://artifacts/r1/x", "run:r2", "x"}, // taken over: r2 has a copy, or the place of r1
        {"cairn://artifacts/r1/x", "/a/r3", "x"},
        {"cairn://artifacts/r1/", "run:r1", NULL},
        {"cairn://artifacts/r1", "run:r1", NULL},
        {"cairn://artifacts/r1/x", "", NULL},
        {"file:///a/r1/x", "run:r1", NULL},
        {"", "run:r1", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str name = {0};
        bool found = artifact_name(str_from(cases[i].uri), str_from(cases[i].dir), &name);
        CHECK_INT(found, cases[i].name != NULL);
        if (found) CHECK_STR(name, str_from(cases[i].name));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(names_are_those_below_the_directory_of_the_run)};
    return test_main("contract_artifact", tests, ARRAY_COUNT(tests), argc, argv);
}
