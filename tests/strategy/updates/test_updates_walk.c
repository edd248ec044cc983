/* A log of updates in memory: it grows, is walked through, counted and digested, and stays as it is where it
 * gets no memory. */
#include "strategy/updates/log.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FEW  (int64_t)(sizeof few / sizeof few[0])

enum { APPLIED = TR_UPDATE_APPLIED, DROPPED, LOST, TOLD, GATHERED, DRAINED };

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

static const struct tr_update_session
    first = {.workers = 3, .servers = 1, .parts = 2, .staleness = TR_UPDATE_ANY, .first = 5, .steps = 9},
    empty = {.workers = 1, .servers = 1, .parts = 1, .staleness = TR_UPDATE_ANY, .first = 6, .steps = 9},
    last = {.workers = 2, .servers = 4, .parts = 1, .staleness = 7, .first = 6, .steps = 8};

static const struct tr_update few[] = {
    {10, 0, 0, APPLIED, 0}, {12, 0, 2, DROPPED, 0}, {11, 0, 1, APPLIED, 0}, {6, 0, 0, TOLD, 0},
    {12, 1, 2, APPLIED, 0}, /* half of an update that the session does not complete */
    {6, 0, 1, APPLIED, 0},  {-1, 0, 1, LOST, 0},    {7, 1, 0, APPLIED, 0},  {8, 0, 0, DRAINED, 0},
};

/* Sessions with five records, none and four, and a state before and after the last update. */
static void fill(struct tr_update_log *log)
{
    *log = (struct tr_update_log){0};
    must(tr_update_log_begin(log, &first));
    must(tr_update_log_add(log, few, 4));
    must(tr_update_log_add(log, few + 4, 1));
    must(tr_update_log_begin(log, &empty));
    must(tr_update_log_begin(log, &last));
    must(tr_update_log_add(log, few + 5, 2));
    must(tr_update_log_mark(log, 7, HASH));
    must(tr_update_log_add(log, few + 7, 2));
    must(tr_update_log_mark(log, 8, HASH));
}

static void records_are_walked_through(void **state)
{
    (void)state;
    static const struct {
        int session;
        int64_t version, count;
        bool begins, first, completes;
    } expected[] = {
        {0, 5, 5, true, true, false},  {0, 5, 5, false, false, false}, {0, 5, 5, false, false, true},
        {0, 6, 6, false, true, false}, {0, 5, 6, false, true, false},  {2, 6, 6, true, true, true},
        {2, 7, 7, false, true, false}, {2, 6, 7, false, true, true},   {2, 8, 8, false, true, false},
    };
    struct tr_update_log log;
    struct tr_update_entry entry;
    fill(&log);
    struct tr_update_walk walk = {.log = &log};
    for (int64_t i = 0; i < FEW; i++) {
        assert_true(tr_update_walk_next(&walk, &entry));
        assert_ptr_equal(entry.record, &log.record[i]);
        assert_memory_equal(entry.record, &few[i], sizeof few[i]);
        assert_ptr_equal(entry.session, &log.session[expected[i].session]);
        assert_int_equal(entry.version, expected[i].version);
        assert_int_equal(entry.count, expected[i].count);
        assert_int_equal(entry.begins, expected[i].begins);
        assert_int_equal(entry.first, expected[i].first);
        assert_int_equal(entry.completes, expected[i].completes);
    }
    assert_false(tr_update_walk_next(&walk, &entry));
    assert_int_equal(walk.count, 8);
    assert_int_equal(walk.session, 3);
    assert_int_equal(log.session[0].begin, 0);
    assert_int_equal(log.session[1].begin, 5);
    assert_int_equal(log.session[2].begin, 5);
    assert_int_equal(log.states, 2);
    assert_int_equal(log.state[0].at, 7);
    assert_int_equal(log.state[0].step, 7);
    assert_int_equal(log.state[1].at, 9);
    assert_int_equal(log.state[1].step, 8);
    assert_string_equal(log.state[1].hash, HASH);
    tr_update_log_release(&log);
    assert_int_equal(log.records + log.sessions + log.states, 0);
    assert_null(log.record);
}

static void gradients_are_counted(void **state)
{
    (void)state;
    static const uint32_t missed[] = {0, 62, 62, 63, 64, 1000, 1};
    struct tr_update_log log = {0};
    struct tr_update_figures figures;
    struct tr_update_session session = {.workers = 9, .servers = 1, .parts = 1, .staleness = TR_UPDATE_ANY};
    session.first = 2000;
    must(tr_update_log_begin(&log, &session));
    tr_update_log_count(&log, &figures);
    assert_int_equal(figures.updates, 2000);
    assert_int_equal(figures.applied + figures.dropped + figures.lost + figures.most, 0);
    for (size_t i = 0; i < sizeof missed / sizeof missed[0]; i++)
        must(tr_update_log_add(&log, &(struct tr_update){.missed = missed[i], .kind = APPLIED}, 1));
    const struct tr_update others[] = {
        {.missed = 1500, .kind = DROPPED}, {.missed = 2, .kind = DROPPED}, {.kind = LOST}, {.kind = TOLD}};
    must(tr_update_log_add(&log, others, 4));
    tr_update_log_count(&log, &figures);
    assert_int_equal(figures.updates, 2007);
    assert_int_equal(figures.applied, 7);
    assert_int_equal(figures.dropped, 2);
    assert_int_equal(figures.lost, 1);
    assert_int_equal(figures.most, 1000);
    assert_true(figures.missed == 62 + 62 + 63 + 64 + 1000 + 1);
    for (int i = 0; i < TR_UPDATE_BINS; i++)
        assert_int_equal(figures.staleness[i], i == 63 ? 3 : i == 62 ? 2 : i <= 1 ? 1 : 0);
    tr_update_log_release(&log);
}

