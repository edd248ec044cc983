/* The rules of a log of updates, each at its bounds.
 */
#include "strategy/updates/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define COUNT (int64_t)(sizeof cases / sizeof cases[0])

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s", tr_error_message());
}

/* NULL: it is accepted. */
static void expect_judged(const struct tr_update_log *log, const char *message)
{
    tr_status status = tr_update_log_check(log, "log");
    if (!message && status != TR_OK) fail_msg("refused: %s", tr_error_message());
    if (message && status != TR_EFORMAT) fail_msg("not refused, but %d: %s", (int)status, message);
    if (message) assert_string_equal(tr_error_message(), message);
}

/* ---- sessions ---- */

static const struct tr_update_session plain = {.mode = TR_UPDATE_BOUNDED,
                                               .workers = 4,
                                               .servers = 2,
                                               .parts = 2,
                                               .staleness = 3,
                                               .first = 1,
                                               .steps = 9};

/* A plain session and one like it but for a number; the first may be the odd one. */
static void expect_session(const struct tr_update_session *odd, bool first, const char *message)
{
    struct tr_update_log log = {0};
    if (!first) must(tr_update_log_begin(&log, &plain));
    must(tr_update_log_begin(&log, odd));
    expect_judged(&log, message);
    tr_update_log_release(&log);
}

#define SESSION(number, rule, got)                                                                           \
    "log: session " #number ": " rule ", but here is " #got "; the log is damaged"
#define MODE    "its mode is one of async, bounded and backup, by number"
#define WORKERS "it has 1 to 4096 workers"
#define SERVERS "it has 1 to 4096 servers"
#define PARTS   "1 to as many gradients as there are workers make an update"

static void numbers_of_sessions_have_bounds(void **state)
{
    (void)state;
    const struct {
        struct tr_update_session session;
        const char *message;
    } cases[] = {
        {plain, NULL},
        {{0, 1, 1, 1, 0, 0, 0, .begin = 0}, NULL},
        {{2, 4096, 4096, 4096, TR_UPDATE_ANY, TR_UPDATE_STEPS_MOST, TR_UPDATE_STEPS_MOST, .numerics = 1},
         NULL},
        {{-1, 4, 2, 2, 3, 1, 9, .begin = 0}, SESSION(1, MODE, -1)},
        {{3, 4, 2, 2, 3, 1, 9, .begin = 0}, SESSION(1, MODE, 3)},
        {{1, 0, 2, 2, 3, 1, 9, .begin = 0}, SESSION(1, WORKERS, 0)},
        {{1, 4097, 2, 2, 3, 1, 9, .begin = 0}, SESSION(1, WORKERS, 4097)},
        {{1, 4, 0, 2, 3, 1, 9, .begin = 0}, SESSION(1, SERVERS, 0)},
        {{1, 4, 4097, 2, 3, 1, 9, .begin = 0}, SESSION(1, SERVERS, 4097)},
        {{1, 4, 2, 0, 3, 1, 9, .begin = 0}, SESSION(1, PARTS, 0)},
        {{1, 4, 2, 5, 3, 1, 9, .begin = 0}, SESSION(1, PARTS, 5)},
        {{1, 4, 2, 2, -1, 1, 9, .begin = 0}, SESSION(1, "a gradient may miss 0 or more updates", -1)},
        {{1, 4, 2, 2, 3, 0, -1, .begin = 0}, SESSION(1, "it has 0 or more steps", -1)},
        {{1, 4, 2, 2, 3, 1, TR_UPDATE_STEPS_MOST + 1, .begin = 0},
         SESSION(1, "it has 0 or more steps", 1125899906842625)},
        {{1, 4, 2, 2, 3, -1, 9, .begin = 0}, SESSION(1, "it begins after 0 to all of its steps", -1)},
        {{1, 4, 2, 2, 3, 10, 9, .begin = 0}, SESSION(1, "it begins after 0 to all of its steps", 10)},
        {{1, 4, 2, 2, 3, 1, 9, .numerics = -1}, SESSION(1, "versions of the arithmetic count from 1", -1)},
    };
    for (int64_t i = 0; i < COUNT; i++) expect_session(&cases[i].session, true, cases[i].message);
    struct tr_update_session odd = plain;
    odd.servers = 0;
    expect_session(&odd, false, SESSION(2, SERVERS, 0));
}

