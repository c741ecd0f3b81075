// What a function said, on its way to the engine.
#include "lib/functions_inside.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 4096 };

enum code result_check(const struct cairn_result *result, struct error *err)
{
    struct str code = str_from(result->code);
    if (result->answer != CAIRN_DONE && result->answer != CAIRN_FAIL)
        return error_set(err, E_INVALID, "a result is CAIRN_DONE or CAIRN_FAIL, not %d", (int)result->answer);
    bool word = code.len <= 64;
    for (size_t i = 0; i < code.len; i++)
        word = word && (char_is_alnum(code.ptr[i]) || strchr("_.-", code.ptr[i]));
    if (!word) return error_set(err, E_INVALID, "the code of a fault has up to 64 letters, digits, '_', '.' and '-'");
    if (!str_utf8(str_from(result->message))) return error_set(err, E_INVALID, "the message of a fault is not UTF-8");
    return OK;
}

bool result_fill(struct tool_result *out, const struct cairn_result *result)
{
    // A text with a length need not end in NUL.
    bool measured = result->output && result->output_len > 0;
    struct str output = measured ? (struct str){result->output, result->output_len} : str_from(result->output);
    struct str code = str_from(result->code ? result->code : "FUNCTION_FAILED"), message = str_from(result->message);
    while (message.len > MESSAGE_MAX || (message.len > 0 && !str_utf8(message)))
        message.len = message.len > MESSAGE_MAX ? MESSAGE_MAX : message.len - 1; // never half a character
    struct str *texts[] = {&output, &code, &message};
    size_t size = 1;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) size += texts[i]->len + 1;
    char *at = malloc(size);
    if (!at) return false;
    out->memory = at;
    out->release = free;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (texts[i]->len > 0) memcpy(at, texts[i]->ptr, texts[i]->len);
        at[texts[i]->len] = '\0';
        texts[i]->ptr = at;
        at += texts[i]->len + 1;
    }
    out->is_json = true;
    out->ok = result->answer == CAIRN_DONE;
    if (out->ok)
        out->output = output;
    else
        out->fault =
            (struct fault){.code = code, .message = message, .category = {"", 0}, .retryable = result->retryable != 0};
    return true;
}

void result_release(const struct cairn_result *result)
{
    if (result->release) result->release(result->memory);
}
