// What a confined step is kept from. The parent works everything out (the limits, the rules of Landlock, the filter of
// system calls); the child only applies it, with raw system calls (process.c).
//
// Landlock is used through its numbers: the headers of Debian 12 know the first version of it only. What the running kernel
// knows is asked at run time.
#include "tool/internal.h"

#include "base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

const char confine_path_default[] = "/usr/local/bin:/usr/bin:/bin";

const struct tool_limits tool_limits_default = {
    .memory = 4096 * MIB,
    .files = 256,
    .processes = 512,
    .file_size = 4096 * MIB,
    .stack = 8 * MIB,
};

// ---- Landlock

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_VERSION_1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     // 2
    FS_TRUNCATE = 1 << 14,  // 3
    FS_IOCTL_DEV = 1 << 15, // 5
    FS_OF_A_FILE = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
    FS_DEVICE_NODES = 1 << 6 | 1 << 11, // making them
    NET_TCP = 3,                        // bind, connect; 4
    SCOPE_ABSTRACT_UNIX = 1,            // 6
    SCOPE_SIGNAL = 2,                   // 6
    RULE_PATH_BENEATH = 1,
    ABI_TRUNCATE = 3,
    ABI_NETWORK = 4,
    ABI_SCOPE = 6,
};

struct ruleset_attr {
    uint64_t fs, net, scoped;
};

struct path_rule {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

// 0: this kernel has no Landlock, or it is switched off.
static int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1U);
    return version > 0 ? (int)version : 0;
}

static uint64_t handled_fs(int version)
{
    uint64_t rights = FS_VERSION_1;
    if (version >= 2) rights |= FS_REFER;
    if (version >= 3) rights |= FS_TRUNCATE;
    if (version >= 5) rights |= FS_IOCTL_DEV;
    return rights;
}

// Programs, their libraries and what these look up. Not all of /etc: it holds keys and our own configuration.
static const char *const read_paths[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup", // runtimes look there how much memory they have
    "/run/systemd/resolve",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
};
static const char *const device_paths[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

static enum code allow_open(int ruleset, int fd, const char *path, uint64_t rights, struct error *err)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0) return os_errno(err, "look at", path);
    struct path_rule rule = {S_ISDIR(stat.st_mode) ? rights : rights & FS_OF_A_FILE, fd};
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) == 0) return OK;
    return os_errno(err, "allow steps to use", path);
}

// A path that is not there needs no rule.
static enum code allow(int ruleset, const char *path, uint64_t rights, struct error *err)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? OK : os_errno(err, "open", path);
    enum code rc = allow_open(ruleset, fd, path, rights, err);
    close(fd);
    return rc;
}

static enum code allow_each(int ruleset, const struct str *paths, size_t count, uint64_t rights, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; !rc && i < count; i++)
        if (paths[i].len) rc = allow(ruleset, paths[i].ptr, rights, err);
    return rc;
}

static enum code allow_all(int ruleset, uint64_t all, const struct tool_confinement *confinement,
                           const int *dirs, size_t count, struct error *err)
{
    uint64_t reading = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR, writing = all & ~(uint64_t)FS_DEVICE_NODES;
    uint64_t device = all & (FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV);
    enum code rc = OK;
    for (size_t i = 0; !rc && i < ARRAY_COUNT(read_paths); i++) rc = allow(ruleset, read_paths[i], reading, err);
    for (size_t i = 0; !rc && i < ARRAY_COUNT(device_paths); i++) rc = allow(ruleset, device_paths[i], device, err);
    if (!rc) rc = allow_each(ruleset, confinement->read, confinement->read_count, reading, err);
    if (!rc) rc = allow_each(ruleset, confinement->write, confinement->write_count, writing, err);
    for (size_t i = 0; !rc && i < count; i++)
        if (dirs[i] >= 0) rc = allow_open(ruleset, dirs[i], "its own directory", writing, err);
    return rc;
}

static enum code make_ruleset(const struct tool_confinement *confinement, int version, const int *dirs, size_t count,
                              int *out, struct error *err)
{
    struct ruleset_attr attr = {.fs = handled_fs(version)};
    if (confinement->level == TOOL_LEVEL_FULL && !confinement->network && version >= ABI_NETWORK) attr.net = NET_TCP;
    if (version >= ABI_SCOPE) attr.scoped = SCOPE_SIGNAL | SCOPE_ABSTRACT_UNIX;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (fd < 0) return os_errno(err, "make rules of Landlock", NULL);
    enum code rc = allow_all(fd, attr.fs, confinement, dirs, count, err);
    if (rc)
        close(fd);
    else
        *out = fd;
    return rc;
}

