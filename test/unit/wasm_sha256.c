// The hash of the fold in browsers (web/wasm/sha256.c) against libcrypto's: known answers, every length around a block, pieces of any size.
#include "harness/test.h"

#include "base/sha256.h"

#include "../../web/wasm/sha256.c"


static struct digest plain(struct str bytes, size_t piece)
{
    struct plain_sha256 hash;
    struct digest digest;
    CHECK(plain_sha256_init(&hash) == 1);
    for (size_t at = 0; at < bytes.len; at += piece)
        CHECK(plain_sha256_update(&hash, bytes.ptr + at, piece < bytes.len - at ? piece : bytes.len - at) == 1);
    CHECK(plain_sha256_final(digest.b, &hash) == 1);
    return digest;
}

static void known_answers(void)
{
    static const struct {
        const char *text, *hex;
    } cases[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char hex[SHA256_HEX + 1];
        struct digest digest = plain(str_from(cases[i].text), 1000);
        digest_hex(&digest, hex);
        CHECK(strcmp(hex, cases[i].hex) == 0);
    }
}

static void every_length_and_random_pieces_agree_with_libcrypto(void)
{
    enum { MOST = 4096 };
    static char bytes[MOST];
    uint32_t state = 12345;
    for (size_t i = 0; i < MOST; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (char)(state >> 24);
    }
    for (size_t len = 0; len <= 300; len++) {
        struct str text = {bytes, len};
        struct digest mine = plain(text, 300), theirs = sha256(text);
        CHECK(digest_eq(&mine, &theirs));
    }
    for (int round = 0; round < 500; round++) {
        state = state * 1664525u + 1013904223u;
        struct str text = {bytes + state % 64, state / 64 % (MOST - 64)};
        struct digest mine = plain(text, 1 + state % 130), theirs = sha256(text);
        CHECK(digest_eq(&mine, &theirs));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {TEST(known_answers), TEST(every_length_and_random_pieces_agree_with_libcrypto)};
    return test_main("wasm_sha256", tests, ARRAY_COUNT(tests), argc, argv);
}
