// What the files of the harness share.
#ifndef CAIRN_TEST_HARNESS_INTERNAL_H
#define CAIRN_TEST_HARNESS_INTERNAL_H

#include "harness/test.h"

// Named by the parent, made by the child on demand, removed by the parent however the child ended.
extern char test_dir_path[512];

// Removes a file or a whole directory; never follows a symbolic link. No error when it is not there.
void test_remove_tree(const char *path);

#endif
