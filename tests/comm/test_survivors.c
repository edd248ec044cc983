/* Ranks die at random moments, also while the others find out who is left: all who live come to one and the
 * same part, in which messages of the parts before are not taken for its own. */
#include "comm/class.h"
#include "support/comm_thread/thread.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"

#include <pthread.h>
#include <stdatomic.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define SIZE   7
#define ROUNDS 10

static const struct tr_comm_settings settings = {.timeout = 60, .patience = 60};

struct crowd;

struct person {
    struct crowd *crowd;
    tr_comm *comm;
    pthread_t thread;
    int rank;
    int dies_after; /* exchanges; -1: does not; kills itself then */
    bool abandons;  /* and has started an operation that others wait for */
    atomic_bool dead;
    pthread_mutex_t leaving; /* guards `comm` against who kills */
    tr_status status;
    char message[256];
    int exchanges, parts;
    uint32_t members; /* of the last part */
};

struct crowd {
    int wanted; /* exchanges of all in one part at the end */
    struct person person[SIZE];
};

/* Exchanges in a part until one fails, or `wanted` have gone well since the part was made. */
static tr_status exchange(struct person *person, tr_comm *part)
{
    int64_t said[SIZE];
    for (int i = 0; i < person->crowd->wanted; i++) {
        int size = tr_comm_size(part);
        if (person->exchanges++ == person->dies_after) {
            tr_ticket *ticket = NULL;
            /* A message that will be there, whoever is meant. */
            if (person->abandons)
                TR_TRY(tr_comm_send(part, (tr_comm_rank(part) + 1) % size, 5, &person->rank,
                                    sizeof person->rank, "last word", &ticket));
            tr_comm_thread_kill(person->comm);
            person->dead = true;
            return TR_EPEER;
        }
        said[tr_comm_rank(part)] = 1000 * person->rank + i;
        TR_TRY(tr_comm_exchange(part, said, sizeof said[0], "round"));
        for (int r = 0; r < size; r++)
            if (said[r] != 1000 * tr_comm_number(part, r) + i)
                return tr_fail(TR_EMISMATCH, "rank %d heard %lld of rank %d", person->rank,
                               (long long)said[r], tr_comm_number(part, r));
    }
    return TR_OK;
}

static void *live(void *user)
{
    struct person *person = user;
    tr_comm *parts[TR_COMM_SUBGROUPS] = {NULL};
    tr_status status = TR_EPEER;
    bool lost_member = true;
    while (status == TR_EPEER && lost_member && !person->dead) {
        tr_comm **part = &parts[person->parts];
        status = tr_comm_survivors(person->comm, part);
        if (status != TR_OK) break;
        person->parts++;
        person->members = 0;
        for (int r = 0; r < tr_comm_size(*part); r++) person->members |= 1u << tr_comm_number(*part, r);
        status = exchange(person, *part);
        lost_member = tr_comm_lost_member(*part);
    }
    person->status = status;
    snprintf(person->message, sizeof person->message, "%s", tr_error_message());
    while (person->parts > 0) tr_comm_destroy(&parts[--person->parts]);
    if (person->members != (1u << SIZE) - 1) tr_comm_dissolve(person->comm);
    pthread_mutex_lock(&person->leaving);
    tr_comm *comm = person->comm;
    person->comm = NULL;
    pthread_mutex_unlock(&person->leaving);
    tr_comm_destroy(&comm);
    return NULL;
}

static uint32_t draw(uint32_t number, uint32_t below)
{
    uint32_t words[4];
    tr_rng_philox(tr_rng_key_make(5, TR_RNG_DELAY), number, 0, 0, 0, words);
    return words[0] % below;
}

static void run(struct crowd *crowd)
{
    tr_comm *comms[SIZE];
    assert_int_equal(tr_comm_thread_create(SIZE, NULL, &settings, comms), TR_OK);
    for (int r = 0; r < SIZE; r++) {
        crowd->person[r].comm = comms[r];
        pthread_mutex_init(&crowd->person[r].leaving, NULL);
        crowd->person[r].crowd = crowd;
        crowd->person[r].rank = r;
        assert_int_equal(pthread_create(&crowd->person[r].thread, NULL, live, &crowd->person[r]), 0);
    }
}

