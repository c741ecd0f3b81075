#include "os/os.h"

#include <errno.h>
#include <string.h>

static enum code code_of(int number)
{
    switch (number) {
    case ENOENT:
        return E_NOT_FOUND;
    case EEXIST:
    case ENOTEMPTY:
        return E_EXISTS;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return E_FULL;
    case ENOMEM:
        return E_NOMEM;
    case EMFILE:
    case ENFILE:
        return E_LIMIT;
    case ENAMETOOLONG:
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENXIO:
        return E_INVALID;
    case EACCES:
    case EPERM:
    case EROFS:
        return E_DENIED;
    default:
        return E_IO;
    }
}

enum code os_errno(struct error *err, const char *what, const char *path)
{
    int number = errno;
    char text[96];
    const char *reason = strerror_r(number, text, sizeof(text));
    if (path) return error_set(err, code_of(number), "cannot %s %s: %s", what, path, reason);
    return error_set(err, code_of(number), "cannot %s: %s", what, reason);
}