/* ---- digests ---- */

static void add_number(tr_sha256 *hash, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        const uint8_t byte = (uint8_t)(number >> 8 * i);
        tr_sha256_add(hash, &byte, 1);
    }
}

/* Receipts keep it, so it is the same for ever: of the sessions, then of the records. */
static void expect_digest(const struct tr_update_log *log, const struct tr_sha256_sum *sum)
{
    tr_sha256 *hash;
    struct tr_sha256_sum expected;
    must(tr_sha256_begin(&hash));
    for (int64_t i = 0; i < log->sessions; i++) {
        const struct tr_update_session *session = &log->session[i];
        add_number(hash, (uint64_t)session->mode);
        add_number(hash, (uint64_t)session->workers);
        add_number(hash, (uint64_t)session->servers);
        add_number(hash, (uint64_t)session->parts);
        add_number(hash, (uint64_t)session->staleness);
        add_number(hash, (uint64_t)session->first);
        add_number(hash, (uint64_t)session->steps);
        add_number(hash, (uint64_t)session->begin);
    }
    for (int64_t i = 0; i < log->records; i++) {
        const struct tr_update *record = &log->record[i];
        add_number(hash, (uint64_t)record->number);
        add_number(hash, (uint64_t)record->missed * 4294967296u + record->worker * 256u + record->kind);
    }
    must(tr_sha256_take(hash, &expected));
    tr_sha256_destroy(&hash);
    assert_memory_equal(sum, &expected, sizeof expected);
}

static void digests_are_of_what_determines_the_weights(void **state)
{
    (void)state;
    struct tr_update_log log;
    struct tr_sha256_sum sum, other;
    fill(&log);
    must(tr_update_log_digest(&log, &sum));
    expect_digest(&log, &sum);
    /* What only describes the run. */
    memcpy(log.session[0].job, HASH, sizeof log.session[0].job);
    memcpy(log.session[0].hash, HASH, sizeof log.session[0].hash);
    log.session[2].numerics = 4;
    log.states = 0;
    must(tr_update_log_digest(&log, &other));
    assert_memory_equal(&sum, &other, sizeof sum);
    log.record[FEW - 1].worker = 1;
    must(tr_update_log_digest(&log, &other));
    expect_digest(&log, &other);
    assert_memory_not_equal(&sum, &other, sizeof sum);
    tr_update_log_release(&log);
}

/* ---- growing ---- */

static void what_was_added_stays(void **state)
{
    (void)state;
    enum { ALL = 3000 };
    static struct tr_update all[ALL];
    struct tr_update_log log = {0};
    int64_t added = 0;
    must(tr_update_log_add(&log, NULL, 0)); /* nothing */
    for (int64_t i = 0; i < ALL; i++) all[i] = (struct tr_update){.number = i, .worker = (uint16_t)(i % 7)};
    for (int64_t more = 1; added < ALL; added += more, more = 1 + 3 * more % 101) {
        if (more > ALL - added) more = ALL - added;
        must(tr_update_log_add(&log, all + added, more));
        assert_int_equal(log.records, added + more);
        if (added % 3 == 0) must(tr_update_log_mark(&log, added, HASH));
        must(tr_update_log_begin(&log, &last));
    }
    assert_memory_equal(log.record, all, sizeof all);
    for (int64_t i = 0; i < log.sessions; i++) {
        assert_true(log.session[i].begin > (i > 0 ? log.session[i - 1].begin : 0));
        assert_int_equal(log.session[i].steps, last.steps);
    }
    for (int64_t i = 0; i < log.states; i++) assert_string_equal(log.state[i].hash, HASH);
    /* Emptied, it begins again. */
    const struct tr_update *memory = log.record;
    tr_update_log_clear(&log);
    assert_int_equal(log.records + log.sessions + log.states, 0);
    must(tr_update_log_add(&log, all, ALL));
    assert_ptr_equal(log.record, memory);
    must(tr_update_log_begin(&log, &last));
    assert_int_equal(log.session[0].begin, ALL);
    must(tr_update_log_mark(&log, 8, HASH));
    assert_int_equal(log.state[0].at, ALL);
    tr_update_log_release(&log);
}

/* Each in its turn gets no memory: the log is as it was, and takes it later. */
static void without_memory_nothing_changes(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        int64_t live = tr_alloc_live();
        struct tr_update_log log, before;
        struct tr_sha256_sum sum;
        fill(&log);
        log.session_room = log.sessions; /* no more room than is used */
        log.record_room = log.records;
        log.state_room = log.states;
        before = log;
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            refuse_begin(at);
            tr_status status = kind == 0   ? tr_update_log_begin(&log, &last)
                               : kind == 1 ? tr_update_log_add(&log, few, FEW)
                               : kind == 2 ? tr_update_log_mark(&log, 9, HASH)
                               : kind == 3 ? tr_update_log_check(&log, "log")
                                           : tr_update_log_digest(&log, &sum);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (!done) assert_memory_equal(&log, &before, sizeof log);
        }
        assert_int_equal(log.sessions, 3 + (kind == 0));
        assert_int_equal(log.records, FEW + (kind == 1 ? FEW : 0));
        assert_int_equal(log.states, 2 + (kind == 2));
        tr_update_log_release(&log);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_walked_through),
        cmocka_unit_test(gradients_are_counted),
        cmocka_unit_test(digests_are_of_what_determines_the_weights),
        cmocka_unit_test(what_was_added_stays),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    return cmocka_run_group_tests_name("strategy.updates_walk", tests, NULL, NULL);
}
