// Where artifacts are, without saying where that is: see FILES_OF_RUN.
#include "contract/contract.h"

static bool below(struct str path, struct str dir, struct str *out)
{
    bool inside = dir.len > 0 && path.len > dir.len + 1 && str_starts(path, dir) && path.ptr[dir.len] == '/';
    if (inside) *out = str_slice(path, dir.len + 1, path.len);
    return inside;
}

uint64_t output_kept(const struct json *value, bool has_blob, uint64_t blob_size)
{
    return has_blob ? blob_size : json_text(value).len;
}

bool artifact_name(struct str uri, struct str dir, struct str *out)
{
    const struct str file = STR("file://"), files = STR(FILES_URI);
    if (!str_starts(uri, files)) return below(str_slice(uri, str_starts(uri, file) ? file.len : 0, uri.len), dir, out);
    // A run that took over what another one left has it in its own place.
    str_cut(str_slice(uri, files.len, uri.len), '/', out);
    return out->len > 0 && dir.len > 0;
}