static void check(const struct crowd *crowd, int round)
{
    uint32_t living = 0;
    for (int r = 0; r < SIZE; r++) living |= crowd->person[r].dead ? 0 : 1u << r;
    for (int r = 0; r < SIZE; r++) {
        const struct person *person = &crowd->person[r];
        if (person->dead) continue;
        if (person->status != TR_OK) fail_msg("round %d, rank %d: %s", round, r, person->message);
        /* Whoever died after the last exchange of another was still with it. */
        if ((person->members & living) != living)
            fail_msg("round %d, rank %d ends with %x, %x live", round, r, person->members, living);
    }
}

static void those_who_live_agree(void **state)
{
    (void)state;
    int64_t live_before = tr_alloc_live();
    uint32_t chance = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd = {.wanted = 6};
        for (int r = 0; r < SIZE; r++) {
            bool dies = r != (int)(round % SIZE) && draw(chance++, 2) == 0;
            crowd.person[r].dies_after = dies ? (int)draw(chance++, 9) : -1;
            crowd.person[r].abandons = dies && draw(chance++, 2) == 0;
        }
        run(&crowd);
        for (int r = 0; r < SIZE; r++) pthread_join(crowd.person[r].thread, NULL);
        check(&crowd, round);
    }
    assert_true(tr_alloc_live() <= live_before + 64 * ROUNDS);
}

/* Killed from outside, at moments that nobody chose: in exchanges, and while others are told who is left. */
static void at_any_moment(void **state)
{
    (void)state;
    uint32_t chance = 1000;
    for (int round = 0; round < ROUNDS; round++) {
        struct crowd crowd = {.wanted = 60};
        for (int r = 0; r < SIZE; r++) crowd.person[r].dies_after = -1;
        run(&crowd);
        for (int i = 0; i < 3; i++) {
            int victim = (int)draw(chance++, SIZE - 1);
            nanosleep(&(struct timespec){.tv_nsec = 1000L * draw(chance++, 400)}, NULL);
            struct person *person = &crowd.person[victim];
            pthread_mutex_lock(&person->leaving);
            person->dead = true;
            if (person->comm) tr_comm_thread_kill(person->comm);
            pthread_mutex_unlock(&person->leaving);
        }
        for (int r = 0; r < SIZE; r++) pthread_join(crowd.person[r].thread, NULL);
        check(&crowd, round);
    }
}

/* Waits for a message of a rank that lives and does not send it, since another one died. */
static void *wait_in_vain(void *user)
{
    struct person *person = user;
    tr_comm *crew = NULL;
    tr_ticket *ticket = NULL;
    int word = 0;
    person->status = tr_comm_survivors(person->comm, &crew);
    if (person->status == TR_OK && person->rank == 2) tr_comm_thread_kill(person->comm);
    if (person->status == TR_OK && person->rank == 0)
        person->status = tr_comm_receive(crew, 1, 5, &word, sizeof word, "word", &ticket);
    if (person->status == TR_OK && person->rank == 0) person->status = tr_comm_wait(crew, &ticket);
    person->dead = person->status == TR_EPEER && tr_comm_lost_member(crew);
    snprintf(person->message, sizeof person->message, "%s", tr_error_message());
    /* And so it stays. */
    if (person->dead &&
        (tr_comm_progress(crew) != TR_EPEER || strcmp(tr_error_message(), person->message) != 0))
        person->dead = false;
    return crew;
}

