// Providers: capabilities of a plan against them, and references to runs of them.
#include "harness/test.h"

#include "contract/profile.h"
#include "schema/schema.h"

#include <stdio.h>

static struct arena memory;

static struct program *plan(const char *metadata)
{
    char text[1024];
    snprintf(text, sizeof(text),
             "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1.0\",\"schemaVersion\":\"v1.2\"%s},\"steps\":[{"
             "\"stepId\":\"a\",\"kind\":\"noop\"}]}",
             metadata);
    struct diagnostics diagnostics;
    struct error err = {0};
    struct program *program = NULL;
    diagnostics_init(&diagnostics, &memory);
    CHECK_OK(program_load(arena_copy(&memory, str_from(text)), STR("plan"), NULL, &diagnostics, &program, &err), &err);
    return program;
}

// The report of a plan; what it says must fit its schema.
static struct capability_report report(const char *metadata, const char *adapter)
{
    struct program *program = plan(metadata);
    struct capability_report out;
    struct schema_set *set;
    const struct schema *schema;
    struct error err = {0};
    struct schema_fault fault = {0};
    CHECK(capability_validate(program, str_from(adapter), NULL, 1760000000000, &memory, &out));
    CHECK_OK(schema_set_embedded(&memory, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("validation-report.json"), &schema, &err), &err);
    if (!schema_valid(schema, &out.json, &fault)) test_fail(__FILE__, __LINE__, "%s %s", fault.pointer, fault.message);
    struct str kept = arena_copy(&memory, json_text(json_key(&out.json, "planId")));
    CHECK_STR(kept, STR("p"));
    CHECK(json_copy(&memory, &out.json, &out.json) && json_copy(&memory, &out.warnings, &out.warnings));
    program_release(program);
    return out;
}

static void status_is(const struct capability_report *r, const char *status)
{
    CHECK_STR(json_text(json_key(&r->json, "status")), str_from(status));
}

#define NEEDS(names) ",\"requiresCapabilities\":[" names "]"
#define PAUSE_NATIVE "\"signal.pause.native\""
#define REPLAY "\"replay.full\""

static void matrix_of_capabilities_WE_4f(void)
{
    static const struct {
        const char *value;
        bool temporal, conductor;
    } rows[] = {
        {"signal.pause.native", true, false},
        {"signal.pause.emulated", false, true},
        {"cancel.cooperative", true, false},
        {"cancel.forced", false, true},
        {"workflow.child.workflows", true, false},
        {"workflow.fan.dynamic", true, false},
        {"workflow.fan.parallel", true, true},
        {"query.workflow.state", true, false},
        {"query.task.state", false, true},
        {"replay.full", true, false},
        {"replay.task", false, true},
        {"workflow.continue.as.new", true, false},
        {"signals.rate.limit", true, true},
        {"signals.concurrent", true, false},
        {"history.rotation", false, false},
        {"basic-execution", true, true},
    };
    CHECK_INT(ARRAY_COUNT(rows), CAPABILITY_LAST);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        enum capability capability = capability_parse(str_from(rows[i].value));
        CHECK(capability);
        CHECK_TEXT(capability_value(capability), rows[i].value);
        CHECK((capability_support(capability, PROVIDER_TEMPORAL) == SUPPORT_N) == rows[i].temporal);
        CHECK((capability_support(capability, PROVIDER_CONDUCTOR) == SUPPORT_N) == rows[i].conductor);
        CHECK_INT(capability_support(capability, PROVIDER_CAIRN), SUPPORT_N);
        CHECK_INT(capability_support(capability, PROVIDER_MOCK), SUPPORT_N);
    }
}

static void supported_plan_is_valid_WE_4a_WE_4b(void)
{
    struct capability_report r = report(NEEDS(PAUSE_NATIVE "," REPLAY), "temporal");
    status_is(&r, "VALID");
    CHECK(!r.refused && !r.degraded && r.provider == PROVIDER_TEMPORAL && !r.code);
    CHECK_INT(json_key(&r.json, "capabilityChecks")->count, 2);
    CHECK_STR(json_text(json_at(&r.json, STR("targetAdapter"))), STR("temporal"));
}

