// Secrets by provider: where values come from, whose they are (RE-5b, S3), and that a value is seen by its step only.
#include "tool_kit.h"

#include <sys/stat.h>

static struct arena arena;

static enum code parse(const char *text, struct tool_secrets **out, struct error *err)
{
    struct json config;
    if (!arena.block_size) arena_init(&arena, 4096, 16 << 20);
    CHECK_OK(json_parse(arena_copy(&arena, str_from(text)), NULL, &arena, &config, err), err);
    return tool_secrets_parse(&config, &arena, out, err);
}

static void open_with(const char *config)
{
    struct tool_secrets *secrets;
    struct error err = {0};
    CHECK_OK(parse(config, &secrets, &err), &err);
    kit_open_with("testmark", 4, NULL, secrets);
}

static struct tool_result *ask(uint64_t ticket, const char *tenant, const char *environment, const char *ref,
                               const char *script)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){"bash", "-c", script, NULL});
    struct secret_ref secret = {STR("TOKEN"), str_from(ref)};
    r.request.tenant = str_from(tenant);
    r.request.environment = str_from(environment);
    r.request.secrets = &secret;
    r.request.secret_count = 1;
    return kit_run(&r);
}

// Gives the value away in a form that no mask knows: character by character, backwards.
static const char tell[] = "rev <<<\"$TOKEN\"";

static void check_value(uint64_t ticket, const char *tenant, const char *environment, const char *ref,
                        const char *backwards)
{
    CHECK_STR(ask(ticket, tenant, environment, ref, tell)->output, str_from(backwards));
    CHECK_STR(ask(ticket + 100, tenant, environment, ref, "echo \"<$TOKEN>\"")->output, STR("<***>"));
}

static void check_refused(uint64_t ticket, const char *tenant, const char *environment, const char *ref,
                          const char *why)
{
    struct tool_result *result = ask(ticket, tenant, environment, ref, "echo started >&2");
    kit_check_fault(result, "SECRET_NOT_FOUND", false);
    CHECK_STR(result->fault.detail, STR(""));
    char want[400];
    snprintf(want, sizeof(want), "secret TOKEN: %s %s", ref, why);
    CHECK_STR(result->fault.message, str_from(want));
}

static void write_secret(const char *name, const char *value, mode_t mode)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
    for (char *at = path + strlen(test_dir()); (at = strchr(at + 1, '/'));) {
        *at = '\0';
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    test_write_file(path, str_from(value));
    CHECK(chmod(path, mode) == 0);
}

static const char nobody[] = "has no provider for this tenant and environment";

static void secret_of_one_environment_is_not_resolved_in_another_RE_5b(void)
{
    char config[2000];
    setenv("PROD_DB", "env-value-prod", 1);
    setenv("CREDENTIALS_DIRECTORY", test_dir(), 1);
    write_secret("db", "systemd-value\n", 0400);
    write_secret("dir/acme/prod/db", "file-value-prod\n", 0600);
    write_secret("dir/acme/dev/db", "file-value-dev\n", 0600);
    write_secret("table.json", "{\"acme\":{\"prod\":{\"db\":\"table-value-prod\"}}}", 0600);
    snprintf(config, sizeof(config),
             "{\"providers\":[{\"name\":\"e\",\"type\":\"env\",\"tenant\":\"acme\",\"environment\":\"prod\",\"prefix\":"
             "\"PROD_\"},{\"name\":\"s\",\"type\":\"systemd\",\"tenant\":\"acme\",\"environment\":\"prod\"},"
             "{\"name\":\"f\",\"type\":\"file\",\"path\":\"%s/dir\"},{\"name\":\"t\",\"type\":\"file\",\"path\":"
             "\"%s/table.json\"},{\"name\":\"x\",\"type\":\"exec\",\"argv\":[\"/bin/sh\",\"-c\",\"[ "
             "$CAIRN_SECRET_ENVIRONMENT = prod ] && echo "
             "$CAIRN_SECRET_TENANT-$CAIRN_SECRET_NAME-$CAIRN_SECRET_VERSION\"]}]}",
             test_dir(), test_dir());
    open_with(config);
    check_value(1, "acme", "prod", "secret://e/DB", "dorp-eulav-vne");
    check_value(2, "acme", "prod", "secret://s/db", "eulav-dmetsys");
    check_value(3, "acme", "prod", "secret://f/db", "dorp-eulav-elif");
    check_value(4, "acme", "dev", "secret://f/db", "ved-eulav-elif");
    check_value(5, "acme", "prod", "secret://t/db", "dorp-eulav-elbat");
    check_value(6, "acme", "prod", "secret://x/db@7", "7-bd-emca");
    check_refused(11, "acme", "dev", "secret://e/DB", nobody);
    check_refused(12, "other", "prod", "secret://e/DB", nobody);
    check_refused(13, "acme", "dev", "secret://s/db", nobody);
    check_refused(14, "acme", "staging", "secret://f/db", "does not exist");
    check_refused(15, "other", "prod", "secret://f/db", "does not exist");
    check_refused(16, "acme", "dev", "secret://t/db", "does not exist");
    check_refused(17, "acme", "dev", "secret://x/db", "cannot be read: the provider's command failed");
    kit_close();
}