/* So that nobody waits for those who went to find out who is left. */
static void any_death_ends_any_wait(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    struct crowd crowd = {0};
    tr_comm *comms[COUNT];
    void *crew[COUNT];
    const struct tr_comm_settings patient = {.timeout = 30, .patience = 30};
    assert_int_equal(tr_comm_thread_create(COUNT, NULL, &patient, comms), TR_OK);
    for (int r = 0; r < COUNT; r++) {
        crowd.person[r] = (struct person){.comm = comms[r], .rank = r};
        assert_int_equal(pthread_create(&crowd.person[r].thread, NULL, wait_in_vain, &crowd.person[r]), 0);
    }
    for (int r = 0; r < COUNT; r++) pthread_join(crowd.person[r].thread, &crew[r]);
    assert_int_equal(crowd.person[0].status, TR_EPEER);
    assert_true(crowd.person[0].dead);
    assert_string_equal(crowd.person[0].message,
                        "receive \"word\" on rank 0: rank 2 on host thread-host-0 died; "
                        "restart the job from its last checkpoint");
    for (int r = 0; r < COUNT; r++) {
        tr_comm *part = crew[r];
        tr_comm_destroy(&part);
        tr_comm_dissolve(comms[r]);
        tr_comm_destroy(&comms[r]);
    }
}

/* In a group that outlives its members no message fails by itself. One that could not even start is not
   taken for done: whoever waits would read memory that nobody wrote. */
static void *start_in_vain(void *user)
{
    struct person *person = user;
    tr_comm *crew = NULL;
    int word[2] = {0};
    person->status = tr_comm_survivors(person->comm, &crew);
    if (person->status != TR_OK || person->rank != 0) return crew;
    tr_comm_thread_kill(person->comm);
    for (int sends = 0; sends < 2; sends++) {
        tr_ticket *ticket = NULL;
        tr_status status = sends ? tr_comm_send(crew, 1, 5, &word[sends], sizeof word[0], "word", &ticket)
                                 : tr_comm_receive(crew, 1, 5, &word[sends], sizeof word[0], "word", &ticket);
        person->exchanges += status == TR_OK && ticket && !tr_comm_is_done(crew, &ticket);
        person->parts += tr_comm_cancel(crew, &ticket); /* nothing of it is under way */
    }
    return crew;
}

static void without_a_start_there_is_no_end(void **state)
{
    (void)state;
    struct crowd crowd = {0};
    tr_comm *comms[2];
    void *crew[2];
    assert_int_equal(tr_comm_thread_create(2, NULL, &settings, comms), TR_OK);
    for (int r = 0; r < 2; r++) {
        crowd.person[r] = (struct person){.comm = comms[r], .rank = r};
        assert_int_equal(pthread_create(&crowd.person[r].thread, NULL, start_in_vain, &crowd.person[r]), 0);
    }
    for (int r = 0; r < 2; r++) pthread_join(crowd.person[r].thread, &crew[r]);
    assert_int_equal(crowd.person[0].status, TR_OK);
    assert_int_equal(crowd.person[0].exchanges, 2);
    assert_int_equal(crowd.person[0].parts, 2);
    for (int r = 0; r < 2; r++) {
        tr_comm *part = crew[r];
        tr_comm_destroy(&part);
        tr_comm_dissolve(comms[r]);
        tr_comm_destroy(&comms[r]);
    }
}

/* A rank that gives up ends all, with its reason: that is no death. */
static void who_gives_up_ends_all(void **state)
{
    (void)state;
    struct crowd crowd = {.wanted = 1000000};
    for (int r = 0; r < SIZE; r++) crowd.person[r].dies_after = -1;
    run(&crowd);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    tr_comm_abort(crowd.person[3].comm, "the disk is full");
    for (int r = 0; r < SIZE; r++) pthread_join(crowd.person[r].thread, NULL);
    for (int r = 0; r < SIZE; r++) {
        if (crowd.person[r].status != TR_EPEER || !strstr(crowd.person[r].message, "the disk is full"))
            fail_msg("rank %d: status %d, %s", r, (int)crowd.person[r].status, crowd.person[r].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_who_live_agree),    cmocka_unit_test(at_any_moment),
        cmocka_unit_test(any_death_ends_any_wait), cmocka_unit_test(without_a_start_there_is_no_end),
        cmocka_unit_test(who_gives_up_ends_all),
    };
    return cmocka_run_group_tests_name("comm.survivors", tests, NULL, NULL);
}