static void reject_is_the_default_and_refuses_WE_4d_C_20(void)
{
    static const char *const plans[] = {NEEDS(PAUSE_NATIVE), NEEDS(PAUSE_NATIVE) ",\"fallbackBehavior\":\"reject\""};
    for (size_t i = 0; i < ARRAY_COUNT(plans); i++) {
        struct capability_report r = report(plans[i], "conductor");
        status_is(&r, "ERRORS");
        CHECK(r.refused && !r.degraded);
        CHECK_TEXT(r.code, "CAPABILITY_NOT_SUPPORTED");
        CHECK_STR(json_text(json_at(&r.json, STR("remediation.suggestedFallbackBehavior"))), STR("emulate"));
    }
}

static void emulation_that_is_registered_is_a_warning_others_are_errors_C_20_WE_4e(void)
{
    struct capability_report r = report(NEEDS(PAUSE_NATIVE) ",\"fallbackBehavior\":\"emulate\"", "conductor");
    status_is(&r, "WARNINGS");
    CHECK(!r.refused && r.degraded);
    CHECK_STR(json_text(json_key(&r.warnings.items[0], "code")), STR("CAPABILITY_EMULATED"));
    r = report(NEEDS(REPLAY) ",\"fallbackBehavior\":\"emulate\"", "conductor");
    status_is(&r, "ERRORS");
    CHECK_TEXT(r.code, "CAPABILITY_NOT_SUPPORTED");
}

static void degrading_is_a_warning_C_20_WE_4e(void)
{
    struct capability_report r = report(NEEDS(REPLAY) ",\"fallbackBehavior\":\"degrade\"", "conductor");
    status_is(&r, "WARNINGS");
    CHECK(r.degraded);
    CHECK_STR(json_text(json_key(&r.warnings.items[0], "code")), STR("CAPABILITY_DEGRADED"));
}

static void adapter_is_settled_before_the_start_and_auto_is_none_WE_2_1g(void)
{
    static const struct {
        const char *metadata, *adapter;
        enum provider provider;
        const char *code;
    } cases[] = {
        {"", "", PROVIDER_CAIRN, NULL},
        {",\"targetAdapter\":\"any\"", "", PROVIDER_CAIRN, NULL},
        {",\"targetAdapter\":\"any\"", "conductor", PROVIDER_CONDUCTOR, NULL},
        {",\"targetAdapter\":\"temporal\"", "", PROVIDER_TEMPORAL, NULL},
        {",\"targetAdapter\":\"temporal\"", "any", PROVIDER_TEMPORAL, NULL},
        {",\"targetAdapter\":\"temporal\"", "temporal", PROVIDER_TEMPORAL, NULL},
        {",\"targetAdapter\":\"temporal\"", "conductor", PROVIDER_CONDUCTOR, "TARGET_ADAPTER_MISMATCH"},
        {",\"targetAdapter\":\"auto\"", "mock", PROVIDER_MOCK, NULL},
        {",\"targetAdapter\":\"auto\"", "", 0, "INVALID_TARGET_ADAPTER"},
        {"", "auto", 0, "INVALID_TARGET_ADAPTER"},
        {"", "airflow", 0, "INVALID_TARGET_ADAPTER"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct capability_report r = report(cases[i].metadata, cases[i].adapter);
        CHECK_INT(r.provider, cases[i].provider);
        CHECK(r.refused == (cases[i].code != NULL));
        if (cases[i].code) CHECK_TEXT(r.code, cases[i].code);
    }
}

// ---- references

static struct json value_of(const char *text)
{
    struct json value;
    struct error err = {0};
    CHECK_OK(json_parse(str_from(text), &json_limits_default, &memory, &value, &err), &err);
    return value;
}

static bool fits_schema(const struct json *value)
{
    struct schema_set *set;
    const struct schema *schema;
    struct error err = {0};
    CHECK_OK(schema_set_embedded(&memory, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("engine-run-ref.json"), &schema, &err), &err);
    return schema_valid(schema, value, NULL);
}

static void references_of_all_providers_WE_2_1_1a_WE_2_1_1b_WE_2_1_1f_C_07(void)
{
    static const char *const good[] = {
        "{\"namespace\":\"prod\",\"provider\":\"temporal\",\"runId\":\"r-1\",\"taskQueue\":\"tq\",\"workflowId\":"
        "\"w\"}",
        "{\"namespace\":\"prod\",\"provider\":\"temporal\",\"runId\":\"r-1\",\"workflowId\":\"w\"}",
        "{\"conductorUrl\":\"https://c.example/"
        "api\",\"provider\":\"conductor\",\"runId\":\"r-1\",\"workflowId\":\"w\"}",
        "{\"provider\":\"cairn\",\"runId\":\"r-1\",\"store\":\"local\",\"workflowId\":\"w\"}",
        "{\"provider\":\"mock\",\"runId\":\"r-1\",\"workflowId\":\"w\"}",
    };
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        struct json value = value_of(good[i]), back;
        struct run_ref ref;
        struct error err = {0};
        struct buf text;
        CHECK(fits_schema(&value));
        CHECK_OK(run_ref_read(&value, &ref, &err), &err);
        CHECK(run_ref_write(&ref, &memory, &back));
        buf_init(&text, 4096);
        json_canon(&text, &back);
        CHECK_STR(buf_str(&text), str_from(good[i]));
        buf_release(&text);
    }
}

