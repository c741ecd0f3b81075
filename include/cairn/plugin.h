// A plugin is a shared object with one function, cairn_plugin_init, that registers kinds of steps. It needs no libcairn to
// link with: everything comes through `host`, so the same file serves `cairn run --plugin` and every embedding program.
//
//   cc -shared -fPIC -o charge.so charge.c $(pkg-config --cflags cairn)
#ifndef CAIRN_PLUGIN_H
#define CAIRN_PLUGIN_H

#include <cairn/cairn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_PLUGIN_ABI 1

// Lives as long as the engine; functions may be called from any thread. Members are only ever added at the end.
struct cairn_host {
    size_t size;
    uint32_t abi; // CAIRN_PLUGIN_ABI of the host
    uint32_t reserved;
    const char *version; // of Cairn
    void *engine;        // the host's own
    enum cairn_code (*add)(const struct cairn_host *host, const struct cairn_kind *kind, struct cairn_error *error);
    enum cairn_code (*complete)(const struct cairn_host *host, uint64_t token, const struct cairn_result *result,
                                struct cairn_error *error);
    int (*cancelled)(const struct cairn_host *host, uint64_t token);
    void (*log)(const struct cairn_host *host, uint64_t token, const char *line);
};

// 0: loaded. Anything else, or a host->abi that it does not know: refused, and the plugin must have registered nothing.
// Called once per engine that loads the plugin.
CAIRN_API int cairn_plugin_init(const struct cairn_host *host);

#ifdef __cplusplus
}
#endif

#endif
