// Results in an object store of NATS: names and descriptions as other clients write them, and a real server that is killed, emptied
// and lied to.
#include "bus/object_wire.h"

#include "base/base64.h"
#include "bus/objects.h"
#include "unit/support/nats_kit.h"

#define PLAIN "{\"verbose\":false,\"headers\":true,\"no_responders\":true}"

static struct nats_server server;
static struct arena arena;
static struct error err;

// ---- what it looks like

// In the form that other clients give it.
static void an_object_of_another_client_is_read_NX_7_3(void)
{
    struct object_meta meta;
    struct str text = STR("{\"name\":\"a\",\"options\":{\"max_chunk_size\":131072},\"bucket\":\"b\",\"nuid\":"
                          "\"JCsBYpB7T0AOL2bBmdjUn4\",\"size\":3,\"mtime\":\"2025-01-01T00:00:00Z\",\"chunks\":1,"
                          "\"digest\":\"SHA-256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0=\"}");
    arena_init(&arena, 4096, SIZE_MAX);
    CHECK(object_described(text, &arena, &meta));
    struct digest abc = sha256(STR("abc"));
    CHECK(digest_eq(&meta.digest, &abc));
    CHECK_INT(meta.size, 3);
    CHECK_INT(meta.chunks, 1);
    CHECK_STR(meta.nuid, str_from("JCsBYpB7T0AOL2bBmdjUn4"));
    CHECK(object_described(STR("{\"name\":\"a\",\"bucket\":\"b\",\"nuid\":\"x\",\"deleted\":true}"), &arena, &meta) &&
          meta.deleted);
    arena_release(&arena);
}

