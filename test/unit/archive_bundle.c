// Bundles: what goes in comes out, and whatever is done to one is found and named.
#include "archive/archive.h"
#include "conformance/store_kit.h"
#include "store/bundle.h"

#include <stdlib.h>
#include <unistd.h>

enum { EVENTS = 4 };

struct rig {
    struct kit kit; // a store in memory with run "r" (EVENTS events, three ledger entries) and its child "r.a.1"
    struct buf bytes;
    struct archive_key *key;
};

static enum code collect(void *context, struct str bytes, struct error *err)
{
    struct buf *out = context;
    buf_add(out, bytes);
    return buf_ok(out) ? OK : error_set(err, E_NOMEM, "out of memory");
}

static void make_run(struct kit *kit, const char *run, const char *child, struct str document)
{
    struct run_create create = kit_run("default", run, VOCABULARY_NODES);
    struct run_log *log = NULL;
    create.document = sha256(document);
    CHECK_OK(store_create_run(kit->store, &create, &log, &kit->err), &kit->err);
    struct moment first = kit_moment(MOMENT_RUN_STARTED, "", 1);
    struct start_facts facts = *first.start;
    char hex[SHA256_HEX + 1];
    digest_hex(&create.document, hex);
    facts.document_sha256 = str_from(hex);
    first.start = &facts;
    struct append_item item = {.log = log, .moment = &first};
    struct append_blob blob = {.sha256 = create.document, .bytes = document};
    struct store_batch batch = {.items = &item, .item_count = 1, .blobs = &blob, .blob_count = 1};
    CHECK_OK(store_append(kit->store, &batch, KIT_NOW, &kit->arena, &kit->err), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_RUN_PAUSED, "", 1));
    CHECK_OK(kit_decide(kit, log, "sig-1", "ACCEPTED", NULL), &kit->err);
    kit_append(kit, log, kit_moment(MOMENT_RUN_RESUMED, "", 1));
    struct moment started = kit_moment(MOMENT_STEP_STARTED, "a", 1);
    started.run_ref = str_from(child);
    kit_append(kit, log, started);
    struct moment done = kit_moment(MOMENT_STEP_COMPLETED, "a", 1);
    done.value = json_string(STR("a secret result"));
    kit_append(kit, log, done);
    kit_append(kit, log, kit_moment(MOMENT_RUN_COMPLETED, "", 1));
    store_release_run(kit->store, log);
}

static void rig_init(struct rig *rig)
{
    kit_init(&rig->kit);
    struct store_options options = kit_options(&rig->kit, STORE_WRITE);
    CHECK_OK(store_open(STR("memory:"), &options, &rig->kit.store, &rig->kit.err), &rig->kit.err);
    make_run(&rig->kit, "r.a.1", "", STR("name: child\n"));
    make_run(&rig->kit, "r", "r.a.1", STR("name: parent\n"));
    buf_init(&rig->bytes, (size_t)1 << 30);
    CHECK_OK(key_new(&rig->key, &rig->kit.err), &rig->kit.err);
}

static void rig_release(struct rig *rig)
{
    key_free(rig->key);
    buf_release(&rig->bytes);
    kit_release(&rig->kit);
}

static struct export_report make_bundle(struct rig *rig, bool children, bool is_signed, bool redact)
{
    struct run_name name = {STR("default"), STR("r")};
    struct export_report report;
    struct export_options options = {.runs = &name,
                                     .run_count = 1,
                                     .children = children,
                                     .sign = is_signed ? rig->key : NULL,
                                     .contract = redact ? rig->kit.contract : NULL,
                                     .write = collect,
                                     .context = &rig->bytes};
    buf_clear(&rig->bytes);
    CHECK_OK(archive_export(rig->kit.store, &options, &rig->kit.arena, &report, &rig->kit.err), &rig->kit.err);
    CHECK_INT(report.byte_count, rig->bytes.len);
    return report;
}

static const char *save(const struct rig *rig)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/b.cairn", test_dir());
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(rig->bytes.ptr, 1, rig->bytes.len, file) == rig->bytes.len && fclose(file) == 0);
    return path;
}

static enum code prove(struct rig *rig, const struct archive_key *key, struct proof *out)
{
    rig->kit.err = (struct error){0};
    return archive_prove(save(rig), key, &rig->kit.arena, out, &rig->kit.err);
}

static bool is_found(enum code rc, const struct proof *proof)
{
    return rc == E_CORRUPT || rc == E_INVALID || (rc == OK && proof->fault_count + proof->runs.fault_count > 0);
}

