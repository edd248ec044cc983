#include "base/alloc.h"

#include "base/fail.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

static tr_alloc_hook the_hook;
static void *hook_user;
static atomic_llong live, total;

void tr_alloc_set_hook(tr_alloc_hook hook, void *user)
{
    the_hook = hook;
    hook_user = user;
}

int64_t tr_alloc_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}

int64_t tr_alloc_total(void)
{
    return atomic_load_explicit(&total, memory_order_relaxed);
}

/* Counts a block that was obtained, or records why not. */
static void *counted(void *block, size_t bytes)
{
    if (!block) {
        tr_fail(TR_ENOMEM, "out of memory: %zu bytes wanted", bytes);
        return NULL;
    }
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return block;
}

/* The bytes of count * size (at least 1), or 0 on overflow or when the hook refuses. */
static size_t admitted(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX) {
        tr_fail(TR_ENOMEM, "out of memory: %zu x %zu bytes wanted", count, size);
        return 0;
    }
    if (bytes == 0) bytes = 1;
    atomic_fetch_add_explicit(&total, 1, memory_order_relaxed);
    if (the_hook && the_hook(bytes, hook_user)) {
        tr_fail(TR_ENOMEM, "out of memory: %zu bytes wanted", bytes);
        return 0;
    }
    return bytes;
}

void *tr_alloc(size_t count, size_t size)
{
    size_t bytes = admitted(count, size);
    return bytes ? counted(malloc(bytes), bytes) : NULL;
}

void *tr_alloc_zero(size_t count, size_t size)
{
    size_t bytes = admitted(count, size);
    return bytes ? counted(calloc(1, bytes), bytes) : NULL;
}

void *tr_realloc(void *block, size_t count, size_t size)
{
    size_t bytes = admitted(count, size);
    if (!bytes) return NULL;
    void *grown = realloc(block, bytes);
    if (!grown) {
        tr_fail(TR_ENOMEM, "out of memory: %zu bytes wanted", bytes);
        return NULL;
    }
    if (!block) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return grown;
}

bool tr_grow(void *array, int64_t count, size_t size)
{
    void *block;
    if (count & (count - 1)) return true;
    memcpy(&block, array, sizeof block); /* whatever type the pointer has */
    block = tr_realloc(block, count ? 2 * (size_t)count : 1, size);
    if (!block) return false;
    memcpy(array, &block, sizeof block);
    return true;
}

void *tr_alloc_aligned(size_t count, size_t size)
{
    size_t bytes = admitted(count, size);
    if (!bytes) return NULL;
    size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : TR_CACHE_LINE;
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void *block = counted(aligned_alloc(alignment, rounded), bytes);
    /* Without large pages, page walks limit the speed of streaming over many megabytes. */
    if (block && alignment == HUGE_PAGE) madvise(block, rounded, MADV_HUGEPAGE);
    return block;
}

void tr_discard(void *memory, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)memory, to = from + bytes;
    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (from >= to) return;
    char *at = (char *)memory + (from - (uintptr_t)memory);
    /* For shared memory the first call frees the pages, for all processes; for private memory it fails. */
    if (madvise(at, to - from, MADV_REMOVE) != 0) madvise(at, to - from, MADV_DONTNEED);
}

char *tr_strdup(const char *text)
{
    size_t length = strlen(text) + 1;
    char *copy = tr_alloc(length, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

char *tr_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return NULL;
    char *text = tr_alloc((size_t)length + 1, 1);
    if (!text) return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return text;
}

void tr_free(void *block)
{
    if (!block) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(block);
}

void *tr_zlib_alloc(void *opaque, unsigned count, unsigned size)
{
    (void)opaque;
    return tr_alloc(count, size);
}

void tr_zlib_free(void *opaque, void *block)
{
    (void)opaque;
    tr_free(block);
}
