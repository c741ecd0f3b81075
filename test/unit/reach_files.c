// Files that steps leave, opened from the engine's side: nothing leads outside, nothing blocks (reliability X4, P2).
#include "reach/reach.h"

#include "harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct arena arena;
static char top[300], inside[320];
static int root;

static void put(const char *name, const char *text)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", top, name);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void begin(void)
{
    struct error err = {0};
    snprintf(top, sizeof(top), "%s", test_dir());
    snprintf(inside, sizeof(inside), "%s/in", top);
    CHECK(mkdir(inside, 0755) == 0);
    put("secret", "of the owner");
    put("in/file", "mine");
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(reach_root(inside, &root, &err), &err);
}

static void end(void)
{
    close(root);
    arena_release(&arena);
}

static enum code reads(const char *name)
{
    struct str bytes;
    struct error err = {0};
    return reach_read(root, str_from(name), 100, &arena, &bytes, &err);
}

static void in_root(const char *name, char path[400])
{
    snprintf(path, 400, "%s/%s", inside, name);
}

static void only_regular_files_beneath_are_read_X4(void)
{
    char path[400];
    begin();
    CHECK(chdir(inside) == 0);
    CHECK(symlink("../secret", "link") == 0 && symlink("..", "up") == 0 && symlink("/", "slash") == 0);
    CHECK(mkfifo("pipe", 0600) == 0 && mkdir("dir", 0700) == 0 && symlink("/proc/self/fd", "magic") == 0);
    CHECK_INT(reads("file"), OK);
    CHECK_INT(reads("dir/../file"), OK);
    CHECK_INT(reads("link"), E_DENIED);
    CHECK_INT(reads("up/secret"), E_DENIED);
    CHECK_INT(reads("slash/proc/kmsg"), E_DENIED);
    CHECK_INT(reads("magic/0"), E_DENIED);
    CHECK_INT(reads("../secret"), E_DENIED);
    in_root("file", path);
    CHECK_INT(reads(path), E_DENIED); // absolute, though inside
    CHECK_INT(reads("pipe"), E_INVALID);
    CHECK_INT(reads("dir"), E_INVALID);
    CHECK_INT(reads("none"), E_NOT_FOUND);
    CHECK_INT(reads(""), E_NOT_FOUND);
    end();
}

// As kernels before 5.6 and filters of older container runtimes answer.
static void forget_openat2(void)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {ARRAY_COUNT(code), code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) test_skip("there is no seccomp");
}

static enum code opens_dir(const char *name)
{
    struct error err = {0};
    int fd = -1;
    enum code rc = reach_dir(root, str_from(name), &fd, &err);
    if (fd >= 0) close(fd);
    return rc;
}

static void check_directories(void)
{
    CHECK_INT(opens_dir("dir"), OK);
    CHECK_INT(opens_dir("dir/deep"), OK);
    CHECK_INT(opens_dir("."), OK);
    CHECK_INT(opens_dir("up"), E_DENIED);
    CHECK_INT(opens_dir("slash"), E_DENIED);
    CHECK(opens_dir("dir/out") != OK && opens_dir("up/in") != OK);
    CHECK(opens_dir("..") != OK && opens_dir("dir/../..") != OK && opens_dir("file") != OK);
    CHECK(reads("file") == OK && reads("link") != OK && reads("up/secret") != OK && reads("../secret") != OK && reads("pipe") != OK);
}

static void no_link_is_followed_where_the_kernel_cannot_be_asked_for_it_X4(void)
{
    begin();
    CHECK(chdir(inside) == 0);
    CHECK(symlink("../secret", "link") == 0 && symlink("..", "up") == 0 && symlink("/", "slash") == 0 && mkfifo("pipe", 0600) == 0);
    CHECK(mkdir("dir", 0700) == 0 && mkdir("dir/deep", 0700) == 0 && symlink("../..", "dir/out") == 0);
    check_directories();
    forget_openat2();
    check_directories();
    end();
}

