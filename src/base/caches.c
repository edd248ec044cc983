#include "base/caches.h"

#include "base/text/ascii.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((int64_t)1024)
/* No cache has less or more bytes than these limits. */
#define LEAST_BYTES (4 * KIB)
#define MOST_BYTES  (4 * KIB * KIB * KIB)
/* Processors are numbered from 0 to at most this. */
#define MOST_PROCESSORS 65535
/* Most descriptions to look for at a processor: there is one for each level, and another for instructions. */
#define DESCRIPTIONS 12

#define TEXT_SIZE 1024

/* Reads the only line of a file. False where there is none, or it is longer than expected. */
static bool read_line(const char *folder, const char *name, char text[TEXT_SIZE])
{
    char path[TEXT_SIZE];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool read = fgets(text, TEXT_SIZE, file) != NULL;
    fclose(file);
    size_t length = read ? strcspn(text, "\n") : 0;
    if (length == 0 || length + 1 == TEXT_SIZE) return false;
    text[length] = '\0';
    return true;
}

/* The number, at most `most`, that `text` begins with, and the text after it; -1 if there is none. */
static int64_t take_number(const char **text, int64_t most)
{
    const char *at = *text;
    int64_t number = 0;
    while (tr_is_digit(*at) && number <= most) number = number * 10 + (*at++ - '0');
    if (at == *text || number > most) return -1;
    *text = at;
    return number;
}

/* "32K", "1M"; 0 where the text is not the size of a cache. */
static int64_t size_of(const char *text)
{
    int64_t bytes = take_number(&text, MOST_BYTES);
    const int64_t unit = *text == 'K' ? KIB : *text == 'M' ? KIB * KIB : 1;
    if (unit > 1) text++;
    bytes *= unit;
    return *text || bytes < LEAST_BYTES || bytes > MOST_BYTES ? 0 : bytes;
}

/* How many processors a list such as "0-3,8" has; 0 where it is not an ascending list. */
static int count_list(const char *text)
{
    int64_t count = 0, after = 0; /* least value of the next number */
    for (;; text++) {
        const int64_t first = take_number(&text, MOST_PROCESSORS);
        int64_t last = first;
        if (*text == '-') {
            text++;
            last = take_number(&text, MOST_PROCESSORS);
        }
        if (first < after || last < first) return 0;
        count += last - first + 1;
        after = last + 1;
        if (*text != ',') return *text ? 0 : (int)count;
    }
}

void tr_caches_look(const char *root, int processor, struct tr_caches *out)
{
    *out = (struct tr_caches){0};
    for (int i = 0; i < DESCRIPTIONS; i++) {
        char folder[TEXT_SIZE / 2], level[TEXT_SIZE], type[TEXT_SIZE], size[TEXT_SIZE], list[TEXT_SIZE];
        if (snprintf(folder, sizeof folder, "%s/sys/devices/system/cpu/cpu%d/cache/index%d", root, processor,
                     i) >= (int)sizeof folder)
            return;
        if (!read_line(folder, "level", level) || !read_line(folder, "type", type) ||
            !read_line(folder, "size", size) || !read_line(folder, "shared_cpu_list", list))
            continue;
        if (strcmp(type, "Data") != 0 && strcmp(type, "Unified") != 0) continue;
        if (level[0] < '1' || level[0] > '0' + TR_CACHE_LEVELS || level[1]) continue;
        const struct tr_cache_level cache = {.bytes = size_of(size), .processors = count_list(list)};
        if (cache.bytes > 0 && cache.processors > 0) out->level[level[0] - '1'] = cache;
    }
}

struct tr_caches tr_caches_least(const struct tr_caches *one, const struct tr_caches *other)
{
    struct tr_caches least = *one;
    for (int i = 0; i < TR_CACHE_LEVELS; i++) {
        const struct tr_cache_level *a = &one->level[i], *b = &other->level[i];
        if (a->bytes * b->processors > b->bytes * a->processors || b->bytes == 0) least.level[i] = *b;
    }
    return least;
}

void tr_caches_find(struct tr_caches *out)
{
    cpu_set_t set;
    *out = (struct tr_caches){0};
    if (sched_getaffinity(0, sizeof set, &set) != 0) return;
    int first = 0, last = CPU_SETSIZE - 1;
    while (first < last && !CPU_ISSET(first, &set)) first++;
    while (last > first && !CPU_ISSET(last, &set)) last--;
    tr_caches_look("", first, out);
    if (last == first) return;
    struct tr_caches other;
    tr_caches_look("", last, &other);
    *out = tr_caches_least(out, &other);
}
