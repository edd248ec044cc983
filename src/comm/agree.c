/* The handshake: before data move, all ranks check that they work on the same job. */
#include "comm/comm.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

#define NAME  "handshake"
#define SHOWN 160 /* bytes of a value in a message */

/* One rank's text: key, NUL, value, NUL. Comes from another process, so its ends are checked. */
struct said {
    const char *key, *value;
};

static tr_status parse(const char *text, int64_t length, int rank, struct said *out)
{
    const char *end = memchr(text, 0, (size_t)length);
    if (!end || end + 1 >= text + length || text[length - 1] != 0)
        return tr_fail(TR_EMISMATCH,
                       "handshake: rank %d sent something else; all ranks must run the same program", rank);
    *out = (struct said){text, end + 1};
    return TR_OK;
}

/* Where two values begin to differ, less some context, so that messages show the relevant part of long
   values. */
static size_t shown_from(const char *a, const char *b)
{
    size_t same = 0;
    while (a[same] && a[same] == b[same]) same++;
    return same > SHOWN / 2 ? same - SHOWN / 2 : 0;
}

static tr_status compare(tr_comm *comm, const char *texts, const int64_t *bound, const char *advice)
{
    struct said root = {"", ""}, other = {"", ""};
    TR_TRY(parse(texts, bound[1], 0, &root));
    for (int rank = 1; rank < tr_comm_size(comm); rank++) {
        TR_TRY(parse(texts + bound[rank], bound[rank + 1] - bound[rank], rank, &other));
        if (strcmp(root.key, other.key) != 0)
            return tr_fail(
                TR_EMISMATCH,
                "handshake: rank %d compares \"%s\", rank %d \"%s\"; all ranks must run the same program",
                tr_comm_number(comm, rank), other.key, tr_comm_number(comm, 0), root.key);
        if (strcmp(root.value, other.value) == 0) continue;
        size_t from = shown_from(root.value, other.value);
        const char *dots = from ? "..." : "";
        return tr_fail(
            TR_EMISMATCH, "%s: rank %d on host %s has \"%s%.*s\", rank %d on host %s has \"%s%.*s\"; %s",
            root.key, tr_comm_number(comm, rank), tr_comm_host(comm, rank), dots, SHOWN, other.value + from,
            tr_comm_number(comm, 0), tr_comm_host(comm, 0), dots, SHOWN, root.value + from, advice);
    }
    return TR_OK;
}

tr_status tr_comm_agree(tr_comm *comm, const char *key, const char *value, const char *advice)
{
    int size = tr_comm_size(comm), rank = tr_comm_rank(comm);
    size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1;
    char *texts = NULL;
    tr_status status = TR_ENOMEM;
    int64_t *bound = tr_alloc((size_t)size + 1, sizeof *bound);
    int64_t *length = tr_alloc((size_t)size, sizeof *length);
    if (!bound || !length) {
        tr_comm_abort(comm, "out of memory");
        goto out;
    }
    length[rank] = (int64_t)(key_bytes + value_bytes);
    TR_TRY_GOTO(tr_comm_exchange(comm, length, sizeof *length, NAME), out);
    bound[0] = 0;
    for (int i = 0; i < size; i++) {
        status = length[i] >= 2 && length[i] < 1 << 24
                     ? TR_OK
                     : tr_fail(TR_EMISMATCH,
                               "handshake: rank %d announces a text of %lld bytes; all ranks must run the "
                               "same program",
                               i, (long long)length[i]);
        if (status != TR_OK) goto out;
        bound[i + 1] = bound[i] + length[i];
    }
    texts = tr_alloc((size_t)bound[size], 1);
    if (!texts) {
        tr_comm_abort(comm, "out of memory");
        status = TR_ENOMEM;
        goto out;
    }
    memcpy(texts + bound[rank], key, key_bytes);
    memcpy(texts + bound[rank] + key_bytes, value, value_bytes);
    TR_TRY_GOTO(tr_comm_exchange_parts(comm, texts, bound, NAME), out);
    status = compare(comm, texts, bound, advice);
out:
    tr_free(texts);
    tr_free(bound);
    tr_free(length);
    return status;
}
