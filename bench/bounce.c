// For bench/service.py: a function that returns its input, so that what is measured is everything else.
#include <cairn/plugin.h>

static enum cairn_answer bounce(void *context, const struct cairn_attempt *attempt, struct cairn_result *result)
{
    (void)context;
    result->output = attempt->input;
    result->output_len = attempt->input_len;
    return CAIRN_DONE;
}

int cairn_plugin_init(const struct cairn_host *host)
{
    struct cairn_kind kind = {.size = sizeof(kind), .name = "bounce", .run = bounce};
    return host->abi != CAIRN_PLUGIN_ABI || host->add(host, &kind, 0) != CAIRN_OK;
}
