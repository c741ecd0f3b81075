#include "tool/provider.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct tool_secrets tool_secrets_none;

bool secret_refuse(struct error *why, const struct secret_ref *ref, const char *reason)
{
    error_set(why, E_NOT_FOUND, "secret %.*s: %.*s %s", STR_ARG(ref->name), STR_ARG(ref->ref), reason);
    return false;
}

// Straight into memory that can be wiped: no buffers of stdio, no growing copies.
static bool read_secret_file(int fd, char *bytes, size_t *size)
{
    struct stat stat;
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) return false;
    // One byte more than a secret may have: half a key is worse than none.
    return os_read_up_to(fd, bytes, SECRET_SIZE_MAX + 1, size);
}

static bool is_private(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && !(stat.st_mode & (S_IRWXG | S_IRWXO)) &&
           (stat.st_uid == geteuid() || stat.st_uid == 0);
}

bool secret_from_file(const struct secret_ref *ref, const char *path, bool private, struct arena *arena,
                      struct str *value, struct error *why)
{
    char *bytes = arena_alloc(arena, SECRET_SIZE_MAX + 2);
    if (!bytes) return secret_refuse(why, ref, "cannot be read: out of memory");
    // Not blocking: a FIFO must not stop every other step.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (private ? O_NOFOLLOW : 0));
    if (fd < 0) return secret_refuse(why, ref, errno == ENOENT ? "does not exist" : "cannot be opened");
    size_t size = 0;
    bool shared = private && !is_private(fd);
    bool done = !shared && read_secret_file(fd, bytes, &size);
    close(fd);
    *value = (struct str){bytes, size};
    if (shared) return secret_refuse(why, ref, "can be read by others: its file must have mode 0600 or 0400");
    if (!done) {
        secret_wipe(*value);
        return secret_refuse(why, ref, "is not a readable file");
    }
    if (size > SECRET_SIZE_MAX) {
        secret_wipe(*value);
        return secret_refuse(why, ref, "is larger than 64 KiB");
    }
    if (str_ends(*value, STR("\n"))) value->len -= str_ends(*value, STR("\r\n")) ? 2 : 1;
    return true;
}

static bool from_file(const struct secret_ref *ref, struct str path, struct arena *arena, struct str *value,
                      struct error *why)
{
    struct str name = arena_copy(arena, path);
    if (!name.ptr) return secret_refuse(why, ref, "cannot be read: out of memory");
    return secret_from_file(ref, name.ptr, false, arena, value, why);
}

static bool from_environment(const struct secret_ref *ref, struct str name, struct arena *arena, struct str *value,
                             struct error *why)
{
    struct str copy = arena_copy(arena, name);
    if (!copy.ptr) return secret_refuse(why, ref, "cannot be read: out of memory");
    const char *found = getenv(copy.ptr);
    if (!found) return secret_refuse(why, ref, "is not set");
    *value = arena_copy(arena, str_from(found));
    return value->ptr || secret_refuse(why, ref, "cannot be read: out of memory");
}

bool secret_read(const struct secret_scope *scope, const struct secret_ref *ref, struct arena *arena, struct str *value,
                 struct error *why)
{
    static const struct str env = {"env:", 4}, file = {"file:", 5}, secret = {"secret://", 9};
    *value = (struct str){"", 0};
    bool found = false;
    if (ref->ref.len && memchr(ref->ref.ptr, '\0', ref->ref.len)) return secret_refuse(why, ref, "holds a NUL byte");
    if (str_starts(ref->ref, secret))
        found = provider_read(scope, ref, arena, value, why);
    else if (scope->providers && !scope->providers->local && !scope->own)
        return secret_refuse(why, ref, "is not allowed here: only secret://PROVIDER/NAME is");
    else if (str_starts(ref->ref, env))
        found = from_environment(ref, str_slice(ref->ref, env.len, ref->ref.len), arena, value, why);
    else if (str_starts(ref->ref, file))
        found = from_file(ref, str_slice(ref->ref, file.len, ref->ref.len), arena, value, why);
    else
        return secret_refuse(why, ref, "is not env:NAME, file:/path or secret://PROVIDER/NAME");
    if (found && value->len && memchr(value->ptr, '\0', value->len)) {
        secret_wipe(*value);
        return secret_refuse(why, ref, "has a NUL byte in its value");
    }
    return found;
}

void secret_wipe(struct str value)
{
    // The caller owns the bytes; str is const only so that nobody writes by accident.
    union {
        const char *shown;
        char *owned;
    } bytes = {value.ptr};
    if (value.len) explicit_bzero(bytes.owned, value.len);
}
