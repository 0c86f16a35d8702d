/* Preloaded into a broker by a test: every fsync fails with EIO once the file named by FSYNC_FAILS_WHEN exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int is_broken(void) {
    const char *trigger = getenv("FSYNC_FAILS_WHEN");
    return trigger != NULL && access(trigger, F_OK) == 0;
}

#define SHIM(name)                                                     \
    int name(int fd) {                                                 \
        static int (*real)(int);                                       \
        if (real == NULL) real = (int (*)(int))dlsym(RTLD_NEXT, #name); \
        if (is_broken()) {                                             \
            errno = EIO;                                               \
            return -1;                                                 \
        }                                                              \
        return real(fd);                                               \
    }

SHIM(fsync)
SHIM(fdatasync)
SHIM(syncfs)
