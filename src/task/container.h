// Private to task/: containers. container.c the kind; container_oci.c the bundle of runc and its like; container_settings.c the setting.
#ifndef CAIRN_TASK_CONTAINER_H
#define CAIRN_TASK_CONTAINER_H

#include "task/kind.h"

enum { CONTAINER_FILES_MAX = 64, CONTAINER_ENV_MAX = 256, CONTAINER_ARGS_MAX = 256 };
#define CONTAINER_FILES_AT "/workspace" // where its files are, inside

struct container_file {
    struct str name, text; // a plain name
};

// What is to run, in the words of no runtime.
struct container_task {
    const struct container_settings *settings;
    struct str image, id;
    const struct str *argv; // empty: what the image says (style cli)
    size_t argc;
    const struct tool_env *env;
    size_t env_count;
    const struct container_file *files;
    size_t file_count;
    struct str cwd;                     // empty: as the image says, or "/"
    uint64_t memory;                    // bytes
    int64_t cpus_thousandths, processes;
    char dir[64]; // private: files, environment, config.json; gone when it has ended
};

// DIR/config.json for one of the images. False: the outcome is set.
bool container_write_bundle(struct task_call *call, const struct container_task *container);

#endif
