/* Ranks in pairs, two on a host, in the time of a simulated cluster; what they warn of. For one file of a
 * test. */
#ifndef TESTS_COMM_PAIRS_H
#define TESTS_COMM_PAIRS_H

#include "base/alloc.h"
#include "base/text/log.h"
#include "comm/check.h"
#include "support/simulated.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct tr_cluster pairs_cluster = {
    .hosts = 6,
    .per_host = 2,
    .threads = 1,
    .remote = {.latency = 1e-3, .rate = 1e9, .copying = INFINITY, .eager = INT64_MAX},
    .local = {.latency = 1e-3, .rate = 1e9, .copying = INFINITY, .eager = INT64_MAX},
    .memory = INFINITY,
};

static char logged[1000]; /* the last line */
static int warnings;

static inline void pairs_keep(void *user, enum tr_log_level level, const char *message)
{
    (void)user;
    if (level == TR_LOG_WARNING) warnings++;
    snprintf(logged, sizeof logged, "%s", message);
}

/* Runs the function on every rank, and expects that nothing is left behind. */
static inline void pairs_run(int ranks, simulated_function function)
{
    const int64_t live = tr_alloc_live();
    warnings = 0;
    logged[0] = 0;
    tr_log_set_sink(pairs_keep, NULL, TR_LOG_WARNING);
    simulated_run(&pairs_cluster, ranks, NULL, function);
    tr_log_set_sink(NULL, NULL, TR_LOG_WARNING);
    assert_int_equal(tr_alloc_live(), live);
}

#endif
