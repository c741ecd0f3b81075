// Members of answers by their class. The sweep over all routes is test/e2e/redaction_test.sh.
#include "api/inside.h"
#include "harness/test.h"

static void becomes(const char *text, const char *want)
{
    struct arena arena = arena_of(4096, 1 << 20);
    struct buf out = buf_of(1 << 16);
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), NULL, &arena, &value, &err), &err);
    redact(&value);
    json_write(&out, &value);
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
    arena_release(&arena);
}

static void what_has_no_class_is_hidden_whatever_it_is_A6(void)
{
    becomes("{\"runId\":\"r\",\"anything\":\"x\",\"other\":7,\"more\":{\"runId\":\"r\"},\"list\":[1],\"none\":null}",
            "{\"runId\":\"r\",\"anything\":\"(redacted)\",\"other\":\"(redacted)\",\"more\":\"(redacted)\","
            "\"list\":\"(redacted)\",\"none\":null}");
}

static void a_name_means_what_it_means_where_it_stands(void)
{
    becomes("{\"cause\":\"it said x\",\"result\":\"x\",\"left\":\"x\"}",
            "{\"cause\":\"(redacted)\",\"result\":\"(redacted)\",\"left\":\"(redacted)\"}");
    becomes("{\"cause\":{\"step\":\"a\",\"verdict\":\"it said x\"},\"retry\":{\"left\":2,\"verdict\":\"AGAIN\"}}",
            "{\"cause\":{\"step\":\"a\",\"verdict\":\"(redacted)\"},\"retry\":{\"left\":2,\"verdict\":\"AGAIN\"}}");
    becomes("{\"when\":{\"text\":\"$a == 1\",\"atoms\":[{\"left\":7,\"right\":1,\"result\":false}]}}",
            "{\"when\":{\"text\":\"$a == 1\",\"atoms\":[{\"left\":\"(redacted)\",\"right\":1,\"result\":false}]}}");
    becomes("{\"attempts\":[{\"result\":{\"x\":1}}],\"items\":[{\"text\":\"x\"}]}",
            "{\"attempts\":[{\"result\":\"(redacted)\"}],\"items\":[{\"text\":\"(redacted)\"}]}");
}

static void codes_of_a_program_are_hidden_those_of_cairn_shown(void)
{
    becomes("{\"items\":[{\"code\":\"HTTP_404\"},{\"code\":\"SQLITE_19\"},{\"code\":\"NATS_REFUSED\"}]}",
            "{\"items\":[{\"code\":\"HTTP_404\"},{\"code\":\"SQLITE_19\"},{\"code\":\"NATS_REFUSED\"}]}");
    becomes("{\"items\":[{\"code\":\"HTTP_600\"},{\"code\":\"HTTP_SECRET\"},{\"code\":\"HTTP_-1\"},{\"code\":\"X\"}]}",
            "{\"items\":[{\"code\":\"(redacted)\"},{\"code\":\"(redacted)\"},{\"code\":\"(redacted)\"},{\"code\":\"(redacted)\"}]}");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(what_has_no_class_is_hidden_whatever_it_is_A6),
        TEST(a_name_means_what_it_means_where_it_stands),
        TEST(codes_of_a_program_are_hidden_those_of_cairn_shown),
    };
    return test_main("api_redact", tests, ARRAY_COUNT(tests), argc, argv);
}
