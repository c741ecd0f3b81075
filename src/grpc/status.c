#include "grpc/inside.h"

#include <string.h>

static const char *const names[] = {"OK",        "CANCELLED",        "UNKNOWN",           "INVALID_ARGUMENT", "DEADLINE_EXCEEDED",
                                    "NOT_FOUND", "ALREADY_EXISTS",   "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                    "ABORTED",   "OUT_OF_RANGE",     "UNIMPLEMENTED",     "INTERNAL",         "UNAVAILABLE",
                                    "DATA_LOSS", "UNAUTHENTICATED"};

const char *grpc_status_name(int status)
{
    return status >= 0 && (size_t)status < ARRAY_COUNT(names) ? names[status] : "UNKNOWN";
}

enum code grpc_status_code(int status)
{
    switch (status) {
    case GRPC_OK:
        return OK;
    case GRPC_CANCELLED:
        return E_CANCELLED;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_OUT_OF_RANGE:
        return E_INVALID;
    case GRPC_DEADLINE_EXCEEDED:
        return E_TIMEOUT;
    case GRPC_NOT_FOUND:
        return E_NOT_FOUND;
    case GRPC_ALREADY_EXISTS:
        return E_EXISTS;
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNAUTHENTICATED:
        return E_DENIED;
    case GRPC_RESOURCE_EXHAUSTED:
        return E_LIMIT;
    case GRPC_FAILED_PRECONDITION:
    case GRPC_ABORTED:
        return E_CONFLICT;
    case GRPC_UNIMPLEMENTED:
        return E_UNSUPPORTED;
    case GRPC_UNAVAILABLE:
        return E_UNREACHABLE;
    default:
        return E_IO;
    }
}

int status_of_http(int http)
{
    switch (http) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

static bool str_has(struct str text, struct str word)
{
    return text.len >= word.len && memmem(text.ptr, text.len, word.ptr, word.len) != NULL;
}

bool status_again(const struct rpc *call, struct str message)
{
    if (call->too_large) return false; // it would be as large again
    switch (call->status) {
    case GRPC_UNAVAILABLE:
    case GRPC_ABORTED:
    case GRPC_UNKNOWN:
    case GRPC_DATA_LOSS:
    case GRPC_INTERNAL:
        return call->retry != GRPC_ONCE;
    case GRPC_RESOURCE_EXHAUSTED: // what is too large stays so; a server that is asked too much has time later
        return call->retry != GRPC_ONCE && !str_has(message, STR("larger than max"));
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
        return call->retry == GRPC_POLL;
    default:
        return false;
    }
}

void percent_decode(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len && text.ptr[i] == '%' ? char_hex(text.ptr[i + 1]) : -1;
        int low = high >= 0 ? char_hex(text.ptr[i + 2]) : -1;
        char byte = text.ptr[i];
        if (low >= 0) {
            byte = (char)(high << 4 | low);
            i += 2;
        }
        buf_byte(out, byte);
    }
}
