// [serve] of the config files: [profile.NAME.serve] over [serve], the project's file over the user's over the system's, and
// the file that --settings names over all of them; a member that stands in several is taken whole from the strongest.
#ifndef CAIRN_CLI_SERVE_CONFIG_H
#define CAIRN_CLI_SERVE_CONFIG_H

#include "cli/config.h"
#include "service/service.h"

struct serve_fault {
    const char *text, *hint; // "FILE:LINE:COL: ..."; hint may be NULL
};

struct serve_config {
    struct json table;       // what is in force, as it stands in the files
    const char *origins[64]; // of its members, "FILE:LINE"
    struct service_settings settings;
    struct serve_fault faults[16];
    size_t fault_count;
};

// What it points to lives as long as the command. False: memory ran out. Nothing is printed.
bool serve_config_read(struct cli *cli, struct serve_config *out) MUST_CHECK;
// Reports the faults; EXIT_OK when there are none.
int serve_config_report(struct cli *cli, const struct serve_config *config);

#endif
