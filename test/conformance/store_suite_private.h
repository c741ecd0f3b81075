// Between the files of the suite.
#ifndef CAIRN_TEST_CONFORMANCE_STORE_SUITE_PRIVATE_H
#define CAIRN_TEST_CONFORMANCE_STORE_SUITE_PRIVATE_H

#include "conformance/store_kit.h"
#include "conformance/store_suite.h"

extern const struct store_case *suite_case; // the store under test
extern const struct test suite_append_tests[], suite_read_tests[], suite_crash_tests[], suite_verify_tests[],
    suite_import_tests[], suite_remove_tests[], suite_notes_tests[], suite_shards_tests[];
extern const size_t suite_append_count, suite_read_count, suite_crash_count, suite_verify_count, suite_import_count,
    suite_remove_count, suite_notes_count, suite_shards_count;

struct store *suite_open(struct kit *kit, const char *url, enum store_mode mode);
void suite_start(struct kit *kit); // a kit with a fresh store open for writing
// Closes and opens again; a store that ends with its handle stays open as it is.
void suite_reopen(struct kit *kit, enum store_mode mode);

#endif