static void a_name_cannot_leave_its_place_S3(void)
{
    static const char *const refs[] = {
        "secret://f/../prod/db", "secret://f/..%2fprod/db", "secret://f/.hidden", "secret://f/",   "secret://f",
        "secret:///db",          "secret://f/db@",          "secret://f/a/../b",  "secret://../db"};
    char config[600];
    write_secret("dir/acme/prod/db", "prod-value", 0600);
    snprintf(config, sizeof(config), "{\"providers\":[{\"name\":\"f\",\"type\":\"file\",\"path\":\"%s/dir\"}]}",
             test_dir());
    open_with(config);
    for (uint64_t i = 0; i < ARRAY_COUNT(refs); i++)
        check_refused(1 + i, "acme", "dev", refs[i], "is not secret://PROVIDER/NAME");
    check_refused(20, "acme", "../acme/prod", "secret://f/db",
                  "belongs to a tenant or environment whose id cannot be looked up");
    check_refused(21, "", "", "secret://f/db", "belongs to a tenant or environment whose id cannot be looked up");
    // What belongs to the engine cannot be named at all.
    setenv("ENGINE_KEY", "engine-key", 1);
    check_refused(22, "acme", "prod", "env:ENGINE_KEY", "is not allowed here: only secret://PROVIDER/NAME is");
    check_refused(23, "acme", "prod", "file:/etc/passwd", "is not allowed here: only secret://PROVIDER/NAME is");
    kit_close();
    kit_open(2);
    check_refused(24, "acme", "prod", "secret://f/db", nobody);
    kit_close();
}

static void files_of_secrets_are_private_S1(void)
{
    char config[600], path[400], link[400];
    write_secret("dir/a/b/open", "value-1", 0644);
    write_secret("dir/a/b/group", "value-2", 0640);
    write_secret("dir/a/b/real", "value-3", 0600);
    snprintf(path, sizeof(path), "%s/dir/a/b/real", test_dir());
    snprintf(link, sizeof(link), "%s/dir/a/b/link", test_dir());
    CHECK(symlink(path, link) == 0);
    snprintf(config, sizeof(config), "{\"providers\":[{\"name\":\"f\",\"type\":\"file\",\"path\":\"%s/dir\"}]}",
             test_dir());
    open_with(config);
    static const char shared[] = "can be read by others: its file must have mode 0600 or 0400";
    check_refused(1, "a", "b", "secret://f/open", shared);
    check_refused(2, "a", "b", "secret://f/group", shared);
    check_refused(3, "a", "b", "secret://f/link", "cannot be opened");
    check_value(4, "a", "b", "secret://f/real", "3-eulav");
    kit_close();
}

static void a_command_is_bounded_and_sees_nothing_of_ours_S1(void)
{
    char config[1500];
    setenv("ENGINE_KEY", "engine-key", 1);
    snprintf(
        config, sizeof(config),
        "{\"providers\":[{\"name\":\"slow\",\"type\":\"exec\",\"timeoutMs\":50,\"argv\":[\"/bin/sh\",\"-c\",\"sleep "
        "88000041 & sleep 88000041\"]},{\"name\":\"no\",\"type\":\"exec\",\"argv\":[\"/no/such\"]},"
        "{\"name\":\"big\",\"type\":\"exec\",\"argv\":[\"/usr/bin/head\",\"-c\",\"70000\",\"/dev/zero\"]},"
        "{\"name\":\"env\",\"type\":\"exec\",\"argv\":[\"/bin/sh\",\"-c\",\"env | cut -d= -f1 | sort | paste -sd "
        "-; ls /proc/self/fd | wc -l\"]}]}");
    open_with(config);
    check_refused(1, "a", "b", "secret://slow/x", "cannot be read: the provider's command took too long");
    CHECK_INT(kit_count("88000041"), 0);
    CHECK(waitpid(-1, NULL, WNOHANG) <= 0); // not even a zombie
    check_refused(2, "a", "b", "secret://no/x", "cannot be read: the provider's command cannot be started");
    check_refused(3, "a", "b", "secret://big/x", "is larger than 64 KiB");
    struct tool_result *result = ask(4, "a", "b", "secret://env/x", "tac <<<\"$TOKEN\" | rev");
    CHECK_STR(result->output, STR("4\nDWP-HTAP-GNAL-NOISREV_TERCES_NRIAC-TNANET_TERCES_NRIAC-EMAN_TERCES_NRIAC-"
                                  "TNEMNORIVNE_TERCES_NRIAC"));
    kit_close();
}