static void what_is_written_takes_the_place_of_a_link_X4(void)
{
    char path[400];
    struct stat about;
    struct error err = {0};
    begin();
    CHECK(chdir(inside) == 0 && symlink("../secret", "link") == 0 && symlink("..", "up") == 0);
    CHECK_OK(reach_write(root, STR("link"), STR("new"), &err), &err);
    in_root("link", path);
    CHECK(lstat(path, &about) == 0 && S_ISREG(about.st_mode));
    CHECK_OK(reach_write(root, STR("a/b/c"), STR("deep"), &err), &err);
    CHECK_INT(reads("a/b/c"), OK);
    CHECK_INT(reach_write(root, STR("up/planted"), STR("x"), NULL), E_DENIED);
    CHECK_INT(reach_write(root, STR("../planted"), STR("x"), NULL), E_DENIED);
    CHECK_INT(reach_write(root, STR("/tmp/planted"), STR("x"), NULL), E_DENIED);
    snprintf(path, sizeof(path), "%s/secret", top);
    CHECK_STR(test_read_file(path), STR("of the owner"));
    end();
}

static void a_name_is_beneath_the_place_that_it_names_X4(void)
{
    struct error err = {0};
    struct str name;
    char path[400];
    int fd;
    begin();
    in_root("file", path);
    struct reach_place places[] = {{str_from(inside), true}, {str_from(top), false}};
    CHECK_OK(reach_find(places, 2, str_from(path), true, &fd, &name, &err), &err);
    CHECK_STR(name, STR("file"));
    close(fd);
    CHECK_OK(reach_find(places, 2, STR("x/y"), true, &fd, &name, &err), &err);
    CHECK_STR(name, STR("x/y"));
    close(fd);
    snprintf(path, sizeof(path), "%s/secret", top);
    CHECK_INT(reach_find(places, 2, str_from(path), true, &fd, &name, NULL), E_DENIED);
    CHECK_OK(reach_find(places, 2, str_from(path), false, &fd, &name, &err), &err);
    close(fd);
    snprintf(path, sizeof(path), "%sx/file", inside); // a longer name is another directory
    CHECK_INT(reach_find(places, 1, str_from(path), false, &fd, &name, NULL), E_DENIED);
    CHECK_INT(reach_find(places, 2, STR("/etc/passwd"), false, &fd, &name, NULL), E_DENIED);
    end();
}

// A directory that its step has closed: nothing is removed, and nothing stays open, however often it is tried.
static void what_cannot_be_removed_leaves_nothing_open_X6(void)
{
    char path[400];
    struct error err = {0};
    uint64_t size = 0;
    begin();
    in_root("dir", path);
    CHECK(mkdir(path, 0755) == 0);
    put("in/dir/x", "kept");
    in_root("dir/x", path);
    CHECK_OK(reach_remove(root, STR("dir/x"), INT64_MAX, true, &size, &err), &err);
    in_root("dir", path);
    CHECK(chmod(path, 0555) == 0);
    bool drops = geteuid() == 0;
    if (drops) CHECK(seteuid(65534) == 0);
    int before = dup(root);
    for (int i = 0; i < 3; i++) CHECK(reach_remove(root, STR("dir/x"), INT64_MAX, false, &size, &err) != OK);
    int after = dup(root);
    if (drops) CHECK(seteuid(0) == 0);
    CHECK_INT(after, before + 1);
    CHECK(chmod(path, 0755) == 0);
    CHECK_OK(reach_remove(root, STR("dir/x"), INT64_MAX, false, &size, &err), &err);
    close(before), close(after);
    end();
}

static void bindings_fit_what_they_name(void)
{
    struct reach_whose who = {STR("acme"), STR("web"), STR("prod")};
    CHECK(reach_fits(&(struct reach_whose){0}, &who));
    CHECK(reach_fits(&(struct reach_whose){.tenant = STR("acme"), .environment = STR("prod")}, &who));
    CHECK(!reach_fits(&(struct reach_whose){.tenant = STR("other")}, &who));
    CHECK(!reach_fits(&(struct reach_whose){.tenant = STR("acme"), .project = STR("api")}, &who));
    CHECK(!reach_fits(&(struct reach_whose){.environment = STR("dev")}, &who));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(only_regular_files_beneath_are_read_X4),
        TEST(no_link_is_followed_where_the_kernel_cannot_be_asked_for_it_X4),
        TEST(what_is_written_takes_the_place_of_a_link_X4),
        TEST(a_name_is_beneath_the_place_that_it_names_X4),
        TEST(what_cannot_be_removed_leaves_nothing_open_X6),
        TEST(bindings_fit_what_they_name),
    };
    return test_main("reach_files", tests, ARRAY_COUNT(tests), argc, argv);
}
