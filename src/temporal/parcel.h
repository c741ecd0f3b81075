// What travels with a task and with its result besides the task and the result: files of the run's artifacts directory, and what the step
// wrote.
//
// Files are {"path":..,"sha256":..,"bytes":..[,"executable":true][,"content":BASE64]}; without content they are values
// (temporal/value.h). A worker lays out what came with the task before the step begins, and sends back what is new or different
// when it has ended. Links, devices and names that are not UTF-8 stay where they are.
//
// Any thread. Both ways wait for the disk and for the server.
#ifndef CAIRN_TEMPORAL_PARCEL_H
#define CAIRN_TEMPORAL_PARCEL_H

#include "temporal/value.h"

enum { PARCEL_FILE_MAX = 64 << 20, PARCEL_MAX = 256 << 20, PARCEL_FILES_MAX = 10000 };

bool parcel_is_empty(const char *dir); // there are no files
// The files beneath `dir`, but for those of `known` (such an array, or NULL) that are as they were: appends an array. *count: of them.
// E_LIMIT: one is larger than PARCEL_FILE_MAX, or all together than PARCEL_MAX, or there are too many.
enum code parcel_pack(struct temporal *temporal, struct str workflow, const char *dir, const struct json *known,
                      struct buf *out, size_t *count, struct error *err) MUST_CHECK;
// Writes the files of such an array beneath `dir`, which is made. E_INVALID: it is none; E_FULL, E_IO; as temporal_value_get.
enum code parcel_unpack(struct temporal *temporal, struct str workflow, const struct json *files, const char *dir,
                        struct error *err) MUST_CHECK;

// {"stdout":..,"stderr":..}: appended. And back, into the file of an attempt's log, which is made and ended; `how` is its end.
void parcel_log_write(struct buf *out, struct str stdout_text, struct str stderr_text);
void parcel_log_keep(const struct json *log, struct str path, size_t max, struct str how);

#endif
