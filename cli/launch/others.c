#include "cli/launch/others.h"

#include "base/alloc.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cli_other {
    int64_t id;
    int descriptor;
    bool heeds;
};

#define LARGEST (1 << 21) /* the most that Linux takes for a program's arguments and environment */

/* Whether the environment at the start of the process names this launcher. */
static bool is_ours(int64_t id, const char *token)
{
    char path[64], wanted[128];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)id);
    int length = snprintf(wanted, sizeof wanted, "TRIREME_LAUNCHED=%s", token);
    FILE *file = fopen(path, "re");
    char *text = file ? tr_alloc(LARGEST, 1) : NULL;
    size_t size = text ? fread(text, 1, LARGEST - 1, file) : 0;
    bool found = false;
    if (text) text[size] = '\0';
    for (const char *at = text; text && !found && at < text + size; at += strlen(at) + 1)
        found = strcmp(at, wanted) == 0;
    if (file) fclose(file);
    tr_free(text);
    return found && length < (int)sizeof wanted;
}

void cli_others_add(struct cli_others *others, int64_t id, const char *token)
{
    if (id <= 1 || id > INT_MAX) return;
    int descriptor = (int)syscall(SYS_pidfd_open, (pid_t)id, 0); /* the C library knows it since 2.36 */
    if (descriptor < 0) return;
    /* Read after the process is held: the answer comes from the held process, or there is none. */
    struct cli_other *more =
        is_ours(id, token) ? tr_realloc(others->item, (size_t)others->count + 1, sizeof *more) : NULL;
    if (!more) {
        close(descriptor);
        return;
    }
    others->item = more;
    more[others->count++] = (struct cli_other){.id = id, .descriptor = descriptor};
}

void cli_others_heeds(struct cli_others *others, int64_t id)
{
    for (int i = 0; i < others->count; i++)
        if (others->item[i].id == id) others->item[i].heeds = true;
}

void cli_others_signal(const struct cli_others *others, int number, bool deaf)
{
    for (int i = 0; i < others->count; i++)
        if (!deaf || !others->item[i].heeds)
            syscall(SYS_pidfd_send_signal, others->item[i].descriptor, number, NULL, 0);
}

int cli_others_live(const struct cli_others *others)
{
    int live = 0;
    for (int i = 0; i < others->count; i++) {
        struct pollfd polled = {.fd = others->item[i].descriptor, .events = POLLIN};
        if (poll(&polled, 1, 0) == 0) live++;
    }
    return live;
}

void cli_others_release(struct cli_others *others)
{
    for (int i = 0; i < others->count; i++) close(others->item[i].descriptor);
    tr_free(others->item);
    *others = (struct cli_others){0};
}