static void a_bundle_holds_runs_children_documents_and_proves_itself(void)
{
    struct rig rig;
    struct proof proof;
    rig_init(&rig);
    struct export_report report = make_bundle(&rig, true, true, false);
    CHECK_INT(report.run_count, 2);
    CHECK_INT(report.event_count, 2 * EVENTS);
    CHECK_INT(report.blob_count, 2);
    CHECK_OK(prove(&rig, rig.key, &proof), &rig.kit.err);
    CHECK_INT(proof.fault_count + proof.runs.fault_count, 0);
    CHECK_INT(proof.runs.event_count, 2 * EVENTS);
    CHECK(proof.is_signed && proof.trusted);
    CHECK_INT(make_bundle(&rig, false, false, false).run_count, 1);
    CHECK_OK(prove(&rig, NULL, &proof), &rig.kit.err);
    CHECK(!proof.is_signed && !proof.trusted);
    CHECK_INT(proof.fault_count, 0);
    rig_release(&rig);
}

static void the_same_runs_give_the_same_bytes(void)
{
    struct rig rig;
    rig_init(&rig);
    make_bundle(&rig, true, true, false);
    struct str first = arena_copy(&rig.kit.arena, buf_str(&rig.bytes));
    make_bundle(&rig, true, true, false);
    CHECK(str_eq(first, buf_str(&rig.bytes)));
    rig_release(&rig);
}

static void a_bundle_is_a_store_that_can_be_read(void)
{
    struct rig rig;
    rig_init(&rig);
    make_bundle(&rig, true, false, false);
    char url[600];
    snprintf(url, sizeof(url), "bundle:%s", save(&rig));
    struct kit read;
    kit_init(&read);
    struct store_options options = kit_options(&read, STORE_READ);
    CHECK_OK(store_open(str_from(url), &options, &read.store, &read.err), &read.err);
    struct records ours = kit_read(&rig.kit, "r"), theirs = kit_read(&read, "r");
    CHECK_INT(theirs.count, ours.count);
    for (size_t i = 0; i < ours.count; i++) {
        CHECK_STR(theirs.items[i].bytes, ours.items[i].bytes);
        CHECK_STR(theirs.items[i].type, ours.items[i].type);
    }
    struct run_head a = kit_head(&rig.kit, "r"), b = kit_head(&read, "r");
    CHECK(digest_eq(&a.head, &b.head) && digest_eq(&a.ledger_head, &b.ledger_head));
    struct str blob;
    CHECK_OK(store_blob(read.store, &b.document, &read.arena, &blob, &read.err), &read.err);
    CHECK_STR(blob, STR("name: parent\n"));
    kit_check_sound(&read);
    struct run_heads heads;
    struct run_filter filter = {.tenant = STR("default")};
    CHECK_OK(store_list(read.store, &filter, &read.arena, &heads, &read.err), &read.err);
    CHECK_INT(heads.count, 2);
    struct store *writer = NULL;
    options.mode = STORE_WRITE;
    CHECK_INT(store_open(str_from(url), &options, &writer, NULL), E_DENIED);
    CHECK_INT(store_post(read.store, STR("default"), STR("r"), STR("s"), STR("{}"), NULL), E_DENIED);
    kit_release(&read);
    rig_release(&rig);
}

static void every_changed_byte_of_a_bundle_is_found(void)
{
    struct rig rig;
    struct proof proof;
    rig_init(&rig);
    make_bundle(&rig, false, true, false);
    for (size_t at = 0; at < rig.bytes.len; at++) {
        rig.bytes.ptr[at] ^= (char)(1 << at % 8);
        enum code rc = prove(&rig, NULL, &proof);
        if (!is_found(rc, &proof))
            test_fail(__FILE__, __LINE__, "byte %zu was changed and not found (code %d)", at, rc);
        rig.bytes.ptr[at] ^= (char)(1 << at % 8);
    }
    CHECK_OK(prove(&rig, NULL, &proof), &rig.kit.err);
    CHECK_INT(proof.fault_count + proof.runs.fault_count, 0);
    rig_release(&rig);
}

static void every_shorter_and_longer_bundle_is_found(void)
{
    struct rig rig;
    struct proof proof;
    rig_init(&rig);
    make_bundle(&rig, false, false, false);
    size_t whole = rig.bytes.len;
    for (size_t len = 0; len < whole; len += 7) {
        rig.bytes.len = len;
        enum code rc = prove(&rig, NULL, &proof);
        if (!is_found(rc, &proof)) test_fail(__FILE__, __LINE__, "cut to %zu bytes and not found", len);
    }
    rig.bytes.len = whole;
    buf_byte(&rig.bytes, 'x');
    CHECK(is_found(prove(&rig, NULL, &proof), &proof));
    rig_release(&rig);
}

