/* The next turn that a schedule gives. */
#ifndef TESTS_STRATEGY_NEXT_H
#define TESTS_STRATEGY_NEXT_H

#include "strategy/parameter_server/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* It is this worker's, with the contribution of this number, on parameters of this version. */
static inline void expect_next(ps_schedule *schedule, int worker, int64_t number, int64_t version)
{
    struct ps_work work = {-1, -1, -1};
    assert_true(ps_schedule_next(schedule, true, &work));
    assert_int_equal(work.worker, worker);
    assert_int_equal(work.number, number);
    assert_int_equal(work.version, version);
    assert_true(ps_schedule_works(schedule, worker));
    assert_false(ps_schedule_waits(schedule, worker));
}

#endif
