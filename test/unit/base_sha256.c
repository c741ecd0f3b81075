// SHA-256 against the vectors of FIPS 180-4 (NIST), digests as text, and UUIDs.
#include "base/sha256.h"
#include "base/uuid.h"
#include "harness/test.h"

#include <string.h>

static void check_hash(struct str bytes, const char *want)
{
    struct digest digest = sha256(bytes);
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    CHECK_TEXT(hex, want);
}

static void nist_vectors(void)
{
    check_hash(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash((struct str){NULL, 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hash(STR("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
               "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void nist_million_a(void)
{
    static char text[1000000];
    memset(text, 'a', sizeof(text));
    check_hash((struct str){text, sizeof(text)}, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void parts_hash_like_their_concatenation(void)
{
    static const struct str parts[] = {STR_INIT("ab"), {NULL, 0}, STR_INIT(""), STR_INIT("c")};
    struct digest whole = sha256(STR("abc"));
    struct digest split = sha256_parts(parts, ARRAY_COUNT(parts));
    CHECK(digest_eq(&whole, &split));
    struct digest none = sha256_parts(NULL, 0);
    struct digest empty = sha256(STR(""));
    CHECK(digest_eq(&none, &empty));
    CHECK(!digest_eq(&none, &whole));
}

static void digest_text_round_trip(void)
{
    struct digest digest = sha256(STR("x")), back;
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    CHECK(digest_parse(str_from(hex), &back));
    CHECK(digest_eq(&digest, &back));
    CHECK(!digest_parse(str_slice(str_from(hex), 0, 63), &back));
    char longer[SHA256_HEX + 2];
    memcpy(longer, hex, SHA256_HEX);
    longer[SHA256_HEX] = '0';
    CHECK(!digest_parse((struct str){longer, SHA256_HEX + 1}, &back));
    hex[10] = 'A';
    CHECK(!digest_parse(str_from(hex), &back));
    hex[10] = 'g';
    CHECK(!digest_parse(str_from(hex), &back));
    hex[10] = '\0';
    CHECK(!digest_parse((struct str){hex, SHA256_HEX}, &back));
    CHECK(digest_eq(&digest, &back)); // untouched by failures
}

static void uuid_has_version_4(void)
{
    uint8_t zeros[16] = {0}, ones[16];
    char text[UUID_SIZE];
    memset(ones, 0xFF, sizeof(ones));
    uuid_format(zeros, text);
    CHECK_TEXT(text, "00000000-0000-4000-8000-000000000000");
    CHECK(uuid_valid(str_from(text)));
    uuid_format(ones, text);
    CHECK_TEXT(text, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    const uint8_t bytes[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                               0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
    uuid_format(bytes, text);
    CHECK_TEXT(text, "01234567-89ab-4def-8123-456789abcdef");
}

static void uuid_text_is_checked(void)
{
    CHECK(uuid_valid(STR("01234567-89AB-1DEF-8123-456789abcdef")));
    CHECK(!uuid_valid(STR("01234567-89ab-4def-8123-456789abcde")));
    CHECK(!uuid_valid(STR("01234567-89ab-4def-8123-456789abcdef0")));
    CHECK(!uuid_valid(STR("0123456-789ab-4def-8123-456789abcdef")));
    CHECK(!uuid_valid(STR("01234567-89ab-4def-8123-456789abcdeg")));
    CHECK(!uuid_valid(STR("01234567089ab-4def-8123-456789abcdef")));
    CHECK(!uuid_valid(STR("")));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(nist_vectors),           TEST(nist_million_a),     TEST(parts_hash_like_their_concatenation),
        TEST(digest_text_round_trip), TEST(uuid_has_version_4), TEST(uuid_text_is_checked),
    };
    return test_main("base_sha256", tests, ARRAY_COUNT(tests), argc, argv);
}
