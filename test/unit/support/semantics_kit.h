// Tests of Execution Semantics: a rig, a run with everything in it, schemas to hold records against. Header-only: each test
// program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_SEMANTICS_KIT_H
#define CAIRN_TEST_UNIT_SUPPORT_SEMANTICS_KIT_H

#include "unit/support/rig.h"
#include "unit/support/story.h"

#include "schema/schema.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig rig;

// One of everything, in an order that does not depend on speed.
UNUSED static const char everything[] = RIG_PLAN(RIG_SHELL(
    "a", "echo $CAIRN_STEP_ID; echo x > $ARTIFACTS_DIR/o",
    ",\"dependsOn\":[],\"artifacts\":[{\"path\":\"o\",\"kind\":\"k\"}]") ",{\"stepId\":\"b\",\"kind\":\"echo\","
                                                                         "\"with\":{\"message\":\"$a.output\"},"
                                                                         "\"dependsOn\":[\"a\"]}"
                                                                         ",{\"stepId\":\"c\",\"kind\":\"noop\","
                                                                         "\"when\":\"$a.output == "
                                                                         "'no'\",\"dependsOn\":[\"b\"]}"
                                                                         ",{\"stepId\":\"d\",\"kind\":\"wait\","
                                                                         "\"with\":{\"duration\":\"30ms\"},"
                                                                         "\"dependsOn\":[\"b\"]}"
                                                                         "," RIG_SHELL(
                                                                             "e", "exit 4",
                                                                             ",\"dependsOn\":[\"d\"],\"retry\":"
                                                                             "{\"maxAttempts\":2,\"delay\":"
                                                                             "\"1ms\"}") ",{\"stepId\":\"f\","
                                                                                         "\"kind\":\"noop\","
                                                                                         "\"dependsOn\":[\"e\"]"
                                                                                         "}"
                                                                                         ",{\"stepId\":\"g\","
                                                                                         "\"kind\":\"merge\","
                                                                                         "\"dependsOn\":[\"a\","
                                                                                         "\"f\"],"
                                                                                         "\"triggerRule\":"
                                                                                         "\"all_done\"}");

UNUSED static struct log finished_log(const char *kind)
{
    rig_open(&rig, kind);
    rig_start(&rig, everything, "r-1");
    rig_finish(&rig);
    return rig_log(&rig, "r-1");
}

UNUSED static bool fits(const char *uri, const struct json *value, struct schema_fault *fault)
{
    struct schema_set *set;
    const struct schema *schema;
    CHECK_OK(schema_set_embedded(&rig.arena, &set, &rig.err), &rig.err);
    CHECK_OK(schema_compile(set, str_from(uri), &schema, &rig.err), &rig.err);
    return schema_valid(schema, value, fault);
}

#endif
