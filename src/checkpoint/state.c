/* Checkpoints in the memory of a program (trireme/state.h). */
#include "base/alloc.h"
#include "base/fail.h"
#include "checkpoint/checkpoint.h"

#include <inttypes.h>

#define FIRST_ROOM ((size_t)1 << 16)

bool tr_checkpoint_state_is_given(const struct tr_run_state *state)
{
    return state->bytes || state->read;
}

/* Reads a stream to its end. */
static tr_status read_all(const struct tr_run_state *state, char **out, size_t *size)
{
    size_t room = FIRST_ROOM, used = 0;
    char *bytes = tr_alloc(room, 1);
    if (!bytes) return TR_ENOMEM;
    for (;;) {
        if (used == room) {
            char *larger = tr_realloc(bytes, room, 2);
            if (!larger) break;
            bytes = larger;
            room *= 2;
        }
        const int64_t got = state->read(state->user, bytes + used, room - used);
        if (got < 0 || (uint64_t)got > room - used) {
            tr_free(bytes);
            return tr_fail(TR_EIO,
                           "the function that gives the state ended it with %" PRId64 " after %zu bytes", got,
                           used);
        }
        if (got == 0) {
            *out = bytes;
            *size = used;
            return TR_OK;
        }
        used += (size_t)got;
    }
    tr_free(bytes);
    return TR_ENOMEM;
}

tr_status tr_checkpoint_open_state(const struct tr_run_state *state, tr_checkpoint **out)
{
    char *bytes = NULL;
    size_t size = 0;
    *out = NULL;
    if (state->bytes && state->read)
        return tr_fail(TR_EINVAL, "a state is given as bytes and by a function; give one of them");
    if (state->bytes)
        return tr_checkpoint_open_packed((void *)(uintptr_t)state->bytes, state->size, false, out);
    TR_TRY(read_all(state, &bytes, &size));
    return tr_checkpoint_open_packed(bytes, size, true, out);
}

void tr_state_free(void *bytes)
{
    tr_free(bytes);
}
