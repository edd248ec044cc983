#include "base/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 1 writes "no limit" as a number near 2^63. */
#define NO_LIMIT (INT64_MAX / 2)

#define PATH_MOST 1024

/* ---- files of the kernel ---- */

/* Sums the numbers of lines "<key> <number>" whose key is in `keys` (ends with NULL); -1 without the file.
   A colon after a key is ignored. */
static int64_t sum_of_keys(const char *path, const char *const *keys)
{
    char line[256], name[64];
    long long number, sum = 0;
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%63[^: ]%*[: \t]%lld", name, &number) != 2) continue;
        for (int i = 0; keys[i]; i++)
            if (strcmp(name, keys[i]) == 0) sum += number;
    }
    fclose(file);
    return (int64_t)sum;
}

/* The number in a file; INT64_MAX for "max", -1 where there is none. */
static int64_t number_in(const char *path)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    if (!read) return -1;
    if (strncmp(text, "max", 3) == 0) return INT64_MAX;
    char *end;
    long long number = strtoll(text, &end, 10);
    return end == text || number < 0 ? -1 : number >= NO_LIMIT ? INT64_MAX : (int64_t)number;
}

static void lower(struct tr_memory_room *room, int64_t free, const char *kind, const char *name)
{
    if (free < 0) free = 0;
    if (free >= room->free) return;
    room->free = free;
    snprintf(room->where, sizeof room->where, "%s%.*s", kind, 120, name);
}

/* ---- control groups ---- */

/* The files of a version of control groups. */
struct version {
    const char *folder; /* below sys/fs/cgroup */
    const char *limit, *used;
    const char *caches[3]; /* keys of memory.stat whose pages the kernel can reclaim */
};

static const struct version versions[] = {
    {"", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"/unified", "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static void look_at_group(const char *root, const struct version *version, const char *group,
                          struct tr_memory_room *room)
{
    char folder[PATH_MOST], path[PATH_MOST + 64];
    if (snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root, version->folder, group) >= PATH_MOST)
        return;
    snprintf(path, sizeof path, "%s/%s", folder, version->limit);
    int64_t limit = number_in(path);
    if (limit < 0 || limit == INT64_MAX) return;
    snprintf(path, sizeof path, "%s/%s", folder, version->used);
    int64_t used = number_in(path);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    int64_t caches = sum_of_keys(path, version->caches);
    if (used < 0 || used == INT64_MAX) used = 0;
    if (caches < 0) caches = 0;
    lower(room, limit - used + (caches < used ? caches : used), "the control group ", *group ? group : "/");
}

/* A group's limit applies together with those of all groups above it. In a container the path may be that
   of the machine, which is not visible there: then the top is the container's own group. */
static void look_at_groups(const char *root, const struct version *version, char *group,
                           struct tr_memory_room *room)
{
    size_t length = strlen(group);
    while (length > 0 && group[length - 1] == '/') group[--length] = '\0';
    for (;;) {
        look_at_group(root, version, group, room);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* Whether a list "a,b,c" contains a word. */
static bool lists(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == '\0' || at[length] == ',')) return true;
    }
    return false;
}

/* Lines "<number>:<controllers>:<group>", without controllers for version 2. */
static void read_groups(const char *root, struct tr_memory_room *room)
{
    char path[PATH_MOST], line[PATH_MOST];
    if (snprintf(path, sizeof path, "%s/proc/self/cgroup", root) >= PATH_MOST) return;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *controllers++ = *group++ = '\0';
        bool second = *controllers == '\0';
        if (!second && !lists(controllers, "memory")) continue;
        for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
            char copy[PATH_MOST];
            if (second != (strcmp(versions[i].limit, "memory.max") == 0)) continue;
            memcpy(copy, group, strlen(group) + 1);
            look_at_groups(root, &versions[i], copy, room);
        }
    }
    if (file) fclose(file);
}

void tr_memory_look(const char *root, struct tr_memory_room *out)
{
    static const char *const keys[] = {"MemAvailable", "SwapFree", NULL};
    char path[PATH_MOST];
    *out = (struct tr_memory_room){.free = INT64_MAX};
    if (!root) root = "";
    if (snprintf(path, sizeof path, "%s/proc/meminfo", root) >= PATH_MOST) return;
    int64_t kilobytes = sum_of_keys(path, keys);
    if (kilobytes > 0 && kilobytes < INT64_MAX / 1024) lower(out, kilobytes * 1024, "this machine", "");
    read_groups(root, out);
}
