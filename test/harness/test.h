// The test harness: a program is a table of tests; each runs in a forked child with a time limit; output is one line a
// test ("ok NAME", "not ok NAME: why", "skip NAME: why") and a last line "# PROGRAM: N passed, N failed, N skipped".
// Exit status is 0 only when nothing failed. Arguments are name filters (substring). $CAIRN_TEST_SECONDS replaces the time
// limit of 300 s a test. What a test prints goes to stderr.
//
//   static void retry_stops_after_limit_RE_5d(void) { CHECK(...); }
//   int main(int argc, char **argv) {
//       static const struct test tests[] = {TEST(retry_stops_after_limit_RE_5d)};
//       return test_main("kernel_retry", tests, ARRAY_COUNT(tests), argc, argv);
//   }
// A test whose name holds requirement ids (RE_5d, ES_1_1a, EL_2g, WE_1e, I11, C_23) appears in the coverage table.
#ifndef CAIRN_TEST_HARNESS_TEST_H
#define CAIRN_TEST_HARNESS_TEST_H

#include "base/buf.h"
#include "base/invariant.h"
#include "base/str.h"

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(function)                                                                                                 \
    {                                                                                                                  \
#function, function                                                                                            \
    }

int test_main(const char *program, const struct test *tests, size_t count, int argc, char **argv);

#define CHECK(x) ((x) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #x))
#define CHECK_INT(a, b) test_check_int(__FILE__, __LINE__, #a, (int64_t)(a), (int64_t)(b))
#define CHECK_STR(a, b) test_check_str(__FILE__, __LINE__, #a, (a), (b))                  // struct str, struct str
#define CHECK_TEXT(a, b) test_check_str(__FILE__, __LINE__, #a, str_from(a), str_from(b)) // const char *
#define CHECK_OK(rc, err) test_check_ok(__FILE__, __LINE__, #rc, (int)(rc), (err))

// That the test has taken the branch that COVER marks.
#define COVERED(branch)                                                                                                \
    (cover_hits(#branch) > 0 ? (void)0 : test_fail(__FILE__, __LINE__, "COVER(%s) was not reached", #branch))

_Noreturn void test_fail(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);
_Noreturn void test_skip(const char *format, ...) PRINTF_LIKE(1, 2);
void test_check_int(const char *file, int line, const char *what, int64_t got, int64_t want);
void test_check_str(const char *file, int line, const char *what, struct str got, struct str want);
struct error;
void test_check_ok(const char *file, int line, const char *what, int rc, const struct error *err);

// Fails the test unless run(context), in a child of its own, ends by abort(): for broken INVARIANTs.
void test_aborts(void (*run)(void *context), void *context);

// A fresh directory for this test, removed when the test ends. Absolute path, valid until then.
const char *test_dir(void);
// Contents of a file (malloc'ed, NUL after the end); fails the test when it cannot be read.
struct str test_read_file(const char *path);
void test_write_file(const char *path, struct str bytes);
// Directory of the public test suites or of the corpus ($CAIRN_SUITES, $CAIRN_CORPUS, else ../shared/...), or NULL.
const char *test_suites_dir(void);
const char *test_corpus_dir(void);
// Compares with test/golden/NAME; with CAIRN_GOLDEN_UPDATE set, rewrites it instead.
void test_golden(const char *name, struct str got);

#endif
