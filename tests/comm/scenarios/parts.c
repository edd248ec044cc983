/* Parts of a communicator, as a scenario: everything that works on the whole works on a part, and the traffic
 * of the two does not meet. */
#include "comm/scenarios/parts.h"

#include "comm/check.h"
#include "comm/scenarios/sums.h"
#include "comm/scenarios/scenarios.h"

#include <string.h>

/* All that is done on parts; what is left out takes long and is no different. */
static const char *const on_parts[] = {"exchange",   "order",         "cancel", "refusals",
                                       "barrier",    "broadcast",     "gather", "all_gather",
                                       "window",     "window_gather", "agree",  "sums_in_window",
                                       "all_reduce", "buckets",       "bytes"};

static const char *run_all(tr_comm *part)
{
    for (size_t i = 0; i < sizeof on_parts / sizeof on_parts[0]; i++) {
        const struct scenario *scenario = scenarios;
        while (strcmp(scenario->name, on_parts[i]) != 0) scenario++;
        CHECK_RUN(scenario->run(part));
    }
    return NULL;
}

/* Even and odd ranks, counted backwards. */
static const char *check_order(tr_comm *comm, tr_comm *part)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm), members = (size - me % 2 + 1) / 2;
    CHECK(strcmp(tr_comm_name(part), tr_comm_name(comm)) == 0);
    CHECK(tr_comm_size(part) == members);
    CHECK(tr_comm_number(part, tr_comm_rank(part)) == me);
    CHECK(tr_comm_rank(part) == members - 1 - me / 2);
    for (int i = 0; i < members; i++) {
        int rank = 2 * (members - 1 - i) + me % 2;
        CHECK(tr_comm_number(part, i) == rank);
        CHECK(tr_comm_host(part, i) && strcmp(tr_comm_host(part, i), tr_comm_host(comm, rank)) == 0);
        for (int k = 0; k < members; k++) {
            int other = tr_comm_number(part, k);
            CHECK((tr_comm_host_of(part, i) == tr_comm_host_of(part, k)) ==
                  (tr_comm_host_of(comm, rank) == tr_comm_host_of(comm, other)));
        }
    }
    return NULL;
}

/* Messages with one tag on whole, part and part of the part, and collectives of all three under way at once.
 */
static const char *check_apart(tr_comm *comm, tr_comm *part, tr_comm *inner)
{
    tr_comm *const level[] = {comm, part, inner};
    enum { LEVELS = 3, COUNT = 4 };
    int32_t sent[LEVELS][COUNT], got[LEVELS][COUNT], all[LEVELS][RANKS];
    tr_ticket *send[LEVELS][COUNT], *receive[LEVELS][COUNT], *gather[LEVELS];
    int64_t bound[RANKS + 1];
    for (int i = 0; i <= RANKS; i++) bound[i] = i * (int64_t)sizeof all[0][0];
    for (int l = 0; l < LEVELS; l++) {
        int me = tr_comm_rank(level[l]), size = tr_comm_size(level[l]);
        for (int k = 0; k < COUNT; k++) {
            sent[l][k] = l * 10000 + tr_comm_rank(comm) * 100 + k;
            CHECK_OK(tr_comm_send(level[l], (me + 1) % size, 7, &sent[l][k], sizeof sent[l][k], NULL,
                                  &send[l][k]));
        }
        all[l][me] = tr_comm_rank(comm);
        CHECK_OK(tr_comm_all_gather(level[l], all[l], bound, NULL, "levels", &gather[l]));
    }
    for (int l = LEVELS - 1; l >= 0; l--) {
        int me = tr_comm_rank(level[l]), size = tr_comm_size(level[l]), from = (me + size - 1) % size;
        for (int k = 0; k < COUNT; k++)
            CHECK_OK(tr_comm_receive(level[l], from, 7, &got[l][k], sizeof got[l][k], NULL, &receive[l][k]));
    }
    for (int l = LEVELS - 1; l >= 0; l--) { /* parts first: calls on the whole do not move them on */
        int me = tr_comm_rank(level[l]), size = tr_comm_size(level[l]), from = (me + size - 1) % size;
        CHECK_OK(tr_comm_wait(level[l], &gather[l]));
        for (int i = 0; i < size; i++) CHECK(all[l][i] == tr_comm_number(level[l], i));
        for (int k = 0; k < COUNT; k++) {
            CHECK_OK(tr_comm_wait(level[l], &receive[l][k]));
            CHECK_OK(tr_comm_wait(level[l], &send[l][k]));
            CHECK(got[l][k] == l * 10000 + tr_comm_number(level[l], from) * 100 + k);
        }
    }
    return NULL;
}

