// HMAC-SHA256 against RFC 4231, and tokens that are good for one attempt only.
#include "auth/auth.h"
#include "harness/test.h"

#include <string.h>

static void check_mac(struct str key, struct str message, const char *want)
{
    struct digest mac = hmac_sha256(key, message);
    char hex[SHA256_HEX + 1];
    digest_hex(&mac, hex);
    hex[strlen(want)] = '\0';
    CHECK_TEXT(hex, want);
}

static struct str fill(char *bytes, size_t size, unsigned value)
{
    memset(bytes, (int)value, size);
    return (struct str){bytes, size};
}

static void rfc_4231_vectors(void)
{
    char key[131], data[50], counted[25];
    for (size_t i = 0; i < sizeof(counted); i++) counted[i] = (char)(i + 1);
    check_mac(fill(key, 20, 0x0b), STR("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_mac(STR("Jefe"), STR("what do ya want for nothing?"),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    check_mac(fill(key, 20, 0xaa), fill(data, 50, 0xdd),
              "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    check_mac((struct str){counted, 25}, fill(data, 50, 0xcd),
              "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    check_mac(fill(key, 20, 0x0c), STR("Test With Truncation"), "a3b6167473100ee06e0c796c2955552b");
    check_mac(fill(key, 131, 0xaa), STR("Test Using Larger Than Block-Size Key - Hash Key First"),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    check_mac(
        fill(key, 131, 0xaa),
        STR("This is a test using a larger than block-size key and a larger than block-size data. The key needs to be "
            "hashed before being used by the HMAC algorithm."),
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
    // A key of exactly one block is used as it is (value by another implementation).
    check_mac(fill(key, 64, 0x01), STR(""), "11581ebc1f05ecefdee13d63845c1a43b219a7bc8e0e90d3396baeb2a55677d7");
}

static struct arena arena;
static struct error err;
static const struct task_key secret = {{1, 2, 3}};
static const struct task_claim claim = {.tenant = STR_INIT("acme"),
                                        .run = STR_INIT("run-1"),
                                        .step = STR_INIT("loop[2].tick"),
                                        .logical = 1,
                                        .engine = 2,
                                        .epoch = 7,
                                        .lease = STR_INIT("lease-9")};

static struct str sealed(const struct task_key *key, const struct task_claim *what)
{
    static struct buf buf;
    if (!buf.ptr) buf_init(&buf, 1 << 14);
    auth_task_seal(key, what, &buf);
    CHECK(buf_ok(&buf));
    struct str text = arena_copy(&arena, buf_str(&buf));
    CHECK(text.ptr);
    buf_clear(&buf);
    return text;
}

static bool same_claim(const struct task_claim *a, const struct task_claim *b)
{
    return str_eq(a->tenant, b->tenant) && str_eq(a->run, b->run) && str_eq(a->step, b->step) &&
           a->logical == b->logical && a->engine == b->engine && a->epoch == b->epoch && str_eq(a->lease, b->lease);
}

static void a_claim_comes_back_A7(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    struct task_claim back;
    CHECK_OK(auth_task_open(&secret, sealed(&secret, &claim), &arena, &back, &err), &err);
    CHECK(same_claim(&back, &claim));
    struct task_claim empty = {0};
    CHECK_OK(auth_task_open(&secret, sealed(&secret, &empty), &arena, &back, &err), &err);
    CHECK(same_claim(&back, &empty));
    struct task_claim large = {.logical = UINT32_MAX, .engine = UINT32_MAX, .epoch = UINT64_MAX};
    CHECK_OK(auth_task_open(&secret, sealed(&secret, &large), &arena, &back, &err), &err);
    CHECK(same_claim(&back, &large));
}

// The part with the claim of one token, the part with the mac of another.
static struct str crossed(struct str claim_of, struct str mac_of)
{
    struct buf buf;
    buf_init(&buf, 1 << 14);
    buf_add(&buf, str_slice(claim_of, 0, claim_of.len - 52));
    buf_add(&buf, str_slice(mac_of, mac_of.len - 52, mac_of.len));
    struct str text = arena_copy(&arena, buf_str(&buf));
    CHECK(text.ptr);
    buf_release(&buf);
    return text;
}

static void any_other_field_makes_it_useless_A7(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    struct task_claim others[9];
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) others[i] = claim;
    others[0].tenant = STR("globex");
    others[1].run = STR("run-2");
    others[2].step = STR("loop[3].tick");
    others[3].logical = 2;
    others[4].engine = 1;
    others[5].epoch = 8;
    others[6].lease = STR("lease-8");
    others[7].tenant = STR("acmer"); // the same letters, cut at another place
    others[7].run = STR("un-1");
    others[8].logical = 2;
    others[8].engine = 1;
    struct str good = sealed(&secret, &claim);
    struct task_claim back;
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        CHECK(!same_claim(&others[i], &claim));
        CHECK_INT(auth_task_open(&secret, crossed(sealed(&secret, &others[i]), good), &arena, &back, NULL), E_DENIED);
        CHECK_INT(auth_task_open(&secret, crossed(good, sealed(&secret, &others[i])), &arena, &back, NULL), E_DENIED);
    }
    struct task_key other = secret;
    other.b[31] = 1;
    CHECK_INT(auth_task_open(&other, good, &arena, &back, NULL), E_DENIED);
    CHECK_OK(auth_task_open(&secret, crossed(good, good), &arena, &back, &err), &err);
}

static void any_other_character_makes_it_useless_A7(void)
{
    arena_init(&arena, 1 << 14, 1 << 22);
    struct str good = sealed(&secret, &claim);
    struct task_claim back;
    char text[1024];
    CHECK(good.len < sizeof(text));
    for (size_t i = 0; i < good.len; i++) {
        for (const char *c = "0z_A \x80"; *c; c++) {
            memcpy(text, good.ptr, good.len);
            text[i] = *c;
            if (text[i] == good.ptr[i]) continue;
            CHECK_INT(auth_task_open(&secret, (struct str){text, good.len}, &arena, &back, NULL), E_DENIED);
        }
        CHECK_INT(auth_task_open(&secret, str_slice(good, 0, i), &arena, &back, NULL), E_DENIED);
        CHECK_INT(auth_task_open(&secret, str_slice(good, i + 1, good.len), &arena, &back, NULL), E_DENIED);
    }
    CHECK_INT(auth_task_open(&secret, STR("ctask_"), &arena, &back, NULL), E_DENIED);
    CHECK_INT(auth_task_open(&secret, STR("ctask__"), &arena, &back, NULL), E_DENIED);
}

static void limits(void)
{
    arena_init(&arena, 1 << 14, 1 << 20);
    static char name[5000];
    memset(name, 'x', sizeof(name));
    struct buf buf;
    struct task_claim long_claim = claim, back;
    buf_init(&buf, 1 << 14);
    long_claim.step = (struct str){name, sizeof(name)};
    auth_task_seal(&secret, &long_claim, &buf);
    CHECK(!buf_ok(&buf));
    buf_clear(&buf);
    long_claim.step = (struct str){name, 3000};
    auth_task_seal(&secret, &long_claim, &buf);
    CHECK(buf_ok(&buf));
    CHECK_OK(auth_task_open(&secret, buf_str(&buf), &arena, &back, &err), &err);
    arena_release(&arena);
    arena_init(&arena, 64, 1 << 20);
    arena.fail_in = 1;
    CHECK_INT(auth_task_open(&secret, buf_str(&buf), &arena, &back, NULL), E_NOMEM);
    struct buf tight;
    buf_init(&tight, 20);
    auth_task_seal(&secret, &claim, &tight);
    CHECK(!buf_ok(&tight));
    buf_release(&tight);
    buf_release(&buf);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(rfc_4231_vectors),
        TEST(a_claim_comes_back_A7),
        TEST(any_other_field_makes_it_useless_A7),
        TEST(any_other_character_makes_it_useless_A7),
        TEST(limits),
    };
    return test_main("auth_task", tests, ARRAY_COUNT(tests), argc, argv);
}
