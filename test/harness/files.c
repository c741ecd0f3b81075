// Directories and files of tests: the temporary directory, the public suites, golden files.
#include "harness/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char test_dir_path[512];

static void remove_at(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int fd = openat(parent, name, flags);
    if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0) fd = openat(parent, name, flags);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0) close(fd);
        return;
    }
    fchmod(fd, 0700); // a test may have made it read-only
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) remove_at(fd, entry->d_name);
    }
    closedir(dir);
    unlinkat(parent, name, AT_REMOVEDIR);
}

void test_remove_tree(const char *path)
{
    remove_at(AT_FDCWD, path);
}

const char *test_dir(void)
{
    static bool made;
    if (!made && mkdir(test_dir_path, 0700) < 0)
        test_fail(__FILE__, __LINE__, "mkdir %s: %s", test_dir_path, strerror(errno));
    made = true;
    return test_dir_path;
}

// Files read are kept until the test ends, so that nobody needs to free them.
struct kept {
    struct kept *next;
    char bytes[];
};

static struct kept *kept_files;

static struct kept *keep(size_t size)
{
    struct kept *kept = malloc(sizeof(*kept) + size);
    if (!kept) test_fail(__FILE__, __LINE__, "out of memory");
    kept->next = kept_files;
    kept_files = kept;
    return kept;
}

struct str test_read_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat status;
    if (!file || fstat(fileno(file), &status) < 0) test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    size_t size = (size_t)status.st_size;
    struct kept *kept = keep(size + 1);
    size_t got = fread(kept->bytes, 1, size, file);
    if (got != size) test_fail(__FILE__, __LINE__, "%s: %zu of %zu bytes read", path, got, size);
    fclose(file);
    kept->bytes[size] = '\0';
    return (struct str){kept->bytes, size};
}

void test_write_file(const char *path, struct str bytes)
{
    FILE *file = fopen(path, "wbe");
    if (!file) test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
    size_t put = bytes.len ? fwrite(bytes.ptr, 1, bytes.len, file) : 0;
    if (fclose(file) != 0 || put != bytes.len)
        test_fail(__FILE__, __LINE__, "%s: cannot write %zu bytes", path, bytes.len);
}

// The repository is the nearest directory upwards that holds src/LAYERS; NULL when there is none.
static const char *repository_root(void)
{
    static char root[PATH_MAX];
    if (!getcwd(root, sizeof(root))) return NULL;
    for (;;) {
        char probe[PATH_MAX + 16];
        snprintf(probe, sizeof(probe), "%s/src/LAYERS", root);
        if (access(probe, F_OK) == 0) return root;
        char *slash = strrchr(root, '/');
        if (!slash || slash == root) return NULL;
        *slash = '\0';
    }
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static const char *find_shared(const char *variable, const char *name, char out[PATH_MAX])
{
    const char *chosen = getenv(variable);
    if (chosen && chosen[0]) return is_directory(chosen) ? realpath(chosen, out) : NULL;
    const char *bases[] = {".", repository_root()};
    for (size_t i = 0; i < ARRAY_COUNT(bases); i++) {
        char path[PATH_MAX + 64];
        if (!bases[i]) continue;
        snprintf(path, sizeof(path), "%s/../shared/%s", bases[i], name);
        if (is_directory(path)) return realpath(path, out);
    }
    return NULL;
}

const char *test_suites_dir(void)
{
    static char path[PATH_MAX];
    return find_shared("CAIRN_SUITES", "suites", path);
}

const char *test_corpus_dir(void)
{
    static char path[PATH_MAX];
    return find_shared("CAIRN_CORPUS", "corpus", path);
}

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

static void add_lines(struct buf *out, char mark, struct str text, size_t count)
{
    enum { SHOWN = 200 };
    for (size_t i = 0; i < count && text.len; i++) {
        struct str line = str_slice(str_cut(text, '\n', &text), 0, SHOWN);
        buf_printf(out, "\n%c%.*s", mark, STR_ARG(line));
    }
}

// The first place where they differ: two lines before it, three from each side.
static _Noreturn void fail_with_difference(const char *path, struct str got, struct str want)
{
    enum { BEFORE = 2, AFTER = 3 };
    size_t starts[BEFORE + 1] = {0}; // of the current line and those before
    size_t line = 1;
    for (size_t i = 0; i < got.len && i < want.len && got.ptr[i] == want.ptr[i]; i++) {
        if (got.ptr[i] != '\n') continue;
        memmove(starts + 1, starts, BEFORE * sizeof(starts[0]));
        starts[0] = i + 1;
        line++;
    }
    size_t shown = line - 1 < BEFORE ? line - 1 : BEFORE;
    struct buf out;
    buf_init(&out, 3500);
    add_lines(&out, ' ', str_slice(want, starts[shown], starts[0]), BEFORE);
    add_lines(&out, '-', str_slice(want, starts[0], want.len), AFTER);
    add_lines(&out, '+', str_slice(got, starts[0], got.len), AFTER);
    test_fail(path, (int)line, "differs (- wanted, + got; CAIRN_GOLDEN_UPDATE=1 rewrites it)%s", out.ptr);
}

void test_golden(const char *name, struct str got)
{
    const char *root = repository_root();
    if (!root) test_fail(__FILE__, __LINE__, "not inside the repository: no golden files");
    char path[PATH_MAX + 256];
    snprintf(path, sizeof(path), "%s/test/golden/%s", root, name);
    if (getenv("CAIRN_GOLDEN_UPDATE")) {
        make_parents(path);
        test_write_file(path, got);
        return;
    }
    struct str want = test_read_file(path);
    if (!str_eq(got, want)) fail_with_difference(path, got, want);
}