/* A window of the whole, gathered by the ranks of a part, each part its own stretch. */
static const char *check_window_of_whole(tr_comm *comm, tr_comm *part)
{
    enum { BYTES = 5003 };
    int stretch = tr_comm_rank(comm) % 2, owner = tr_comm_local(comm, 0), size = tr_comm_size(part);
    int64_t bound[RANKS + 1];
    tr_window *window;
    tr_ticket *ticket;
    CHECK_OK(tr_window_create(comm, tr_comm_rank(comm) == owner ? 2 * BYTES : 0, &window));
    unsigned char *data = (unsigned char *)tr_window_segment(window, owner, NULL) + stretch * BYTES;
    for (int i = 0; i <= size; i++) bound[i] = BYTES * (int64_t)i / size;
    int me = tr_comm_rank(part);
    for (int64_t i = bound[me]; i < bound[me + 1]; i++) data[i] = (unsigned char)(i * 7 + stretch);
    CHECK_DONE(part, &ticket, tr_comm_all_gather(part, data, bound, window, "stretch", &ticket));
    for (int64_t i = 0; i < BYTES; i++) CHECK(data[i] == (unsigned char)(i * 7 + stretch));
    CHECK(tr_comm_all_gather(part, bound, (int64_t[RANKS + 1]){0, 8, 8, 8, 8, 8, 8, 8, 8}, window,
                             "elsewhere", &ticket) == TR_EINVAL);
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket));
    tr_window_destroy(&window);
    return NULL;
}

/* Parts come and go without end, but only some at a time. */
static const char *check_numbers(tr_comm *comm)
{
    tr_comm *many[TR_COMM_SUBGROUPS], *one;
    tr_ticket *ticket;
    for (int i = 0; i < 2 * TR_COMM_SUBGROUPS; i++) {
        CHECK_OK(tr_comm_split(comm, 0, 0, &one));
        CHECK(tr_comm_rank(one) == tr_comm_rank(comm) && tr_comm_size(one) == tr_comm_size(comm));
        CHECK_DONE(one, &ticket, tr_comm_barrier(one, &ticket));
        tr_comm_destroy(&one);
        CHECK(!one);
    }
    for (int i = 0; i < TR_COMM_SUBGROUPS; i++) CHECK_OK(tr_comm_split(comm, 0, 0, &many[i]));
    CHECK(tr_comm_split(comm, 0, 0, &one) == TR_EINVAL && !one);
    for (int i = 0; i < TR_COMM_SUBGROUPS; i++) tr_comm_destroy(&many[i]);
    return NULL;
}

const char *scenario_parts(tr_comm *comm)
{
    int me = tr_comm_rank(comm), size = tr_comm_size(comm);
    tr_comm *part, *inner, *none;
    tr_ticket *ticket;
    CHECK_OK(tr_comm_split(comm, me % 2, -me, &part));
    CHECK_RUN(check_order(comm, part));
    CHECK_RUN(run_all(part));
    CHECK_OK(tr_comm_split(part, tr_comm_rank(part) / 2, 0, &inner));
    CHECK(tr_comm_size(inner) == 1 || tr_comm_size(inner) == 2);
    CHECK_RUN(check_apart(comm, part, inner));
    CHECK_RUN(check_window_of_whole(comm, part));
    tr_comm_destroy(&inner);
    tr_comm_destroy(&part);
    CHECK_OK(tr_comm_split(comm, me == size - 1 ? -1 : 5, 0, &none)); /* the last stays out */
    CHECK((me == size - 1) == !none && (!none || tr_comm_size(none) == size - 1));
    tr_comm_destroy(&none);
    CHECK_RUN(check_numbers(comm));
    CHECK_DONE(comm, &ticket, tr_comm_barrier(comm, &ticket)); /* the whole is well */
    return NULL;
}
