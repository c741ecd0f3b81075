// A bundle is proved from the outside in: the container has its one form, every member has the hash that SHA256SUMS names, SHA256SUMS is
// what the key signed, and the chain of each run holds. The chains name events; the hashes find what is beside them.
#include "archive/archive.h"

#include "store/bundle.h"

#include <stdarg.h>
#include <stdio.h>

static enum code fault(struct proof *proof, struct arena *arena, struct error *err, const char *format, ...)
    PRINTF_LIKE(4, 5);

static enum code fault(struct proof *proof, struct arena *arena, struct error *err, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    struct str kept = arena_copy(arena, str_from(text));
    if (!kept.ptr || !ARENA_ROOM(arena, proof->faults, proof->fault_count, &proof->fault_capacity))
        return error_nomem(err);
    proof->faults[proof->fault_count++] = kept;
    return OK;
}

static bool is_seal(struct str path)
{
    return str_is(path, BUNDLE_SUMS) || str_is(path, BUNDLE_SIGNATURE) || str_is(path, BUNDLE_KEY);
}

// Every member but the seal itself has its line, in order, and there is no other line.
static enum code check_sums(const struct bundle *bundle, struct proof *proof, struct arena *arena, struct error *err)
{
    struct str rest = bundle->members[0].bytes;
    enum code rc = OK;
    for (size_t i = 0; i < bundle->count && !rc; i++) {
        const struct bundle_member *member = &bundle->members[i];
        if (is_seal(member->path)) continue;
        struct str line = str_cut(rest, '\n', &rest);
        struct digest told, hash = sha256(member->bytes);
        bool reads = line.len > SHA256_HEX + 2 && digest_parse(str_slice(line, 0, SHA256_HEX), &told) &&
                     str_starts(str_slice(line, SHA256_HEX, line.len), STR("  "));
        if (!reads || !str_eq(str_slice(line, SHA256_HEX + 2, line.len), member->path))
            return fault(proof, arena, err, "%s does not tell of %.*s", BUNDLE_SUMS, STR_ARG(member->path));
        if (!digest_eq(&told, &hash))
            rc = fault(proof, arena, err, "%.*s: its bytes do not have the hash that %s names", STR_ARG(member->path),
                       BUNDLE_SUMS);
    }
    if (!rc && rest.len) rc = fault(proof, arena, err, "%s tells of more than there is", BUNDLE_SUMS);
    return rc;
}

static enum code check_signature(const struct bundle *bundle, const struct archive_key *key, struct proof *proof,
                                 struct arena *arena, struct error *err)
{
    const struct bundle_member *signature = bundle_find(bundle, STR(BUNDLE_SIGNATURE));
    const struct bundle_member *told = bundle_find(bundle, STR(BUNDLE_KEY));
    struct archive_key *signer = NULL;
    if (!signature && !told) {
        if (!key) return OK;
        return fault(proof, arena, err, "it is not signed, but a signature was asked for");
    }
    proof->is_signed = true;
    if (!signature || !told || key_parse(told->bytes, &signer, NULL) || key_is_private(signer)) {
        key_free(signer);
        return fault(proof, arena, err, "its signature is not whole");
    }
    struct str pem = {0};
    enum code rc = key_id(signer, proof->key_id, err);
    if (!rc) rc = key_pem(signer, false, arena, &pem, err);
    // PEM may be written in many ways; a bundle has one.
    if (!rc && !str_eq(pem, told->bytes)) rc = fault(proof, arena, err, "%s is not in its one form", BUNDLE_KEY);
    if (!rc && !key_verifies(signer, bundle->members[0].bytes, signature->bytes))
        rc = fault(proof, arena, err, "its signature is not one of the key that it names");
    proof->trusted = key && key_verifies(key, bundle->members[0].bytes, signature->bytes);
    if (!rc && key && !proof->trusted) rc = fault(proof, arena, err, "it was not signed by the key that was given");
    key_free(signer);
    return rc;
}

static enum code check_runs(const char *path, struct proof *proof, struct arena *arena, struct error *err)
{
    char url[4200];
    struct store *store = NULL;
    struct error why = {0};
    struct store_options options = {.mode = STORE_READ, .entropy = os_entropy()};
    if (snprintf(url, sizeof(url), "bundle:%s", path) >= (int)sizeof(url))
        return error_set(err, E_LIMIT, "the path is too long");
    enum code rc = store_open(str_from(url), &options, &store, &why);
    if (rc == E_CORRUPT) return fault(proof, arena, err, "%s", why.message);
    if (rc) return error_set(err, rc, "%s", why.message);
    rc = store_verify(store, STR(""), STR(""), arena, &proof->runs, err);
    store_close(store);
    return rc;
}

enum code archive_prove(const char *path, const struct archive_key *key, struct arena *arena, struct proof *out,
                        struct error *err)
{
    *out = (struct proof){0};
    struct bundle bundle;
    enum code rc = bundle_open(path, &bundle, err);
    if (rc) return rc;
    const struct bundle_member *manifest = bundle_find(&bundle, STR(BUNDLE_MANIFEST));
    struct json value;
    if (manifest && json_parse(manifest->bytes, &json_limits_default, arena, &value, NULL) == OK) {
        const struct json *redacted = json_key(&value, "redacted");
        out->redacted = json_true(redacted);
    }
    rc = check_runs(path, out, arena, err);
    if (!rc) rc = check_sums(&bundle, out, arena, err);
    if (!rc) rc = check_signature(&bundle, key, out, arena, err);
    bundle_close(&bundle);
    return rc;
}