// ---- records of a bundle that was put together again after it was changed, with sizes and sums that fit

enum damage { DAMAGE_FLIP = 1, DAMAGE_DROP, DAMAGE_SWAP, DAMAGE_CUT };

static struct str line_at(struct str text, size_t index)
{
    struct str rest = text, line = {0};
    for (size_t i = 0; i <= index; i++) line = str_cut(rest, '\n', &rest);
    return (struct str){line.ptr, line.len + 1};
}

static void damage_lines(struct str text, enum damage damage, size_t index, size_t byte, struct buf *out)
{
    for (size_t i = 0; i < EVENTS; i++) {
        size_t from = i;
        if (damage == DAMAGE_SWAP && i == index) from = i + 1;
        if (damage == DAMAGE_SWAP && i == index + 1) from = index;
        if ((damage == DAMAGE_DROP && i == index) || (damage == DAMAGE_CUT && i >= index)) continue;
        size_t start = out->len;
        buf_add(out, line_at(text, from));
        if (damage == DAMAGE_FLIP && i == index) out->ptr[start + byte] ^= 4;
    }
}

static void put_member(struct buf *out, struct str path, struct str bytes)
{
    uint8_t header[BUNDLE_BLOCK];
    CHECK(bundle_header(path, bytes.len, header));
    buf_add(out, (struct str){(const char *)header, sizeof(header)});
    buf_add(out, bytes);
    for (uint64_t i = 0; i < bundle_padding(bytes.len); i++) buf_byte(out, '\0');
}

// All hashes but those of the chain are made to fit: only the chain is left to tell.
static void forge(struct rig *rig, const struct bundle *whole, enum damage damage, size_t index, size_t byte)
{
    struct buf events, sums, rest;
    buf_init(&events, (size_t)1 << 20);
    buf_init(&sums, (size_t)1 << 20);
    buf_init(&rest, (size_t)1 << 20);
    for (size_t i = 0; i < whole->count; i++) {
        struct bundle_member member = whole->members[i];
        if (str_is(member.path, BUNDLE_SUMS)) continue;
        if (str_is(member.path, "runs/1/events.jsonl")) {
            damage_lines(member.bytes, damage, index, byte, &events);
            member.bytes = buf_str(&events);
        }
        char hex[SHA256_HEX + 1];
        struct digest hash = sha256(member.bytes);
        digest_hex(&hash, hex);
        buf_printf(&sums, "%s  %.*s\n", hex, STR_ARG(member.path));
        put_member(&rest, member.path, member.bytes);
    }
    buf_clear(&rig->bytes);
    put_member(&rig->bytes, STR(BUNDLE_SUMS), buf_str(&sums));
    buf_add(&rig->bytes, buf_str(&rest));
    for (unsigned i = 0; i < 2 * BUNDLE_BLOCK; i++) buf_byte(&rig->bytes, '\0');
    buf_release(&events);
    buf_release(&sums);
    buf_release(&rest);
}

static void check_named(struct rig *rig, const struct bundle *whole, enum damage damage, size_t index, size_t byte)
{
    struct proof proof;
    forge(rig, whole, damage, index, byte);
    CHECK_OK(prove(rig, NULL, &proof), &rig->kit.err);
    if (proof.runs.fault_count == 0)
        test_fail(__FILE__, __LINE__, "damage %d of event %zu (byte %zu) was not found", damage, index + 1, byte);
    const struct verify_fault *first = &proof.runs.faults[0];
    CHECK_STR(first->run, STR("r"));
    if (first->seq != index + 1)
        test_fail(__FILE__, __LINE__, "damage %d of event %zu (byte %zu) was named %llu: %.*s", damage, index + 1, byte,
                  (unsigned long long)first->seq, STR_ARG(first->what));
}

static void every_flipped_dropped_swapped_and_cut_event_of_a_bundle_is_named_I7(void)
{
    struct rig rig;
    struct bundle whole;
    rig_init(&rig);
    make_bundle(&rig, false, false, false);
    CHECK_OK(bundle_open(save(&rig), &whole, &rig.kit.err), &rig.kit.err);
    // The file will be written again: keep what was in it.
    whole.file = (struct str){0};
    for (size_t i = 0; i < whole.count; i++)
        whole.members[i].bytes = arena_copy(&rig.kit.arena, whole.members[i].bytes);
    struct str events = bundle_find(&whole, STR("runs/1/events.jsonl"))->bytes;
    for (size_t i = 0; i < EVENTS; i++) {
        for (size_t byte = 0; byte + 1 < line_at(events, i).len; byte += 3)
            check_named(&rig, &whole, DAMAGE_FLIP, i, byte);
        check_named(&rig, &whole, DAMAGE_DROP, i, 0);
        check_named(&rig, &whole, DAMAGE_CUT, i, 0);
        if (i + 1 < EVENTS) check_named(&rig, &whole, DAMAGE_SWAP, i, 0);
    }
    arena_release(&whole.arena);
    rig_release(&rig);
}