static void sessions_follow_each_other(void **state)
{
    (void)state;
    struct tr_update_session next = plain;
    expect_session(&plain, false, NULL); /* none of them with records */
    next.first = 2;
    expect_session(&next, false, "log: session 2 begins after 2 updates, the one before ends with 1");
    next.first = 0;
    expect_session(&next, false, "log: session 2 begins after 0 updates, the one before ends with 1");

    /* The second of three without records follows what comes before it, and the third follows it. */
    for (int64_t third = 1; third <= 3; third++) {
        struct tr_update_log log = {0};
        static const struct tr_update applied[] = {{.number = 0}, {.number = 1, .worker = 1}};
        must(tr_update_log_begin(&log, &plain));
        must(tr_update_log_add(&log, applied, 2));
        next.first = 2;
        must(tr_update_log_begin(&log, &next));
        next.first = third;
        must(tr_update_log_begin(&log, &next));
        expect_judged(&log, third == 1   ? "log: session 3 begins after 1 updates, the one before ends with 2"
                            : third == 3 ? "log: session 3 begins after 3 updates, the one before ends with 2"
                                         : NULL);
        tr_update_log_release(&log);
    }

    struct tr_update_log log = {0};
    expect_judged(&log, "log: the log does not begin with a session");
    must(tr_update_log_add(&log, &(struct tr_update){.number = 0}, 1));
    expect_judged(&log, "log: the log does not begin with a session");
    must(tr_update_log_begin(&log, &plain));
    expect_judged(&log, "log: the log does not begin with a session");
    tr_update_log_release(&log);
}

/* ---- records ---- */

#define MOST 6

/* Records of a plain session; of `two`, from the third on in a second one. */
static void expect_records(const struct tr_update *records, int64_t count, bool two, const char *message)
{
    struct tr_update_log log = {0};
    struct tr_update_session next = plain;
    next.first = 2;
    must(tr_update_log_begin(&log, &plain));
    must(tr_update_log_add(&log, records, two ? 2 : count));
    if (two) must(tr_update_log_begin(&log, &next));
    if (two) must(tr_update_log_add(&log, records + 2, count - 2));
    expect_judged(&log, message);
    tr_update_log_release(&log);
}

enum { APPLIED = TR_UPDATE_APPLIED, DROPPED, LOST, TOLD, GATHERED, DRAINED };

/* Two gradients make an update; one is done before the session, of nine. Number, missed, worker, kind. */
static void records_have_bounds(void **state)
{
    (void)state;
    static const struct {
        struct tr_update record[MOST];
        int count;
        bool two;
        const char *message;
    } cases[] = {
        {{{0, 0, 0, APPLIED, 0}, {0, 0, 3, APPLIED, 0}}, 2, false, NULL},
        {{{0, 0, 4, APPLIED, 0}}, 1, false, "log: record 1 is of worker 4; its session has 4, from 0"},
        {{{1, 0, 4, TOLD, 0}}, 1, false, "log: record 1 is of worker 4; its session has 4, from 0"},
        {{{1, 0, 0, TOLD, 0}, {1, 0, 0, DRAINED, 0}, {1, 0, 0, GATHERED, 0}}, 3, false, NULL},
        {{{1, 0, 0, TOLD, 0}, {1, 0, 0, 6, 0}},
         2,
         false,
         "log: record 2 is of kind 6; there are 6, from 0; the log is damaged, or of a newer program"},
        {{{0, 0, 0, APPLIED, 1}},
         1,
         false,
         "log: record 1 is of kind 0; there are 6, from 0; the log is damaged, or of a newer program"},
        /* what a message to the root says */
        {{{1, 1, 0, TOLD, 0}}, 1, false, "log: record 1 is \"told\", and misses 1 updates, not 0"},
        {{{-1, 2, 0, LOST, 0}}, 1, false, "log: record 1 is \"lost\", and misses 2 updates, not 0"},
        {{{0, 0, 0, DRAINED, 0}},
         1,
         false,
         "log: record 1 is \"drained\" after 0 updates, but 1 come before it; records are missing, or there "
         "are "
         "too many"},
        {{{0, 0, 0, APPLIED, 0}, {2, 0, 1, APPLIED, 0}, {1, 0, 0, GATHERED, 0}},
         3,
         false,
         "log: record 3 is \"gathered\" after 1 updates, but 2 come before it; records are missing, or there "
         "are "
         "too many"},
        /* numbers of contributions */
        {{{-1, 0, 0, APPLIED, 0}}, 1, false, "log: record 1 is of contribution -1; they count from 0"},
        {{{2 * TR_UPDATE_STEPS_MOST + 1, 0, 0, DROPPED, 0}}, 1, false, NULL},
        {{{2 * TR_UPDATE_STEPS_MOST + 2, 0, 0, DROPPED, 0}},
         1,
         false,
         "log: record 1 is of contribution 2251799813685250; they count from 0"},
        /* a worker that is lost does no more */
        {{{-1, 0, 2, LOST, 0}, {0, 0, 1, APPLIED, 0}}, 2, false, NULL},
        {{{7, 0, 2, LOST, 0}, {0, 0, 2, DROPPED, 0}},
         2,
         false,
         "log: record 2: worker 2 hands in a gradient, but it was lost before; leave one of the two out"},
        {{{0, 0, 0, APPLIED, 0}, {-1, 0, 2, LOST, 0}, {1, 0, 2, APPLIED, 0}},
         3,
         false,
         "log: record 3: worker 2 hands in a gradient, but it was lost before; leave one of the two out"},
        /* a worker reads no version of before its last gradient, whether that made an update or not */
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 0, APPLIED, 0}}, 2, false, NULL},
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 1, APPLIED, 0}, {2, 1, 0, APPLIED, 0}}, 3, false, NULL},
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 1, APPLIED, 0}, {2, 1, 1, APPLIED, 0}},
         3,
         false,
         "log: record 3: worker 1 read version 1, but was at work until version 2; a worker reads no version "
         "of "
         "before its last gradient"},
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 1, APPLIED, 0}, {2, 1, 2, DROPPED, 0}, {3, 1, 2, DROPPED, 0}},
         4,
         false,
         "log: record 4: worker 2 read version 1, but was at work until version 2; a worker reads no version "
         "of "
         "before its last gradient"},
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 1, APPLIED, 0}, {2, 1, 2, DROPPED, 0}, {3, 0, 2, DROPPED, 0}},
         4,
         false,
         NULL},
        /* nor one of before the session */
        {{{0, 1, 0, APPLIED, 0}},
         1,
         false,
         "log: record 1: worker 0 read version 0, but was at work until version 1; a worker reads no version "
         "of "
         "before its last gradient"},
        /* another session: nobody is lost any more, and versions before it are out of reach */
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 3, APPLIED, 0}, {2, 0, 3, APPLIED, 0}}, 3, true, NULL},
        {{{0, 0, 0, APPLIED, 0}, {1, 0, 1, APPLIED, 0}, {2, 1, 0, APPLIED, 0}},
         3,
         true,
         "log: record 3: worker 0 read version 1, but was at work until version 2; a worker reads no version "
         "of "
         "before its last gradient"},
    };
    for (int64_t i = 0; i < COUNT; i++)
        expect_records(cases[i].record, cases[i].count, cases[i].two, cases[i].message);
}

