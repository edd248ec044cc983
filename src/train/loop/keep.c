/* Saving a trainer between steps, on request of the program: to its directory, to a path, to memory. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "train/loop/internal.h"

#include <string.h>

/* Whether the newest checkpoint of the output directory is of the present state, and exists. Decided by
   the root; on all ranks. */
static tr_status is_saved(tr_trainer *trainer, bool *saved)
{
    int32_t word = trainer_is_root(trainer) && trainer->directory.path &&
                   trainer->directory.saved_step == trainer->variables.step &&
                   trainer->directory.checkpoint && tr_file_exists(trainer->directory.checkpoint);
    TR_TRY(tr_strategy_broadcast(trainer->variables.strategy, &word, sizeof word));
    *saved = word != 0;
    return TR_OK;
}

/* A copy of the newest checkpoint's path, on the root. */
static tr_status give_path(const tr_trainer *trainer, char **path)
{
    if (!path || !trainer->directory.checkpoint || !trainer_is_root(trainer)) return TR_OK;
    *path = tr_strdup(trainer->directory.checkpoint);
    return *path ? TR_OK : TR_ENOMEM;
}

tr_status tr_trainer_save(tr_trainer *trainer, char **path)
{
    char *own = NULL;
    bool saved = false;
    if (path) *path = NULL;
    TR_TRY(trainer_check_process(trainer));
    if (trainer->directory.path) TR_TRY(is_saved(trainer, &saved));
    if (!saved) {
        TR_TRY(trainer_save(trainer, false, &own));
        tr_free(trainer->directory.checkpoint);
        trainer->directory.checkpoint = own;
    }
    return give_path(trainer, path);
}

tr_status tr_trainer_save_at(tr_trainer *trainer, const char *path)
{
    const struct trainer_target to = {.path = path};
    return trainer_save_elsewhere(trainer, &to);
}

/* ---- streams ---- */

/* A program's function. */
struct stream {
    tr_run_state_writer write;
    void *user;
};

static tr_status write_to_stream(void *user, const void *data, size_t size)
{
    const struct stream *stream = user;
    int ended = stream->write(stream->user, data, size);
    return ended ? tr_fail(TR_EIO, "the function that takes the state ended it with %d", ended) : TR_OK;
}

tr_status tr_trainer_save_stream(tr_trainer *trainer, tr_run_state_writer write, void *user)
{
    struct stream stream = {write, user};
    const struct trainer_target to = {.sink = {write_to_stream, &stream}};
    return trainer_save_elsewhere(trainer, &to);
}

/* Memory that grows. */
struct heap {
    char *bytes;
    size_t size, room;
};

static tr_status write_to_heap(void *user, const void *data, size_t size)
{
    struct heap *heap = user;
    if (size > heap->room - heap->size) {
        size_t room =
            heap->room + heap->room / 2 > heap->size + size ? heap->room + heap->room / 2 : heap->size + size;
        char *larger = tr_realloc(heap->bytes, room, 1);
        if (!larger) return TR_ENOMEM;
        heap->bytes = larger;
        heap->room = room;
    }
    memcpy(heap->bytes + heap->size, data, size);
    heap->size += size;
    return TR_OK;
}

tr_status tr_trainer_save_state(tr_trainer *trainer, void **bytes, size_t *size)
{
    struct heap heap = {0};
    const struct trainer_target to = {.sink = {write_to_heap, &heap}};
    *bytes = NULL;
    *size = 0;
    tr_status status = trainer_save_elsewhere(trainer, &to);
    if (status != TR_OK) {
        tr_free(heap.bytes);
        return status;
    }
    *bytes = heap.bytes;
    *size = heap.size;
    return TR_OK;
}
