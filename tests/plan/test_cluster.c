/* Descriptions of clusters: their units, and what they leave as it is. */
#include "plan/cluster.h"

#include "base/fail.h"
#include "scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static tr_status read_text(const char *text, struct tr_cluster *out)
{
    char path[SCRATCH_PATH];
    struct tr_cluster_options options;
    scratch_join(path, scratch_place, "cluster.yaml");
    assert_int_equal(tr_file_write_atomic(NULL, path, text, strlen(text)), TR_OK);
    TR_TRY(tr_options_defaults(tr_cluster_option_table, tr_cluster_option_count, &options));
    TR_TRY(tr_cluster_read(path, &options));
    tr_cluster_take(&options, out);
    return TR_OK;
}

static void near(double is, double expected)
{
    if (!(fabs(is - expected) <= 1e-12 * expected)) fail_msg("%g, not %g", is, expected);
}

/* Gigabits and gigabytes a second, and microseconds. */
static void units_are_those_of_the_description(void **state)
{
    static const char text[] =
        "hosts: 16\nranks_per_host: 4\nthreads: 3\nprocessors: 12\nlink: 10\nlatency: 50\n"
        "overhead: 7\ncopying: 3\nlocal_rate: 5\nlocal_latency: 0.5\nlocal_overhead: 0.25\n"
        "local_waking: 40\nmemory: 6\n";
    struct tr_cluster cluster = {.naps = true, .local = {.eager = 77}};
    (void)state;
    if (read_text(text, &cluster) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(cluster.hosts, 16);
    assert_int_equal(cluster.per_host, 4);
    assert_int_equal(cluster.threads, 3);
    assert_int_equal(cluster.processors, 12);
    near(cluster.remote.rate, 10e9 / 8);
    near(cluster.remote.latency, 50e-6);
    near(cluster.remote.overhead, 7e-6);
    near(cluster.remote.copying, 3e9);
    near(cluster.local.rate, 5e9);
    near(cluster.local.copying, 5e9); /* all of the time within a host is the processors' */
    near(cluster.local.latency, 0.5e-6);
    near(cluster.local.overhead, 0.25e-6);
    near(cluster.local.waking, 40e-6);
    near(cluster.memory, 6e9);
    assert_true(cluster.naps && cluster.local.eager == 77);
}

/* What is not given stays; the defaults are those that the help tells. */
static void what_is_not_given_stays(void **state)
{
    struct tr_cluster cluster = tr_cluster_ordinary;
    (void)state;
    cluster.threads = 5;
    cluster.processors = 9;
    if (read_text("hosts: 2\n", &cluster) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(cluster.hosts, 2);
    assert_int_equal(cluster.per_host, 1);
    assert_int_equal(cluster.threads, 5);
    assert_int_equal(cluster.processors, 9);
    near(cluster.remote.rate, 10e9 / 8);
    near(cluster.remote.latency, 20e-6);
    near(cluster.remote.overhead, 5e-6);
    near(cluster.remote.copying, 2e9);
    near(cluster.local.rate, 2e9);
    near(cluster.local.latency, 2e-6);
    near(cluster.local.overhead, 1e-6);
    near(cluster.local.waking, 30e-6);
    near(cluster.memory, 8e9);
}

static void other_descriptions_are_refused(void **state)
{
    static const char *const cases[][2] = {{"hosts: 0\n", "hosts"},
                                           {"hosts: 4097\n", "hosts"},
                                           {"links: 3\n", "did you mean \"link\"?"},
                                           {"latency: -1\n", "latency"}};
    struct tr_cluster cluster = tr_cluster_ordinary;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_not_equal(read_text(cases[i][0], &cluster), TR_OK);
        if (!strstr(tr_error_message(), cases[i][1])) fail_msg("%s: %s", cases[i][0], tr_error_message());
    }
    assert_int_equal(cluster.hosts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_are_those_of_the_description),
        cmocka_unit_test(what_is_not_given_stays),
        cmocka_unit_test(other_descriptions_are_refused),
    };
    return cmocka_run_group_tests_name("plan.cluster", tests, scratch_place_make, scratch_place_remove);
}
