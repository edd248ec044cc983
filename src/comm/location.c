#include "comm/location.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_SIZE 64

/* The start time of a process, in ticks since boot; 0 if it has ended or is a zombie. */
static uint64_t process_began(int64_t process)
{
    char path[PATH_SIZE], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return 0;
    text[length] = 0;
    const char *end = strrchr(text, ')'); /* the name before may hold anything */
    char state;
    uint64_t began;
    if (!end || sscanf(end + 1,
                       " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                       &state, &began) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : began;
}

bool tr_location_runs(const struct tr_location *location)
{
    return location->began == 0 || process_began(location->process) == location->began;
}

int tr_location_watch(const struct tr_location *location)
{
    if (location->process <= 0 || location->process > INT32_MAX) return -1;
    return (int)syscall(SYS_pidfd_open, (pid_t)location->process, 0);
}

/* Process ids mean the same for processes on the same kernel in the same name space. */
static void name_machine(char *out, size_t size)
{
    char boot[48] = "", space[48] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, boot, sizeof boot - 1) : -1;
    if (file >= 0) close(file);
    ssize_t more = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    if (length <= 0 || more <= 0) {
        snprintf(out, size, "unknown, process %ld", (long)getpid()); /* shares memory with no other */
        return;
    }
    boot[strcspn(boot, "\n")] = 0;
    snprintf(out, size, "%s %s", boot, space);
}

void tr_location_here(struct tr_location *location)
{
    *location = (struct tr_location){.process = getpid(), .began = process_began(getpid())};
    if (gethostname(location->host, sizeof location->host - 1) != 0)
        snprintf(location->host, sizeof location->host, "unknown");
    name_machine(location->machine, sizeof location->machine);
}
