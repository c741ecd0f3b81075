// Files of the time zone database.
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>

enum { ZONE_FILE_MAX = 1 << 20, ZONE_PATH_MAX = 512 };

enum code os_zoneinfo(const char *name, struct arena *arena, struct str *out, struct error *err)
{
    static const char *const usual[] = {"/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/etc/zoneinfo"};
    const char *own = getenv("TZDIR");
    char path[ZONE_PATH_MAX];
    for (size_t i = 0; i < ARRAY_COUNT(usual) + 1; i++) {
        const char *directory = i == 0 ? own : usual[i - 1];
        struct error one = {0};
        if (!directory || !directory[0]) continue;
        snprintf(path, sizeof(path), "%s/%s", directory, name);
        if (os_is_dir(path)) continue;
        enum code rc = os_read_file(path, ZONE_FILE_MAX, arena, out, &one);
        if (rc == OK) return OK;
        if (rc != E_NOT_FOUND) return error_set(err, rc, "%s", one.message);
    }
    return error_set(err, E_NOT_FOUND,
                     "there is no time zone %s in the database of this machine (package tzdata, /usr/share/zoneinfo)", name);
}