static void names_and_descriptions_are_those_of_every_client_NX_7_3(void)
{
    struct digest abc = sha256(STR("abc"));
    struct object_meta meta = {.nuid = STR("N"), .size = 3, .chunks = 1, .digest = abc}, back;
    char subject[OBJECT_SUBJECT];
    struct json json;
    arena_init(&arena, 4096, SIZE_MAX);
    object_subject(STR("b"), &abc, subject);
    CHECK_STR(str_from(subject),
              str_from("$O.b.M.YmE3ODE2YmY4ZjAxY2ZlYTQxNDE0MGRlNWRhZTIyMjNiMDAzNjFhMzk2MTc3YTljYjQxMGZmNjFm"
                       "MjAwMTVhZA=="));
    object_chunks(STR("b"), STR("N"), subject);
    CHECK_STR(str_from(subject), str_from("$O.b.C.N"));
    struct str text = object_describe(STR("b"), &abc, &meta, "2026-01-02T03:04:05.000Z", &arena);
    CHECK_OK(json_parse(text, NULL, &arena, &json, &err), &err);
    CHECK_STR(json_text(json_key(&json, "digest")), str_from("SHA-256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0="));
    CHECK_STR(json_text(json_key(&json, "name")),
              str_from("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    CHECK(object_described(text, &arena, &back) && digest_eq(&back.digest, &abc) && back.size == 3);
    CHECK_OK(json_parse(object_config(STR("b"), &arena), NULL, &arena, &json, &err), &err);
    CHECK_STR(json_text(json_key(&json, "name")), str_from("OBJ_b"));
    arena_release(&arena);
}

static void what_is_no_description_is_refused(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"nuid\":\"a\"}",
        "{\"nuid\":\"a\",\"digest\":\"SHA-256=\"}",
        "{\"nuid\":\"a\",\"digest\":\"MD5=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0=\"}",
        "{\"nuid\":\"a.>\",\"digest\":\"SHA-256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0=\"}",
        "{\"nuid\":\"a\",\"size\":-1,\"digest\":\"SHA-256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0=\"}"};
    struct object_meta meta;
    arena_init(&arena, 4096, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) CHECK(!object_described(str_from(bad[i]), &arena, &meta));
    arena_release(&arena);
}

static void settings_are_read_or_refused_by_name(void)
{
    static const struct {
        const char *text, *says; // of a refusal, or the bucket
        bool good;
    } cases[] = {{"\"nats://h:4222\"", "cairn_results", true},
                 {"\"nats://h:4222/big-ones_2\"", "big-ones_2", true},
                 {"\"tls://h/b\"", "b", true},
                 {"{\"url\":\"nats://h\",\"bucket\":\"x\",\"token\":{\"env\":\"T\"},\"timeoutMs\":100}", "x", true},
                 {"\"http://h\"", "results.url: must be nats:// or tls://", false},
                 {"\"nats://h/a.b\"", "results.bucket: a bucket has letters", false},
                 {"\"nats://user:secret@h/b\"", "results.url", false},
                 {"{\"url\":\"nats://h\",\"bucked\":\"x\"}", "there is no setting \"bucked\"", false},
                 {"{\"url\":\"nats://h\",\"token\":\"plain\"}", "a secret is given by reference", false},
                 {"{\"bucket\":\"x\"}", "results: needs a url", false},
                 {"7", "results.url: must be a text", false}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct json config;
        struct keep *keep = NULL;
        arena_init(&arena, 4096, SIZE_MAX);
        err = (struct error){0};
        CHECK_OK(json_parse(str_from(cases[i].text), NULL, &arena, &config, &err), &err);
        enum code rc = objects_open(&config, &keep, &err);
        if (cases[i].good) CHECK_STR(keep->place, str_from(cases[i].says));
        if (!cases[i].good && (rc != E_INVALID || !strstr(err.message, cases[i].says)))
            test_fail(__FILE__, __LINE__, "%s: %s", cases[i].text, err.message);
        keep_close(keep);
        arena_release(&arena);
    }
}

// ---- the real one

static struct keep *open_keep(void)
{
    char url[100];
    struct keep *keep = NULL;
    snprintf(url, sizeof(url), "nats://127.0.0.1:%u/things", server.port);
    struct json config = json_string(str_from(url));
    CHECK_OK(objects_open(&config, &keep, &err), &err);
    return keep;
}

static struct keep *begin(void)
{
    arena_init(&arena, 64 * 1024, SIZE_MAX);
    err = (struct error){0};
    server.port = 0;
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    struct json answer; // a server that only just listens says that JetStream is not there
    BUS_WAIT(nats_ask(&server, "$JS.API.INFO", "", &arena, &answer));
    return open_keep();
}

static void end(struct keep *keep)
{
    keep_close(keep);
    nats_kill(&server);
    arena_release(&arena);
}

static struct str bytes_of(size_t size, char seed)
{
    char *bytes = arena_alloc(&arena, size);
    for (size_t i = 0; i < size; i++) bytes[i] = (char)((size_t)seed + i * 7 + (i >> 9));
    return (struct str){bytes, size};
}

static enum code get(struct keep *keep, const struct digest *hash, struct str *out)
{
    err = (struct error){0};
    return keep->ops->get(keep, STR("things"), hash, &arena, out, &err);
}

// Another handle: one that remembers nothing.
static enum code get_anew(const struct digest *hash, struct str *out)
{
    struct keep *keep = open_keep();
    enum code rc = get(keep, hash, out);
    keep_close(keep);
    return rc;
}

static void what_is_put_is_got_whole_and_once_NX_7_3(void)
{
    struct keep *keep = begin();
    struct str big = bytes_of(5 * OBJECT_CHUNK + 17, 'a'), back;
    struct digest hash = sha256(big), other = sha256(STR("other"));
    CHECK(get(keep, &hash, &back) == E_NOT_FOUND); // there is no bucket yet
    CHECK_OK(keep->ops->put(keep, &hash, big, &err), &err);
    CHECK_INT(nats_count(&server, "OBJ_things"), 7); // six chunks, and what is said about them
    CHECK_OK(get(keep, &hash, &back), &err);
    CHECK(str_eq(back, big));
    CHECK_OK(get_anew(&hash, &back), &err);
    CHECK(str_eq(back, big));
    CHECK_OK(keep->ops->put(keep, &hash, big, &err), &err); // as after a crash: it takes the place of the first
    CHECK_INT(nats_count(&server, "OBJ_things"), 7);
    CHECK_OK(get_anew(&hash, &back), &err);
    CHECK(str_eq(back, big));
    CHECK(get_anew(&other, &back) == E_NOT_FOUND);
    end(keep);
}

static void what_was_looked_at_is_dropped_and_nothing_newer(void)
{
    struct keep *keep = begin();
    struct str text = STR("{\"a\":1}"), back;
    struct digest hash = sha256(text);
    uint64_t seen = 0;
    CHECK_OK(keep->ops->put(keep, &hash, text, &err), &err);
    CHECK_OK(keep->ops->look(keep, STR("things"), &hash, &seen, &err), &err);
    CHECK_OK(keep->ops->put(keep, &hash, text, &err), &err); // somebody else needs it, too
    CHECK_OK(keep->ops->drop(keep, STR("things"), &hash, seen, &err), &err);
    CHECK_OK(get_anew(&hash, &back), &err);
    CHECK_OK(keep->ops->look(keep, STR("things"), &hash, &seen, &err), &err);
    CHECK_OK(keep->ops->drop(keep, STR("things"), &hash, seen, &err), &err);
    CHECK(get(keep, &hash, &back) == E_NOT_FOUND);
    CHECK_INT(nats_count(&server, "OBJ_things"), 0);
    CHECK_OK(keep->ops->drop(keep, STR("things"), &hash, seen, &err), &err); // it is gone: as it should be
    end(keep);
}

static void an_object_that_was_changed_is_not_given_out_NX_7_3(void)
{
    struct keep *keep = begin();
    struct str text = bytes_of(100, 'a'), forged = bytes_of(100, 'b'), back;
    struct digest hash = sha256(text), wrong = sha256(forged);
    struct json answer;
    char subject[OBJECT_SUBJECT];
    CHECK_OK(keep->ops->put(keep, &hash, text, &err), &err);
    CHECK_OK(keep->ops->put(keep, &wrong, forged, &err), &err);
    // The chunks of the one under the name of the other.
    struct object_meta told = {.size = 100, .chunks = 1, .digest = hash};
    char body[400];
    object_subject(STR("things"), &wrong, subject);
    snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s\"}", subject);
    CHECK(nats_ask(&server, "$JS.API.STREAM.MSG.GET.OBJ_things", body, &arena, &answer));
    struct str text_of = base64_read(json_text(json_at(&answer, STR("message.data"))), &arena);
    struct object_meta theirs;
    CHECK(object_described(text_of, &arena, &theirs));
    told.nuid = theirs.nuid;
    struct str meta = object_describe(STR("things"), &hash, &told, "2026-01-02T03:04:05.000Z", &arena);
    object_subject(STR("things"), &hash, subject);
    CHECK(nats_ask(&server, subject, meta.ptr, &arena, &answer));
    CHECK(get_anew(&hash, &back) == E_CORRUPT);
    CHECK(strstr(err.message, "does not have the digest"));
    // And one whose chunks are gone.
    told.nuid = STR("nobody");
    meta = object_describe(STR("things"), &hash, &told, "2026-01-02T03:04:05.000Z", &arena);
    CHECK(nats_ask(&server, subject, meta.ptr, &arena, &answer));
    CHECK(get_anew(&hash, &back) == E_CORRUPT);
    CHECK(strstr(err.message, "not whole"));
    CHECK_OK(get(keep, &hash, &back), &err); // whoever has just read it has it still
    end(keep);
}