static void a_signature_of_another_key_is_not_trusted(void)
{
    struct rig rig;
    struct proof proof;
    struct archive_key *other = NULL;
    rig_init(&rig);
    CHECK_OK(key_new(&other, &rig.kit.err), &rig.kit.err);
    make_bundle(&rig, false, true, false);
    CHECK_OK(prove(&rig, other, &proof), &rig.kit.err);
    CHECK_INT(proof.fault_count, 1);
    CHECK(!proof.trusted);
    make_bundle(&rig, false, false, false);
    CHECK_OK(prove(&rig, rig.key, &proof), &rig.kit.err);
    CHECK_INT(proof.fault_count, 1); // not signed at all
    key_free(other);
    rig_release(&rig);
}

static void a_redacted_bundle_has_no_values_and_its_chain_holds(void)
{
    struct rig rig;
    struct proof proof;
    rig_init(&rig);
    struct export_report report = make_bundle(&rig, false, true, true);
    CHECK(report.redacted_count > 0 && report.redacted_count < EVENTS);
    static const char *const secrets[] = {"a secret result", "tester"};
    for (size_t i = 0; i < ARRAY_COUNT(secrets); i++)
        CHECK(!memmem(rig.bytes.ptr, rig.bytes.len, secrets[i], strlen(secrets[i])));
    CHECK(memmem(rig.bytes.ptr, rig.bytes.len, "name: parent", 12)); // documents stay
    CHECK_OK(prove(&rig, rig.key, &proof), &rig.kit.err);
    CHECK_INT(proof.fault_count + proof.runs.fault_count, 0);
    CHECK(proof.redacted && proof.trusted);
    CHECK_INT(proof.runs.redacted_count, report.redacted_count);
    rig_release(&rig);
}

static void keys_survive_their_files_and_other_files_are_refused(void)
{
    struct rig rig;
    struct str secret, public;
    struct archive_key *a = NULL, *b = NULL;
    char ids[3][KEY_ID_SIZE];
    rig_init(&rig);
    struct kit *kit = &rig.kit;
    CHECK_OK(key_pem(rig.key, true, &kit->arena, &secret, &kit->err), &kit->err);
    CHECK_OK(key_pem(rig.key, false, &kit->arena, &public, &kit->err), &kit->err);
    CHECK_OK(key_parse(secret, &a, &kit->err), &kit->err);
    CHECK_OK(key_parse(public, &b, &kit->err), &kit->err);
    CHECK(key_is_private(a) && !key_is_private(b));
    CHECK_OK(key_id(rig.key, ids[0], &kit->err), &kit->err);
    CHECK_OK(key_id(a, ids[1], &kit->err), &kit->err);
    CHECK_OK(key_id(b, ids[2], &kit->err), &kit->err);
    CHECK_TEXT(ids[0], ids[1]);
    CHECK_TEXT(ids[0], ids[2]);
    uint8_t signature[SIGNATURE_SIZE];
    CHECK_OK(key_sign(a, STR("text"), signature, &kit->err), &kit->err);
    CHECK(key_verifies(b, STR("text"), (struct str){(const char *)signature, sizeof(signature)}));
    CHECK(!key_verifies(b, STR("texT"), (struct str){(const char *)signature, sizeof(signature)}));
    CHECK_INT(key_sign(b, STR("text"), signature, NULL), E_INVALID);
    key_free(a);
    key_free(b);
    CHECK_INT(key_parse(STR("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"), &a, NULL), E_INVALID);
    CHECK_INT(key_parse(STR(""), &a, NULL), E_INVALID);
    rig_release(&rig);
}

static const struct test tests[] = {
    TEST(a_bundle_holds_runs_children_documents_and_proves_itself),
    TEST(the_same_runs_give_the_same_bytes),
    TEST(a_bundle_is_a_store_that_can_be_read),
    TEST(every_changed_byte_of_a_bundle_is_found),
    TEST(every_shorter_and_longer_bundle_is_found),
    TEST(every_flipped_dropped_swapped_and_cut_event_of_a_bundle_is_named_I7),
    TEST(a_signature_of_another_key_is_not_trusted),
    TEST(a_redacted_bundle_has_no_values_and_its_chain_holds),
    TEST(keys_survive_their_files_and_other_files_are_refused),
};

int main(int argc, char **argv)
{
    return test_main("archive_bundle", tests, ARRAY_COUNT(tests), argc, argv);
}
