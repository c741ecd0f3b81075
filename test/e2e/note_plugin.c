// A plugin for the crash test: its functions leave a line in the file $NOTES for every call.
#define _POSIX_C_SOURCE 200809L
#include <cairn/plugin.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum cairn_answer note(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    char line[256];
    (void)context;
    int len = snprintf(line, sizeof(line), "%s %u.%u\n", attempt->step, attempt->logical, attempt->engine);
    int fd = open(getenv("NOTES"), O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (fd < 0 || write(fd, line, (size_t)len) != len) {
        result->code = "NO_NOTE";
        return CAIRN_FAIL;
    }
    close(fd);
    result->output = result->memory = strdup(attempt->input);
    result->release = free;
    return CAIRN_DONE;
}

int cairn_plugin_init(const struct cairn_host *host)
{
    struct cairn_kind kind = {.size = sizeof(kind), .name = "note", .run = note};
    return host->abi != CAIRN_PLUGIN_ABI || host->add(host, &kind, NULL) != CAIRN_OK;
}
