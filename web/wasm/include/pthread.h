// Types of threads, which headers of the effect tier name. wasi-libc has them; nothing here could be called.
#include <sys/types.h>
