// Errors as the outside sees them: a code, a story, a hint.
#include "lib/inside.h"

#include <string.h>

static const char *hint_of(enum code code)
{
    switch (code) {
    case E_LOCKED:
        return "another process has it; wait until that one ends, or use a sqlite: store, which many processes share";
    case E_UNSUPPORTED:
        return "register the function (cairn_register, cairn_load_plugin) before; the run stays as it is meanwhile";
    case E_IO:
        return "close this engine and open another: it reads what was really stored";
    case E_FULL:
        return "make room on the disk; nothing was stored";
    case E_EXISTS:
        return "CAIRN_ATTACH goes on with the run that is there";
    case E_VERSION:
        return "use the newer version of Cairn";
    case E_CORRUPT:
        return "`cairn log verify` names what was changed";
    case OK:
    case E_NOMEM:
    case E_UNREACHABLE:
    case E_AWAY:
    case E_LIMIT:
    case E_INVALID:
    case E_NOT_FOUND:
    case E_CONFLICT:
    case E_TIMEOUT:
    case E_CANCELLED:
    case E_DENIED:
    case E_SCHEMA:
    case E_TERMINAL:
        break;
    }
    return "";
}

static void copy_text(char *out, size_t size, const char *text)
{
    size_t len = str_head(str_from(text), size - 1).len;
    memcpy(out, text, len);
    out[len] = '\0';
}

enum cairn_code tell(struct cairn_error *out, enum code rc, const struct error *err, const char *hint)
{
    if (!out) return (enum cairn_code)rc;
    memset(out, 0, sizeof(*out));
    if (rc == OK) return CAIRN_OK;
    out->code = (int32_t)rc;
    out->line = err ? err->line : 0;
    out->column = err ? err->column : 0;
    copy_text(out->message, sizeof(out->message), err && err->message[0] ? err->message : code_text(rc));
    copy_text(out->hint, sizeof(out->hint), hint ? hint : hint_of(rc));
    return (enum cairn_code)rc;
}

enum cairn_code refuse(struct cairn_error *out, enum code rc, const char *message)
{
    struct error err = {0};
    error_set(&err, rc, "%s", message);
    return tell(out, rc, &err, NULL);
}