static void incomplete_references_are_refused_WE_2_1_1c_WE_2_1_1d_WE_2_1_1e(void)
{
    static const char *const bad[] = {
        "{\"provider\":\"temporal\",\"runId\":\"r\",\"workflowId\":\"w\"}",
        "{\"provider\":\"conductor\",\"runId\":\"r\",\"workflowId\":\"w\"}",
        "{\"provider\":\"temporal\",\"namespace\":\"n\",\"workflowId\":\"w\"}",
        "{\"provider\":\"cairn\",\"runId\":\"r\"}",
        "{\"provider\":\"airflow\",\"runId\":\"r\",\"workflowId\":\"w\"}",
        "{\"runId\":\"r\",\"workflowId\":\"w\"}",
        "{\"provider\":\"mock\",\"runId\":\"r\",\"workflowId\":\"w\",\"conductorUrl\":\"http://x\"}",
        "{\"provider\":\"mock\",\"runId\":\"r\",\"workflowId\":\"w\",\"colour\":\"blue\"}",
        "{\"provider\":\"mock\",\"runId\":\"../r\",\"workflowId\":\"w\"}",
        "{\"provider\":\"mock\",\"runId\":1,\"workflowId\":\"w\"}",
        "[]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct json value = value_of(bad[i]);
        struct run_ref ref;
        struct error err = {0};
        CHECK_INT(run_ref_read(&value, &ref, &err), E_INVALID);
        CHECK(str_starts(str_from(err.message), STR("ADAPTER_INVALID_RUN_REF")));
        CHECK(!fits_schema(&value));
    }
}