static void start_with_secret(uint64_t ticket, const char *tenant, const char *script)
{
    struct kit_request r = kit_request(ticket, (const char *const[]){"bash", "-c", script, NULL});
    struct secret_ref secret = {STR("TOKEN"), STR("secret://waits/x")};
    r.request.tenant = str_from(tenant);
    r.request.environment = STR("prod");
    r.request.secrets = &secret;
    r.request.secret_count = 1;
    kit_start(&r);
}

// A provider whose command waits for the file `go`.
static void open_waiting(void)
{
    char config[1000];
    snprintf(config, sizeof(config),
             "{\"providers\":[{\"name\":\"waits\",\"type\":\"exec\",\"timeoutMs\":60000,\"argv\":[\"/bin/sh\",\"-c\","
             "\"echo >>%s/asked; until [ -e %s/go ]; do sleep 0.01; done; echo a-value\"]}]}", test_dir(), test_dir());
    open_with(config);
}

static void await_asked(void)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/asked", test_dir());
    while (access(path, F_OK) != 0) sched_yield();
}

static void a_slow_provider_keeps_nobody_else_waiting_X6(void)
{
    char go[400];
    snprintf(go, sizeof(go), "touch %s/go", test_dir());
    open_waiting();
    start_with_secret(1, "slow", tell);
    start_with_secret(2, "slow", tell);
    await_asked();
    CHECK(kit_sh(3, go)->ok);
    CHECK_STR(kit_wait(1)->output, STR("eulav-a"));
    CHECK_STR(kit_wait(2)->output, STR("eulav-a"));
    kit_close();
}

static void a_step_is_cancelled_while_its_provider_is_asked_X8(void)
{
    char go[400];
    snprintf(go, sizeof(go), "touch %s/go", test_dir());
    open_waiting();
    start_with_secret(1, "slow", "echo started; touch here");
    await_asked();
    kit.tools->ops->cancel(kit.tools, 1, 100);
    kit.tools->ops->cancel(kit.tools, 1, 0);
    CHECK(kit_sh(2, go)->ok);
    kit_check_fault(kit_wait(1), "CANCELLED", false);
    CHECK_STR(kit_wait(1)->output, STR(""));
    CHECK_INT(kit.delivered[1], 1);
    kit_close();
}

static void tools_close_while_a_provider_is_asked_X8(void)
{
    char path[400];
    snprintf(path, sizeof(path), "%s/go", test_dir());
    open_waiting();
    start_with_secret(1, "slow", tell);
    start_with_secret(2, "slow", tell);
    await_asked();
    test_write_file(path, STR(""));
    kit_close();
    CHECK(kit.delivered[2] <= 1);
}

static void a_wrong_configuration_is_refused(void)
{
    static const char *const wrong[] = {
        "[]",
        "{\"provider\":[]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"vault\"}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"env\"}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"env\",\"tenant\":\"t\"}]}",
        "{\"providers\":[{\"name\":\"a/b\",\"type\":\"file\",\"path\":\"/x\"}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"file\",\"path\":\"x\"}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/x\",\"argv\":[\"/x\"]}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"exec\",\"argv\":[]}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"exec\",\"argv\":[\"pass\"]}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"exec\",\"argv\":[\"/x\"],\"timeoutMs\":-1}]}",
        "{\"providers\":[{\"name\":\"a\",\"type\":\"file\",\"path\":\"/"
        "x\"},{\"name\":\"a\",\"type\":\"file\",\"path\":\"/"
        "y\"}]}"};
    struct tool_secrets *secrets;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        struct error err = {0};
        CHECK_INT(parse(wrong[i], &secrets, &err), E_INVALID);
        CHECK(err.message[0]);
    }
    struct error err = {0};
    CHECK_OK(parse("{}", &secrets, &err), &err);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(secret_of_one_environment_is_not_resolved_in_another_RE_5b),
        TEST(a_name_cannot_leave_its_place_S3),
        TEST(files_of_secrets_are_private_S1),
        TEST(a_command_is_bounded_and_sees_nothing_of_ours_S1),
        TEST(a_slow_provider_keeps_nobody_else_waiting_X6),
        TEST(a_step_is_cancelled_while_its_provider_is_asked_X8),
        TEST(tools_close_while_a_provider_is_asked_X8),
        TEST(a_wrong_configuration_is_refused),
    };
    return kit_main("tool_provider", tests, ARRAY_COUNT(tests), argc, argv);
}
