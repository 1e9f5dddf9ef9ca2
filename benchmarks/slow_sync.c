/* A disk that takes longer: each sync first waits SLOW_SYNC_MICROSECONDS. Preloaded by benchmarks/commits.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slow(const char *name, int file) {
    const char *wait = getenv("SLOW_SYNC_MICROSECONDS");
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (wait) usleep((useconds_t)atoi(wait));
    return real(file);
}

int fsync(int file) { return slow("fsync", file); }
int fdatasync(int file) { return slow("fdatasync", file); }
