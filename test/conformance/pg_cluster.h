// A real Postgres for tests: a cluster of its own in a temporary directory, reached through a Unix socket there. One for a whole test
// program; each test has a schema of its own in it. It ends with the program, however that ends.
#ifndef CAIRN_TEST_CONFORMANCE_PG_CLUSTER_H
#define CAIRN_TEST_CONFORMANCE_PG_CLUSTER_H

#include "harness/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include "os/pq.h"

#include <postgresql/libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct pg_cluster {
    char programs[256], dir[128], data[160];
    uid_t uid;
    gid_t gid;
    pid_t pid; // of the postmaster; 0 = there is none
    pid_t owner;
};
static struct pg_cluster pg_cluster;

// The newest of /usr/lib/postgresql/N/bin.
static inline bool pg_find_programs(char *out, size_t size)
{
    int newest = 0;
    DIR *dir = opendir("/usr/lib/postgresql");
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        int number = atoi(entry->d_name);
        if (number > newest) newest = number;
    }
    if (dir) closedir(dir);
    snprintf(out, size, "/usr/lib/postgresql/%d/bin", newest);
    return newest > 0;
}

// Postgres refuses to run as root.
static inline void pg_become_user(void)
{
    if (geteuid() != 0) return;
    if (setgroups(0, NULL) || setgid(pg_cluster.gid) || setuid(pg_cluster.uid)) _exit(126);
}

static inline pid_t pg_spawn(const char *program, const char *const *argv)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", pg_cluster.programs, program);
    pid_t pid = fork();
    if (pid) return pid;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char log[200];
    snprintf(log, sizeof(log), "%s/log", pg_cluster.dir);
    pg_become_user();
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    if (chdir(pg_cluster.dir)) _exit(125);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGQUIT); // immediate shutdown
    char *words[24];
    int count = 0;
    for (; argv[count] && count < 23; count++) words[count] = strdup(argv[count]);
    words[count] = NULL;
    execv(path, words);
    _exit(127);
}

static inline bool pg_wait(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static inline void pg_cluster_stop(void)
{
    if (pg_cluster.owner != getpid()) return; // a child of a test
    if (pg_cluster.pid > 0 && kill(pg_cluster.pid, SIGQUIT) == 0) waitpid(pg_cluster.pid, NULL, 0);
    pg_cluster.pid = 0;
    char command[200];
    snprintf(command, sizeof(command), "rm -rf '%s'", pg_cluster.dir);
    if (system(command) != 0) fprintf(stderr, "# %s stays\n", pg_cluster.dir);
}

// "postgres:///DATABASE?host=DIR" with `more` ("&schema=x") behind it. Good until the next call.
static inline const char *pg_url(const char *database, const char *more)
{
    static char url[600];
    snprintf(url, sizeof(url), "postgres:///%s?host=%s&user=postgres%s", database, pg_cluster.dir, more);
    return url;
}

static inline bool pg_cluster_up(void)
{
    struct error err = {0};
    CHECK_OK(pq_load(&err), &err);
    for (int i = 0; i < 600; i++) {
        PGconn *link = PQconnectdb(pg_url("postgres", ""));
        bool good = PQstatus(link) == CONNECTION_OK;
        PQfinish(link);
        if (good) return true;
        usleep(50000);
    }
    return false;
}

static inline bool pg_cluster_run(bool sync)
{
    const char *const argv[] = {"postgres",
                                "-D",
                                pg_cluster.data,
                                "-k",
                                pg_cluster.dir,
                                "-c",
                                "listen_addresses=",
                                "-c",
                                "max_connections=60",
                                "-c",
                                "autovacuum_naptime=5s",
                                "-c",
                                sync ? "port=5432" : "fsync=off",
                                NULL};
    pg_cluster.pid = pg_spawn("postgres", argv);
    return pg_cluster.pid > 0 && pg_cluster_up();
}

// Without `sync` it forgets what the machine forgets, which no test of processes notices, and is faster.
// False: Postgres is not installed here, or does not start.
static inline bool pg_cluster_start(bool sync)
{
    if (!pg_find_programs(pg_cluster.programs, sizeof(pg_cluster.programs))) return false;
    const struct passwd *user = geteuid() == 0 ? getpwnam("postgres") : NULL;
    if (geteuid() == 0 && !user) user = getpwnam("nobody");
    pg_cluster.uid = user ? user->pw_uid : geteuid();
    pg_cluster.gid = user ? user->pw_gid : getegid();
    pg_cluster.owner = getpid();
    snprintf(pg_cluster.dir, sizeof(pg_cluster.dir), "/tmp/cairn-pg-XXXXXX");
    if (!mkdtemp(pg_cluster.dir) || chown(pg_cluster.dir, pg_cluster.uid, pg_cluster.gid)) return false;
    chmod(pg_cluster.dir, 0755);
    snprintf(pg_cluster.data, sizeof(pg_cluster.data), "%s/data", pg_cluster.dir);
    atexit(pg_cluster_stop);
    const char *const argv[] = {"initdb", "-D", pg_cluster.data, "-U",         "postgres",  "-A",
                                "trust",  "-E", "UTF8",          "--locale=C", "--no-sync", NULL};
    return pg_wait(pg_spawn("initdb", argv)) && pg_cluster_run(sync);
}

static inline PGconn *pg_raw(const char *url)
{
    PGconn *link = PQconnectdb(url);
    if (PQstatus(link) != CONNECTION_OK) test_fail(__FILE__, __LINE__, "%s: %s", url, PQerrorMessage(link));
    return link;
}

static inline void pg_do(PGconn *link, const char *sql)
{
    PGresult *result = PQexec(link, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQresultErrorMessage(result));
    PQclear(result);
}

// The first value of the answer as a number.
static inline long long pg_number(PGconn *link, const char *sql)
{
    PGresult *result = PQexec(link, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQresultErrorMessage(result));
    long long number = atoll(PQgetvalue(result, 0, 0));
    PQclear(result);
    return number;
}

static inline void pg_refused(PGconn *link, const char *sql, const char *why)
{
    PGresult *result = PQexec(link, sql);
    const char *text = PQresultErrorMessage(result);
    if (PQresultStatus(result) != PGRES_FATAL_ERROR || !strstr(text, why))
        test_fail(__FILE__, __LINE__, "%s: %s (expected %s)", sql, text[0] ? text : "was done", why);
    PQclear(result);
}

#endif
