/* What ranks tell each other about themselves: each has the facts of all, in order, or the failure. */
#include "train/setup/rank_info.h"

#include "base/alloc.h"
#include "support/comm_thread/thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { SIZE = 3 };

static const struct tr_comm_settings patience = {.timeout = 60, .patience = 60};

struct teller {
    tr_comm *comm;
    tr_device *device, *holder;
    size_t memory;
    tr_status status;
    struct trainer_rank_info *found;
};

static void *tell(void *user)
{
    struct teller *teller = user;
    teller->status = tr_train_gather_rank_info(teller->comm, teller->device, teller->holder, teller->memory,
                                               &teller->found);
    return NULL;
}

static void gather(struct teller teller[SIZE])
{
    pthread_t thread[SIZE];
    for (int r = 0; r < SIZE; r++) assert_int_equal(pthread_create(&thread[r], NULL, tell, &teller[r]), 0);
    for (int r = 0; r < SIZE; r++) pthread_join(thread[r], NULL);
}

static void make(struct teller teller[SIZE])
{
    tr_comm *comm[SIZE];
    assert_int_equal(tr_comm_thread_create(SIZE, NULL, &patience, comm), TR_OK);
    for (int r = 0; r < SIZE; r++) {
        teller[r] = (struct teller){.comm = comm[r], .memory = 1000 + (size_t)r};
        assert_int_equal(tr_device_create("cpu", r + 1, NULL, &teller[r].device), TR_OK);
        assert_int_equal(tr_device_create("ref", 1, NULL, &teller[r].holder), TR_OK);
    }
}

static void drop(struct teller teller[SIZE])
{
    for (int r = 0; r < SIZE; r++) tr_comm_abort(teller[r].comm, "enough");
    for (int r = 0; r < SIZE; r++) {
        tr_free(teller[r].found);
        tr_device_destroy(&teller[r].device);
        tr_device_destroy(&teller[r].holder);
        tr_comm_destroy(&teller[r].comm);
    }
}

static void expect(const struct trainer_rank_info *info, const struct teller *of, const char *host)
{
    assert_string_equal(info->host, host);
    assert_string_equal(info->device, of->device->description);
    assert_string_equal(info->holder, of->holder->description);
    assert_int_equal(info->threads, of->device->threads);
    assert_int_equal(info->memory, of->memory);
}

static void all_know_all(void **state)
{
    (void)state;
    struct teller teller[SIZE];
    make(teller);
    gather(teller);
    for (int r = 0; r < SIZE; r++) {
        assert_int_equal(teller[r].status, TR_OK);
        for (int of = 0; of < SIZE; of++)
            expect(&teller[r].found[of], &teller[of], tr_comm_host(teller[r].comm, of));
    }
    drop(teller);
}

static void one_alone_knows_itself(void **state)
{
    (void)state;
    struct teller alone = {.memory = 77};
    char host[64] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_int_equal(tr_device_create("cpu", 2, NULL, &alone.device), TR_OK);
    assert_int_equal(tr_device_create("ref", 1, NULL, &alone.holder), TR_OK);
    tell(&alone);
    assert_int_equal(alone.status, TR_OK);
    expect(alone.found, &alone, host);
    tr_free(alone.found);
    tr_device_destroy(&alone.device);
    tr_device_destroy(&alone.holder);
}

/* Nobody takes zeros for the facts of a rank that is lost. */
static void a_lost_rank_is_a_failure(void **state)
{
    (void)state;
    struct teller teller[SIZE];
    make(teller);
    tr_comm_thread_kill(teller[1].comm);
    gather(teller);
    for (int r = 0; r < SIZE; r++) assert_int_equal(teller[r].status, TR_EPEER);
    drop(teller);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_know_all),
        cmocka_unit_test(one_alone_knows_itself),
        cmocka_unit_test(a_lost_rank_is_a_failure),
    };
    return cmocka_run_group_tests_name("train.rank_info", tests, NULL, NULL);
}
