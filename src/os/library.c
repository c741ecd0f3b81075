#include "os/library.h"

#include "os/os.h"

#include <dlfcn.h>

enum code os_library_load(struct os_library *library, struct error *err)
{
    LOCKED(&library->mutex);
    void *handle = library->loaded ? NULL : dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    const char *missing = library->loaded || handle ? NULL : library->file;
    for (size_t i = 0; handle && !missing && i < library->count; i++) {
        library->functions[i] = dlsym(handle, library->names[i]);
        if (!library->functions[i]) missing = library->names[i];
    }
    library->loaded = !missing;
    if (!missing) return OK;
    return error_set(err, E_UNSUPPORTED, "%s is not on this machine (%s); on Debian: apt-get install %s", library->what,
                     missing, library->package);
}
