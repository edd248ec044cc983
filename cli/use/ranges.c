#include "cli/use/ranges.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"

#include <inttypes.h>
#include <string.h>

/* The number at *at, which is moved after it; -1: there is none. */
static int64_t take_number(const char **at)
{
    int64_t number = 0;
    const char *start = *at;
    for (; tr_is_digit(**at); ++*at)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, **at - '0', &number))
            return -1;
    return *at > start ? number : -1;
}

static tr_status fail_range(const char *at)
{
    return tr_fail(TR_EINVAL,
                   "--index: \"%.*s\" is no range of examples; write numbers from 0 and ranges, for instance "
                   "0-99,200,500-",
                   (int)strcspn(at, ","), at);
}

static tr_status read_range(const char **at, int64_t count, const char *name, struct tr_example_range *range)
{
    const char *start = *at;
    int64_t first = take_number(at), last = first;
    if (first < 0) return fail_range(start);
    if (**at == '-') {
        ++*at;
        last = **at && **at != ',' ? take_number(at) : count - 1;
    }
    if (last < 0 || (**at && **at != ',')) return fail_range(start);
    int64_t most = first > last ? first : last;
    if (most >= count)
        return tr_fail(TR_EINVAL,
                       "--index: there is no example %" PRId64 "; %s has %" PRId64 ", counted from 0", most,
                       name, count);
    if (first > last)
        return tr_fail(TR_EINVAL,
                       "--index: \"%" PRId64 "-%" PRId64 "\" goes down; write %" PRId64 "-%" PRId64, first,
                       last, last, first);
    *range = (struct tr_example_range){first, last + 1};
    return TR_OK;
}

tr_status cli_ranges_read(const char *text, int64_t count, const char *name, struct tr_example_range **out,
                          int64_t *ranges)
{
    size_t most = 1;
    for (const char *at = text; at && *at; at++) most += *at == ',';
    *ranges = 0;
    *out = tr_alloc(most, sizeof **out);
    if (!*out) return TR_ENOMEM;
    if (!text) (*out)[(*ranges)++] = (struct tr_example_range){0, count};
    tr_status status = TR_OK;
    for (const char *at = text; status == TR_OK && at; at = *at ? at + 1 : NULL)
        status = read_range(&at, count, name, &(*out)[(*ranges)++]);
    if (status == TR_OK) return TR_OK;
    tr_free(*out);
    *out = NULL;
    return status;
}