// ---- system calls

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

#ifdef AUDIT_ARCH_HERE

#define X32_BIT 0x40000000U
#define NEW_NAMESPACES                                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define LOAD_HIGH(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field) + 4)
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define EQUAL(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (then), (otherwise))
#define DENY(name) EQUAL(SYS_##name, 0, 1), ANSWER(EPERM)

// Numbers of another architecture would slip through a filter of these.
#define PREFIX                                                                                                         \
    LOAD(arch), EQUAL(AUDIT_ARCH_HERE, 1, 0), ANSWER(ENOSYS), LOAD(nr),                                                \
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1), ANSWER(ENOSYS)

// What no step has any business with: other processes' memory, mounts, namespaces, keys, the kernel's own machinery, memory and queues
// that outlive it and that steps of other tenants find by number, and
// io_uring, which would do the rest without being asked. clone3 hides its flags in memory, so it does not exist (libc then
// uses clone).
#define REFUSALS                                                                                                       \
    DENY(ptrace), DENY(process_vm_readv), DENY(process_vm_writev), DENY(mount), DENY(umount2), DENY(pivot_root),       \
        DENY(chroot), DENY(open_tree), DENY(move_mount), DENY(fsopen), DENY(fsconfig), DENY(fsmount), DENY(fspick),    \
        DENY(mount_setattr), DENY(setns), DENY(unshare), DENY(bpf), DENY(perf_event_open), DENY(userfaultfd),          \
        DENY(io_uring_setup), DENY(io_uring_enter), DENY(io_uring_register), DENY(keyctl), DENY(add_key),              \
        DENY(request_key), DENY(kexec_load), DENY(kexec_file_load), DENY(init_module), DENY(finit_module),             \
        DENY(delete_module), DENY(reboot), DENY(swapon), DENY(swapoff), DENY(acct), DENY(settimeofday),                \
        DENY(clock_settime), DENY(clock_adjtime), DENY(quotactl), DENY(open_by_handle_at), DENY(pidfd_getfd),          \
        DENY(kcmp), DENY(fanotify_init), DENY(migrate_pages), DENY(move_pages), DENY(process_madvise),                 \
        DENY(shmget), DENY(shmat), DENY(shmctl), DENY(msgget), DENY(msgsnd), DENY(msgrcv), DENY(msgctl), DENY(semget), \
        DENY(semop), DENY(semtimedop), DENY(semctl), DENY(mq_open), DENY(mq_unlink),                                   \
        EQUAL(SYS_clone3, 0, 1), ANSWER(ENOSYS), EQUAL(SYS_clone, 0, 4), LOAD(args[0]),                                \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1), ANSWER(EPERM), ALLOW

