/* Windows: every rank makes memory, sends its key to the others of its host, and maps theirs. */
#include "comm/class.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct segment {
    void *memory; /* NULL if empty or not mapped */
    size_t bytes;
};

struct tr_window {
    tr_comm *comm;
    struct segment *segment; /* [size], of ranks of this host */
};

/* The message between ranks. */
struct notice {
    int64_t bytes;
    int32_t status;
    char key[TR_SHARE_KEY];
    char why[180];
};

static void record_failure(struct notice *notice, tr_status status)
{
    notice->status = (int32_t)status;
    snprintf(notice->why, sizeof notice->why, "%.*s", (int)sizeof notice->why - 1, tr_error_message());
}

/* Sends all ranks the result of this one; fails if any rank failed. */
static tr_status exchange(tr_comm *comm, struct notice *notice)
{
    TR_TRY(tr_comm_exchange(comm, notice, sizeof *notice, "window"));
    for (int rank = 0; rank < comm->size; rank++) {
        if (notice[rank].status == TR_OK) continue;
        notice[rank].why[sizeof notice->why - 1] = 0;
        return tr_fail(TR_EUNSUPPORTED, "memory shared by the ranks of a host: rank %d on host %s: %s",
                       tr_comm_number(comm, rank), comm->location[rank].host, notice[rank].why);
    }
    return TR_OK;
}

static void make_own(tr_comm *comm, size_t bytes, size_t begin, size_t end, struct tr_window *window,
                     struct notice *notice)
{
    *notice = (struct notice){.bytes = (int64_t)bytes};
    if (bytes == 0) return;
    pthread_mutex_lock(&comm->lock);
    tr_status status =
        comm->class->share_memory(comm, bytes, begin, end, &window->segment[comm->rank].memory, notice->key);
    pthread_mutex_unlock(&comm->lock);
    if (status != TR_OK)
        record_failure(notice, status);
    else
        window->segment[comm->rank].bytes = bytes;
}

static void map_others(tr_comm *comm, struct tr_window *window, struct notice *notice)
{
    for (int i = 0; i < tr_comm_local_size(comm); i++) {
        int rank = tr_comm_local(comm, i);
        struct segment *segment = &window->segment[rank];
        if (rank == comm->rank || notice[rank].bytes == 0) continue;
        pthread_mutex_lock(&comm->lock);
        tr_status status =
            notice[rank].bytes > 0
                ? comm->class->map(comm, (size_t)notice[rank].bytes, notice[rank].key, &segment->memory)
                : tr_fail(TR_EMISMATCH, "rank %d announces a negative size", rank);
        pthread_mutex_unlock(&comm->lock);
        if (status != TR_OK) {
            record_failure(&notice[comm->rank], status);
            return;
        }
        segment->bytes = (size_t)notice[rank].bytes;
    }
}

tr_status tr_window_create(tr_comm *comm, size_t bytes, tr_window **out)
{
    return tr_window_create_sparse(comm, bytes, 0, bytes, out);
}

tr_status tr_window_create_sparse(tr_comm *comm, size_t bytes, size_t begin, size_t end, tr_window **out)
{
    assert(begin <= end && end <= bytes);
    *out = NULL;
    if (!comm->class->share_memory)
        return tr_fail(TR_EUNSUPPORTED, "ranks of \"%s\" cannot share memory; work without",
                       comm->class->name);
    tr_status status = TR_ENOMEM;
    size_t size = (size_t)comm->size;
    struct tr_window *window = tr_alloc_zero(1, sizeof *window);
    struct notice *notice = tr_alloc_zero(size, sizeof *notice);
    if (window) *window = (struct tr_window){comm, tr_alloc_zero(size, sizeof *window->segment)};
    if (!window || !notice || !window->segment) {
        tr_comm_abort(comm, "out of memory"); /* the others will wait for us */
        goto out;
    }
    struct notice *own = &notice[comm->rank];
    make_own(comm, bytes, begin, end, window, own);
    char key[TR_SHARE_KEY];
    memcpy(key, own->key, sizeof key);
    status = exchange(comm, notice);
    if (status == TR_OK) {
        map_others(comm, window, notice);
        status = exchange(comm, notice);
    }
    if (comm->class->mapped && bytes > 0 && window->segment[comm->rank].memory) {
        pthread_mutex_lock(&comm->lock);
        comm->class->mapped(comm, key);
        pthread_mutex_unlock(&comm->lock);
    }
out:
    tr_free(notice);
    if (status != TR_OK) tr_window_destroy(&window);
    *out = window;
    return status;
}

void *tr_window_segment(const tr_window *window, int rank, size_t *bytes)
{
    const tr_comm *comm = window->comm;
    assert(comm->hosts.of[rank] == comm->hosts.of[comm->rank]);
    (void)comm;
    if (bytes) *bytes = window->segment[rank].bytes;
    return window->segment[rank].memory;
}

bool tr_window_holds(const tr_window *window, const void *data, int64_t bytes)
{
    const tr_comm *comm = window->comm;
    const char *first = data;
    for (int i = 0; i < tr_comm_local_size(comm); i++) {
        const struct segment *segment = &window->segment[tr_comm_local(comm, i)];
        const char *memory = segment->memory;
        if (memory && first >= memory && first + bytes <= memory + segment->bytes) return true;
    }
    return false;
}

void tr_window_destroy(tr_window **handle)
{
    struct tr_window *window = *handle;
    if (!window) return;
    tr_comm *comm = window->comm;
    pthread_mutex_lock(&comm->lock);
    for (int rank = 0; window->segment && rank < comm->size; rank++)
        if (window->segment[rank].memory)
            comm->class->unmap(comm, window->segment[rank].bytes, window->segment[rank].memory);
    pthread_mutex_unlock(&comm->lock);
    tr_free(window->segment);
    tr_free(window);
    *handle = NULL;
}
