// Runs a fuzz target over stored inputs: the files given, and all files below the directories
// given. It lets a plain compiler repeat what a fuzzer has found.
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t run_count;

static _Noreturn void die(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(2);
}

static void run_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rbe");
    // Exactly its size, so that a sanitizer sees the first byte read behind it.
    uint8_t *data = malloc(size ? size : 1);
    if (!file || !data || fread(data, 1, size, file) != size) die(path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    run_count++;
}

static void run_path(const char *path)
{
    struct stat status;
    if (lstat(path, &status) < 0) die(path);
    if (S_ISREG(status.st_mode)) run_file(path, (size_t)status.st_size);
    if (!S_ISDIR(status.st_mode)) return;
    DIR *dir = opendir(path);
    if (!dir) die(path);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char inner[PATH_MAX];
        if (entry->d_name[0] == '.') continue;
        int len = snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        if (len < 0 || (size_t)len >= sizeof(inner)) {
            errno = ENAMETOOLONG;
            die(path);
        }
        run_path(inner);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    // --test: one line in the format of the test harness, so that a replay counts as a test.
    bool as_test = argc > 1 && strcmp(argv[1], "--test") == 0;
    const char *slash = strrchr(argv[0], '/');
    const char *name = slash ? slash + 1 : argv[0];
    for (int i = as_test ? 2 : 1; i < argc; i++) run_path(argv[i]);
    if (as_test) printf("ok %s replays %zu inputs\n", name, run_count);
    printf("# %s: %d passed, 0 failed, 0 skipped\n", name, as_test ? 1 : 0);
    return 0;
}