// What changes the limits and the share of a process: only of the one that asks (0). `which` of the last two may name a user.
#define ONLY_ITSELF(name) EQUAL(SYS_##name, 0, 4), LOAD(args[0]), EQUAL(0, 1, 0), ANSWER(EPERM), ALLOW
#define NOT_THE_USER(name, user)                                                                                       \
    EQUAL(SYS_##name, 0, 6), LOAD(args[1]), EQUAL(0, 0, 2), LOAD(args[0]), EQUAL(user, 0, 1), ANSWER(EPERM), ALLOW
// The limit of real-time CPU time is the tag by which the engine finds what a step leaves behind (process.c): it stays as it is.
#define KEEPS_TAG                                                                                                      \
    EQUAL(SYS_prlimit64, 0, 11), LOAD(args[0]), EQUAL(0, 1, 0), ANSWER(EPERM), LOAD(args[1]),                          \
        EQUAL(RLIMIT_RTTIME, 0, 5), LOAD(args[2]), EQUAL(0, 0, 2), LOAD_HIGH(args[2]), EQUAL(0, 1, 0), ANSWER(EPERM),  \
        ALLOW, NOT_TO(setrlimit, RLIMIT_RTTIME)
#define OWN_LIMITS                                                                                                     \
    KEEPS_TAG, ONLY_ITSELF(sched_setaffinity), ONLY_ITSELF(sched_setscheduler),                           \
        ONLY_ITSELF(sched_setparam), ONLY_ITSELF(sched_setattr), NOT_THE_USER(setpriority, PRIO_USER),                 \
        NOT_THE_USER(ioprio_set, 3)

// The network and this machine. Other kinds reach the hypervisor, devices or parts of the kernel that few programs use.
#define FAMILIES                                                                                                       \
    EQUAL(SYS_socket, 0, 7), LOAD(args[0]), EQUAL(AF_UNIX, 4, 0), EQUAL(AF_INET, 3, 0), EQUAL(AF_INET6, 2, 0),         \
        EQUAL(AF_NETLINK, 1, 0), ANSWER(EAFNOSUPPORT), LOAD(nr)
// Sockets of this machine only, or none at all. The other kinds are refused as if the kernel had been built without them.
#define NO_NETWORK EQUAL(SYS_socket, 0, 4), LOAD(args[0]), EQUAL(AF_UNIX, 1, 0), ANSWER(EAFNOSUPPORT), LOAD(nr)
// A Unix socket knows its caller by user: the one of the engine would open its database and its machine's daemons.
#define NO_UNIX EQUAL(SYS_socket, 0, 4), LOAD(args[0]), EQUAL(AF_UNIX, 0, 1), ANSWER(EAFNOSUPPORT), LOAD(nr)

// Landlock does not know attributes and watches of files that a step cannot open. By a descriptor they are of files that it has opened.
#define DENY_AS(number, error) EQUAL(number, 0, 1), ANSWER(error)
enum { SYS_SETXATTRAT = 463, SYS_GETXATTRAT, SYS_LISTXATTRAT, SYS_REMOVEXATTRAT, SYS_FILE_GETATTR = 468, SYS_FILE_SETATTR };
#define NO_ATTRIBUTES                                                                                                  \
    DENY_AS(SYS_setxattr, EOPNOTSUPP), DENY_AS(SYS_lsetxattr, EOPNOTSUPP), DENY_AS(SYS_SETXATTRAT, EOPNOTSUPP),        \
        DENY_AS(SYS_removexattr, EOPNOTSUPP), DENY_AS(SYS_lremovexattr, EOPNOTSUPP),                                   \
        DENY_AS(SYS_REMOVEXATTRAT, EOPNOTSUPP), DENY_AS(SYS_getxattr, EOPNOTSUPP),                                     \
        DENY_AS(SYS_lgetxattr, EOPNOTSUPP), DENY_AS(SYS_GETXATTRAT, EOPNOTSUPP), DENY_AS(SYS_listxattr, EOPNOTSUPP),   \
        DENY_AS(SYS_llistxattr, EOPNOTSUPP), DENY_AS(SYS_LISTXATTRAT, EOPNOTSUPP),                                     \
        DENY_AS(SYS_FILE_GETATTR, EOPNOTSUPP), DENY_AS(SYS_FILE_SETATTR, EOPNOTSUPP)
#define NO_WATCHES DENY(inotify_add_watch), DENY(name_to_handle_at)

// Below version 3, Landlock does not know truncate; below 6, it does not know signals, and those of the same user are kept from the
// engine at least: by its number, its group, everybody's (-1), and by descriptors that send signals.
#define NO_TRUNCATE DENY(truncate)
#define NOT_TO(name, engine) EQUAL(SYS_##name, 0, 4), LOAD(args[0]), EQUAL(engine, 0, 1), ANSWER(EPERM), ALLOW
#define NOT_WITH(name, a, b, c)                                                                                        \
    EQUAL(SYS_##name, 0, 6), LOAD(args[1]), EQUAL(a, 2, 0), EQUAL(b, 1, 0), EQUAL(c, 0, 1), ANSWER(EPERM), ALLOW
#define NO_SIGNALS(engine, group)                                                                                      \
    EQUAL(SYS_kill, 0, 6), LOAD(args[0]), EQUAL(engine, 2, 0), EQUAL(-(group), 1, 0), EQUAL(-1, 0, 1), ANSWER(EPERM),  \
        ALLOW, DENY(tkill), NOT_TO(tgkill, engine), NOT_TO(rt_sigqueueinfo, engine),                                   \
        NOT_TO(rt_tgsigqueueinfo, engine), NOT_TO(pidfd_open, engine), DENY(pidfd_send_signal),                        \
        NOT_WITH(fcntl, F_SETOWN, F_SETOWN_EX, F_SETSIG), NOT_WITH(ioctl, FIOSETOWN, SIOCSPGRP, FIOSETOWN)

static void add(struct cage *cage, const struct sock_filter *code, size_t count)
{
    INVARIANT(cage->code_count + count <= FILTER_MAX);
    memcpy(cage->code + cage->code_count, code, count * sizeof(*code));
    cage->code_count += count;
}
#define ADD(cage, ...)                                                                                                 \
    add((cage), (const struct sock_filter[]){__VA_ARGS__},                                                             \
        sizeof((const struct sock_filter[]){__VA_ARGS__}) / sizeof(struct sock_filter))

static bool can_filter(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

static void make_filter(struct cage *cage, const struct tool_confinement *confinement, enum tool_level level,
                        int version)
{
    bool same_user = !confinement->run_as;
    bool sees_more = same_user || cage->may_search; // files that it cannot open are not closed to it otherwise
    ADD(cage, PREFIX, REFUSALS, OWN_LIMITS, FAMILIES);
    if (level >= TOOL_LEVEL_FILES && sees_more) ADD(cage, NO_ATTRIBUTES, NO_WATCHES);
    if (level >= TOOL_LEVEL_FILES && version < ABI_TRUNCATE) ADD(cage, NO_TRUNCATE);
    // Landlock keeps signals in from `files` on, where it knows them.
    if (same_user && (version < ABI_SCOPE || level < TOOL_LEVEL_FILES)) ADD(cage, NO_SIGNALS(getpid(), getpgrp()));
    if (level >= TOOL_LEVEL_FILES && sees_more && !confinement->unix_sockets && !confinement->network) ADD(cage, NO_UNIX);
    if (level == TOOL_LEVEL_FULL && !confinement->network) ADD(cage, NO_NETWORK);
    ADD(cage, ALLOW);
    cage->filter = (struct sock_fprog){(unsigned short)cage->code_count, cage->code};
}

#else

static bool can_filter(void)
{
    return false;
}

static void make_filter(struct cage *cage, const struct tool_confinement *confinement, enum tool_level level,
                        int version)
{
    (void)cage, (void)confinement, (void)level, (void)version;
}

#endif

// ---- together

static void add_limit(struct cage *cage, int resource, uint64_t value)
{
    struct rlimit now;
    if (getrlimit(resource, &now) < 0) return;
    rlim_t most = value < now.rlim_max ? (rlim_t)value : now.rlim_max;
    INVARIANT(cage->limit_count < LIMITS_MAX);
    cage->limits[cage->limit_count++] = (struct confine_limit){resource, {most, most}};
}

static void set_limits(struct cage *cage, const struct tool_confinement *confinement)
{
    const struct tool_limits *limits = &confinement->limits;
    if (limits->memory) add_limit(cage, RLIMIT_DATA, limits->memory);
    if (limits->address) add_limit(cage, RLIMIT_AS, limits->address);
    if (limits->cpu) add_limit(cage, RLIMIT_CPU, limits->cpu);
    if (limits->files) add_limit(cage, RLIMIT_NOFILE, limits->files);
    if (limits->file_size) add_limit(cage, RLIMIT_FSIZE, limits->file_size);
    if (limits->stack) add_limit(cage, RLIMIT_STACK, limits->stack);
    // The number is that of a user. Where it is also the engine's it would count the engine.
    if (limits->processes && confinement->run_as) add_limit(cage, RLIMIT_NPROC, limits->processes);
}

static enum tool_level level_of(const struct tool_confinement *confinement, int version)
{
    if (confinement->level != TOOL_LEVEL_AUTO) return confinement->level;
    return version > 0 ? TOOL_LEVEL_FILES : TOOL_LEVEL_BASIC;
}

enum tool_level tool_confinement_level(const struct tool_confinement *confinement)
{
    return level_of(confinement, landlock_version());
}

// A service of root gives the steps of each tenant a user of their own.
static bool is_separated(const struct tool_confinement *confinement)
{
    return confinement->separate && !confinement->run_as && geteuid() == 0;
}

enum code tool_confinement_whole(const struct tool_confinement *confinement, struct error *err)
{
    int version = landlock_version();
    if (confinement->level != TOOL_LEVEL_AUTO) return OK;
    if (version == 0)
        return error_set(err, E_UNSUPPORTED, "this kernel cannot confine steps to directories (no Landlock)");
    if (version < ABI_SCOPE && !confinement->run_as && !is_separated(confinement))
        return error_set(err, E_UNSUPPORTED,
                         "this kernel cannot keep steps from signalling the engine and each other (Landlock %d, 6 is "
                         "needed), and only root can give them a user of their own",
                         version);
    return OK;
}

enum code tool_confinement_check(const struct tool_confinement *confinement, struct error *err)
{
    int version = landlock_version();
    enum tool_level level = level_of(confinement, version);
    if (level == TOOL_LEVEL_NONE) return OK;
    if (confinement->run_as && geteuid() != 0)
        return error_set(err, E_UNSUPPORTED, "steps cannot run as uid %u: only root may do that", confinement->uid);
    if (!can_filter()) return error_set(err, E_UNSUPPORTED, "this system cannot filter system calls (seccomp)");
    if (level >= TOOL_LEVEL_FILES && version == 0)
        return error_set(err, E_UNSUPPORTED, "this kernel cannot confine steps to directories (no Landlock)");
    bool own_signals = version >= ABI_SCOPE || confinement->run_as || is_separated(confinement);
    if (level == TOOL_LEVEL_FULL && !own_signals)
        return error_set(err, E_UNSUPPORTED,
                         "this kernel cannot keep a step from signalling the engine (Landlock %d, 6 is needed): let "
                         "steps run as another user",
                         version);
    return OK;
}

// Directories of the system and of the engine may be closed to others. A search right does no harm within Landlock, and writes nothing.
static bool can_search(void)
{
    return prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH, 0, 0, 0) == 1;
}

static bool is_open_to_others(struct str path)
{
    char part[4096];
    struct stat about;
    for (size_t end = 1; end < path.len && end < sizeof(part); end++) {
        if (path.ptr[end] != '/') continue;
        memcpy(part, path.ptr, end);
        part[end] = '\0';
        if (stat(part, &about) != 0 || !(about.st_mode & S_IXOTH)) return false;
    }
    return true;
}

// The directories of the store between its artifacts and those of a run are the engine's own, and closed as all of its files are. Passing
// them gives nothing: what is in them is each tenant's user's alone.
static void open_own_way(struct str path)
{
    static const char ending[] = "-artifacts/";
    char part[4096];
    struct stat about;
    bool own = false;
    for (size_t end = 1; end < path.len && end + 1 < sizeof(part); end++) {
        if (path.ptr[end] != '/') continue;
        memcpy(part, path.ptr, end + 1);
        part[end + 1] = '\0';
        size_t tail = strlen(ending);
        own = own || (end + 1 > tail && memcmp(part + end + 1 - tail, ending, tail) == 0);
        part[end] = '\0';
        if (!own || lstat(part, &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != geteuid()) continue;
        if (!(about.st_mode & S_IXOTH)) (void)!chmod(part, (about.st_mode & 07777) | S_IXOTH);
    }
}

void confinement_separate(struct tool_confinement *confinement, struct str tenant, struct str artifacts_dir,
                          struct str program, bool *searches)
{
    enum { FIRST = 61184, COUNT = 4336 }; // what systemd gives to services without a user of their own
    struct digest hash = sha256(tenant);
    uint32_t number = (uint32_t)hash.b[0] << 16 | (uint32_t)hash.b[1] << 8 | hash.b[2];
    if (is_separated(confinement)) open_own_way(artifacts_dir);
    *searches = !is_open_to_others(artifacts_dir) || !is_open_to_others(program);
    bool walled = level_of(confinement, landlock_version()) >= TOOL_LEVEL_FILES;
    if (!is_separated(confinement) || (*searches && !(walled && can_search()))) return;
    confinement->run_as = true;
    confinement->uid = confinement->gid = FIRST + number % COUNT;
}

enum code cage_make(const struct tool_confinement *confinement, const int *dirs, size_t count, bool searches,
                    struct cage *out, struct error *err)
{
    *out = (struct cage){.ruleset = -1};
    int version = landlock_version();
    enum tool_level level = level_of(confinement, version);
    out->run_as = confinement->run_as;
    out->may_search = confinement->run_as && searches && level >= TOOL_LEVEL_FILES;
    make_filter(out, confinement, level, version);
    out->uid = confinement->uid;
    out->gid = confinement->gid;
    out->drop_capabilities = geteuid() == 0;
    set_limits(out, confinement);
    return level >= TOOL_LEVEL_FILES ? make_ruleset(confinement, version, dirs, count, &out->ruleset, err) : OK;
}

void cage_close(struct cage *cage)
{
    if (cage->ruleset >= 0) close(cage->ruleset);
    cage->ruleset = -1;
}
