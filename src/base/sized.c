#include "base/sized.h"

#include "base/fail.h"

#include <string.h>

static size_t size_of(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

tr_status tr_sized_take(const void *given, const void *defaults, size_t bytes, const char *init, void *out)
{
    size_t size = size_of(given);
    if (size <= sizeof size || size > bytes)
        return tr_fail(TR_EINVAL, "settings have %zu bytes, this library knows %zu; begin with %s", size,
                       bytes, init);
    memcpy(out, defaults, bytes);
    memcpy((char *)out + sizeof size, (const char *)given + sizeof size, size - sizeof size);
    return TR_OK;
}

tr_status tr_sized_check(const void *out, const char *init)
{
    size_t size = size_of(out);
    if (size > sizeof size) return TR_OK;
    return tr_fail(TR_EINVAL, "the structure to be filled has a size of %zu bytes; begin with %s", size,
                   init);
}

tr_status tr_sized_give(const void *facts, size_t bytes, const char *init, void *out)
{
    TR_TRY(tr_sized_check(out, init));
    size_t size = size_of(out) < bytes ? size_of(out) : bytes;
    memcpy(out, facts, size);
    memcpy(out, &size, sizeof size);
    return TR_OK;
}