/* Where one gradient makes an update, and one before them all waits for `missed` of them. */
static void expect_stale(enum tr_update_kind kind, int64_t staleness, uint32_t missed, const char *message)
{
    struct tr_update_log log = {0};
    struct tr_update_session session = {
        .workers = 2, .servers = 1, .parts = 1, .staleness = staleness, .steps = 9};
    must(tr_update_log_begin(&log, &session));
    for (uint32_t i = 0; i < missed; i++) must(tr_update_log_add(&log, &(struct tr_update){.number = i}, 1));
    const struct tr_update last = {.number = 8, .missed = missed, .worker = 1, .kind = (uint8_t)kind};
    must(tr_update_log_add(&log, &last, 1));
    expect_judged(&log, message);
    tr_update_log_release(&log);
}

static void gradients_are_not_too_stale(void **state)
{
    (void)state;
    expect_stale(TR_UPDATE_APPLIED, 3, 3, NULL);
    expect_stale(TR_UPDATE_APPLIED, 3, 4,
                 "log: record 5: a gradient is applied that missed 4 updates; its session allows 3");
    expect_stale(TR_UPDATE_DROPPED, 3, 4, NULL);
    expect_stale(TR_UPDATE_APPLIED, 0, 1,
                 "log: record 2: a gradient is applied that missed 1 updates; its session allows 0");
    /* As many updates as there are steps; what comes then is dropped. */
    expect_stale(TR_UPDATE_APPLIED, 9, 8, NULL);
    expect_stale(TR_UPDATE_APPLIED, 9, 9, "log: record 10 is update 10 of 9; leave it out");
    expect_stale(TR_UPDATE_DROPPED, 9, 9, NULL);
}

/* The last of as many workers as there may be, which was lost in a session before. */
static void all_workers_are_there_again(void **state)
{
    (void)state;
    struct tr_update_log log = {0};
    struct tr_update_session session = plain;
    const struct tr_update lost = {.number = -1, .worker = 4095, .kind = TR_UPDATE_LOST};
    const struct tr_update applied = {.worker = 4095};
    session.workers = 4096;
    must(tr_update_log_begin(&log, &session));
    must(tr_update_log_add(&log, &lost, 1));
    must(tr_update_log_begin(&log, &session));
    must(tr_update_log_add(&log, &applied, 1));
    expect_judged(&log, NULL);
    tr_update_log_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_sessions_have_bounds),
        cmocka_unit_test(sessions_follow_each_other),
        cmocka_unit_test(records_have_bounds),
        cmocka_unit_test(gradients_are_not_too_stale),
        cmocka_unit_test(all_workers_are_there_again),
    };
    return cmocka_run_group_tests_name("strategy.updates_rules", tests, NULL, NULL);
}