static void a_server_that_goes_and_comes_back_is_found_again(void)
{
    struct keep *keep = begin();
    struct str text = STR("{\"a\":1}"), back;
    struct digest hash = sha256(text), other = sha256(STR("other"));
    CHECK_OK(keep->ops->put(keep, &hash, text, &err), &err);
    nats_kill(&server);
    int64_t began = mono_now();
    CHECK(get_anew(&hash, &back) == E_UNREACHABLE);
    for (int i = 0; i < 100; i++) CHECK(get(keep, &other, &back) == E_UNREACHABLE);
    CHECK(keep->ops->put(keep, &other, STR("other"), &err) == E_UNREACHABLE);
    CHECK(mono_now() - began < 4000); // nobody waits for a hundred timeouts
    CHECK_OK(get(keep, &hash, &back), &err);
    nats_start(&server, "");
    nats_hello(&server, PLAIN);
    BUS_WAIT(keep->ops->put(keep, &other, STR("other"), &err) == OK);
    CHECK_OK(get_anew(&hash, &back), &err);
    CHECK(str_eq(back, text));
    end(keep);
}

// The connection breaks after some chunks: nothing is there under the name, and the next try is whole.
static void what_breaks_off_in_the_middle_is_not_there_NX_7_3(void)
{
    struct keep *keep = begin();
    struct str big = bytes_of(4 * OBJECT_CHUNK, 'x'), back;
    struct digest hash = sha256(big);
    struct json answer;
    CHECK_OK(keep->ops->put(keep, &hash, STR("bucket"), &err), &err); // makes the bucket
    uint64_t seen = 0;
    CHECK_OK(keep->ops->look(keep, STR("things"), &hash, &seen, &err), &err);
    CHECK_OK(keep->ops->drop(keep, STR("things"), &hash, seen, &err), &err);
    CHECK(nats_ask(&server, "$O.things.C.half", "part of it", &arena, &answer)); // as whoever was killed leaves it
    CHECK(get_anew(&hash, &back) == E_NOT_FOUND);
    CHECK_OK(keep->ops->put(keep, &hash, big, &err), &err);
    CHECK_OK(get_anew(&hash, &back), &err);
    CHECK(str_eq(back, big));
    end(keep);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(an_object_of_another_client_is_read_NX_7_3),
        TEST(names_and_descriptions_are_those_of_every_client_NX_7_3),
        TEST(what_is_no_description_is_refused),
        TEST(settings_are_read_or_refused_by_name),
        TEST(what_is_put_is_got_whole_and_once_NX_7_3),
        TEST(what_was_looked_at_is_dropped_and_nothing_newer),
        TEST(an_object_that_was_changed_is_not_given_out_NX_7_3),
        TEST(a_server_that_goes_and_comes_back_is_found_again),
        TEST(what_breaks_off_in_the_middle_is_not_there_NX_7_3),
    };
    return test_main("bus_objects", tests, ARRAY_COUNT(tests), argc, argv);
}