static void references_in_one_line_C_26(void)
{
    static const char *const texts[] = {"temporal://prod/plan/w/r-1", "conductor://c.example/plan/w/r-1",
                                        "cairn://local/plan/w/r-1", "mock:///plan/w/r-1"};
    static const char *const bad[] = {"",
                                      "temporal",
                                      "temporal://prod/plan/w",
                                      "temporal:///plan/w/r",
                                      "airflow://a/b/c/d",
                                      "cairn://local/plan/w/r/more",
                                      "cairn:local/plan/w/r"};
    struct run_ref ref;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct error err = {0};
        CHECK_OK(run_ref_parse(str_from(texts[i]), &ref, &err), &err);
        CHECK_STR(ref.run_id, STR("r-1"));
        CHECK_STR(run_ref_format(&ref, STR("plan"), &memory), str_from(texts[i]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct error err = {0};
        CHECK_INT(run_ref_parse(str_from(bad[i]), &ref, &err), E_INVALID);
    }
    struct run_ids ids = {.plan_id = STR("p"), .run = STR("r-1")};
    struct error err = {0};
    CHECK_OK(run_ref_parse(contract_run_ref(&ids, &(struct start_facts){0}, &memory), &ref, &err), &err); // the one in RunStarted
    CHECK_INT(ref.provider, PROVIDER_CAIRN);
}

static void reference_names_the_run_that_it_is_of_and_no_other_WE_2_1_1a_WE_2_1_1b(void)
{
    struct run_ids ids = {.tenant = STR("acme"), .plan_id = STR("p"), .run = STR("r-1")};
    const struct {
        struct start_facts start;
        const char *text, *wrong;
    } runs[] = {
        {{.profile = STR("temporal")}, "temporal://acme/p/r-1/r-1", "temporal://default/p/r-1/r-1"},
        {{.profile = STR("temporal"), .engine_place = STR("n")}, "temporal://n/p/r-1/r-1", "temporal://acme/p/r-1/r-1"},
        {{.profile = STR("conductor"), .engine_place = STR("https://c.example/api")},
         "conductor://c.example/p/r-1/r-1", "conductor://d.example/p/r-1/r-1"},
        {{.profile = STR("mock")}, "mock:///p/r-1/r-1", "temporal://acme/p/r-1/r-1"},
        {{.profile = STR("")}, "cairn://local/p/r-1/r-1", "cairn://elsewhere/p/r-1/r-1"},
        // A log of before said cairn of every profile, and goes on so.
        {{.profile = STR("temporal"), .engine_type = STR("cairn")}, "cairn://local/p/r-1/r-1", "temporal://acme/p/r-1/r-1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(runs); i++) {
        struct run_ref own = run_ref_of(&ids, &runs[i].start), given;
        struct error err = {0};
        CHECK_STR(contract_run_ref(&ids, &runs[i].start, &memory), str_from(runs[i].text));
        CHECK_OK(run_ref_parse(str_from(runs[i].text), &given, &err), &err);
        CHECK(run_ref_names(&given, &own));
        CHECK(run_ref_names(&own, &own));
        CHECK_OK(run_ref_parse(str_from(runs[i].wrong), &given, &err), &err);
        CHECK(!run_ref_names(&given, &own));
    }
    CHECK(run_ref_is(STR("{}")) && run_ref_is(STR("mock://x")) && !run_ref_is(STR("r:1")) && !run_ref_is(STR("@last")));
}

static void strict_mode_has_the_providers_of_the_contract_alone_C_07(void)
{
    const struct adapters strict = {.strict = true}, conductor = {.strict = true, .usual = PROVIDER_CONDUCTOR};
    CHECK_INT(adapters_usual(NULL), PROVIDER_CAIRN);
    CHECK_INT(adapters_usual(&strict), PROVIDER_TEMPORAL);
    CHECK_INT(adapters_usual(&conductor), PROVIDER_CONDUCTOR);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(matrix_of_capabilities_WE_4f),
        TEST(supported_plan_is_valid_WE_4a_WE_4b),
        TEST(reject_is_the_default_and_refuses_WE_4d_C_20),
        TEST(emulation_that_is_registered_is_a_warning_others_are_errors_C_20_WE_4e),
        TEST(degrading_is_a_warning_C_20_WE_4e),
        TEST(adapter_is_settled_before_the_start_and_auto_is_none_WE_2_1g),
        TEST(references_of_all_providers_WE_2_1_1a_WE_2_1_1b_WE_2_1_1f_C_07),
        TEST(incomplete_references_are_refused_WE_2_1_1c_WE_2_1_1d_WE_2_1_1e),
        TEST(references_in_one_line_C_26),
        TEST(reference_names_the_run_that_it_is_of_and_no_other_WE_2_1_1a_WE_2_1_1b),
        TEST(strict_mode_has_the_providers_of_the_contract_alone_C_07),
    };
    arena_init(&memory, 4096, (size_t)64 << 20);
    int code = test_main("contract_profile", tests, ARRAY_COUNT(tests), argc, argv);
    arena_release(&memory);
    return code;
}
