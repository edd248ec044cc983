/* trireme plan: what its options order. The parts that measure and run are replaced by ones that write down
 * what they are asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/threads/team.h"
#include "cli/noting.h"
#include "cli/plan/plan.h"
#include "cli/printed.h"
#include "cli/program/arguments.h"
#include "cli/session.h"
#include "refuse.h"
#include "strategy/strategy.h"

static bool probes = true; /* messages of this host can be measured */

tr_status __wrap_cli_plan_probe(struct tr_path *out);
tr_status __wrap_cli_plan_probe(struct tr_path *out)
{
    note("probe ");
    *out = (struct tr_path){.latency = 3, .rate = 4};
    return probes ? TR_OK : tr_fail(TR_EUNSUPPORTED, "no");
}

tr_status __wrap_cli_plan_probe_hosts(const char *model, const char *hosts, int *count, int *each,
                                      struct tr_path *out);
tr_status __wrap_cli_plan_probe_hosts(const char *model, const char *hosts, int *count, int *each,
                                      struct tr_path *out)
{
    note("hosts(%s, %s) ", model, hosts);
    *count = 2;
    *each = 3;
    *out = (struct tr_path){.latency = 7, .rate = 8};
    return TR_OK;
}

tr_status __wrap_cli_plan_answer(const char *launched);
tr_status __wrap_cli_plan_answer(const char *launched)
{
    note("answer %s", noted_word(launched));
    return TR_OK;
}

/* One row, which has figures. */
tr_status __wrap_cli_plan_rows(const struct cli_plan_orders *o, struct tr_plan *plan);
tr_status __wrap_cli_plan_rows(const struct cli_plan_orders *o, struct tr_plan *plan)
{
    note("%s set=%d strategies=%s grow=%d,%d threads=%d seconds=%g run=%g calls=%d", o->model, o->set->count,
         o->strategies, o->grow, plan->grows, o->threads, o->seconds, o->run_seconds, (int)o->calls);
    note(" traces=%s hosts=%s device=%s isa=%s,%s", noted_word(o->traces), noted_word(o->hosts),
         o->device.name, noted_word(o->device.isa), plan->device);
    assert_int_equal(o->processors, tr_team_processors());
    note(" workers");
    for (int i = 0; i < o->worker_counts; i++) note("%s%d", i ? "," : "=", o->workers[i]);
    assert_string_equal(plan->name, "tiny");
    plan->row = tr_alloc_zero(1, sizeof *plan->row);
    if (!plan->row) return TR_ENOMEM;
    plan->rows = 1;
    plan->row[0] = (struct tr_plan_row){
        .strategy = tr_strdup("allreduce"), .workers = 1, .ranks = 1, .batch = 10, .microbatches = 3};
    plan->row[0].measured = NAN;
    plan->row[0].figures.seconds = 0.5;
    plan->row[0].figures.examples_per_second = 20;
    return plan->row[0].strategy ? TR_OK : TR_ENOMEM;
}

static struct tr_cluster cluster;
tr_status __wrap_cli_plan_figures(const struct cli_plan_orders *orders, const struct tr_job *job,
                                  struct cli_screen *screen, struct tr_plan *plan);
tr_status __wrap_cli_plan_figures(const struct cli_plan_orders *orders, const struct tr_job *job,
                                  struct cli_screen *screen, struct tr_plan *plan)
{
    (void)orders, (void)job, (void)screen;
    cluster = plan->cluster;
    return TR_OK;
}

tr_status __wrap_cli_plan_verify(const struct cli_plan_orders *orders, const struct tr_job *job,
                                 struct cli_screen *screen, int count, struct tr_plan *plan);
tr_status __wrap_cli_plan_verify(const struct cli_plan_orders *orders, const struct tr_job *job,
                                 struct cli_screen *screen, int count, struct tr_plan *plan)
{
    (void)orders, (void)job, (void)screen, (void)plan;
    note(" verify=%d", count);
    return TR_OK;
}

static tr_status plan(const char *words)
{
    printed_begin();
    const tr_status status = run_noted(&cli_plan, words);
    printed_end();
    return status;
}

static void expect(const char *words, const char *expected)
{
    if (plan(words) != TR_OK) fail_msg("%s: %s", words, tr_error_message());
    if (strcmp(noted, expected) != 0) fail_msg("%s\n%s\nnot\n%s", words, noted, expected);
}

static void options_are_orders(void **state)
{
    (void)state;
    expect("tiny.yaml --workers=2",
           "probe tiny.yaml set=0 strategies=all grow=0,0 threads=0 seconds=1 run=4 calls=3 traces=- hosts=- "
           "device=cpu isa=-,cpu workers=2");
    assert_true(cluster.hosts == 1 && cluster.per_host == tr_team_processors());
    assert_true(cluster.processors == tr_team_processors());
    assert_true(cluster.local.latency == 3 && cluster.local.rate == 4 && cluster.memory == 0);
    expect("tiny.yaml -s train.batch=9 -s seed=2 --strategies=pipeline --grow --threads=5 --seconds=0.25 "
           "--run-seconds=6 --steps=7 --traces=t --device=ref --isa=plain --simulate=8,3",
           "probe tiny.yaml set=2 strategies=pipeline grow=1,1 threads=5 seconds=0.25 run=6 calls=7 traces=t "
           "hosts=- device=ref isa=plain,ref workers=8,3");
    assert_int_equal(cluster.hosts, TR_STRATEGY_RANKS);
    expect("tiny.yaml --workers=1 --verify",
           "probe tiny.yaml set=0 strategies=all grow=0,0 threads=0 seconds=1 run=4 calls=3 traces=- hosts=- "
           "device=cpu isa=-,cpu workers=1 verify=3");
    plan("tiny.yaml --workers=1 --verify --runs=2");
    assert_non_null(strstr(noted, " verify=2"));
    plan("tiny.yaml --workers=1 --verify --runs=0"); /* all */
    assert_non_null(strstr(noted, " verify=1"));
    plan("tiny.yaml --workers=1 --runs=2");
    assert_null(strstr(noted, "verify"));
    expect("tiny.yaml --probe --launched=me", "answer me");
}

/* Hosts are measured, unless a file says how they are; of a host that is not measured as much is assumed as
   of an ordinary one. */
static void clusters_are_measured_or_described(void **state)
{
    (void)state;
    plan("tiny.yaml --hosts=a:3,b:3");
    static const char begun[] = "hosts(tiny.yaml, a:3,b:3) probe tiny.yaml ";
    assert_memory_equal(noted, begun, sizeof begun - 1);
    assert_non_null(strstr(noted, " hosts=a:3,b:3 "));
    assert_non_null(strstr(noted, " workers=1,2,4,6"));
    assert_true(cluster.hosts == 2 && cluster.per_host == 3);
    assert_true(cluster.processors == tr_team_processors());
    assert_true(cluster.remote.latency == 7 && cluster.remote.rate == 8);
    write_text("cluster.yaml", "hosts: 4\nranks_per_host: 2\nthreads: 3\nlocal_rate: 5\nlocal_latency: 1\n");
    plan("tiny.yaml --cluster=cluster.yaml");
    assert_memory_equal(noted, "tiny.yaml ", 10); /* nothing is to be measured */
    assert_non_null(strstr(noted, " threads=3 "));
    assert_non_null(strstr(noted, " workers=1,2,4,8"));
    assert_true(cluster.hosts == 4 && cluster.per_host == 2);
    plan("tiny.yaml --cluster=cluster.yaml --hosts=a:3,b:3 --threads=2");
    assert_non_null(strstr(noted, " threads=2 "));
    assert_true(cluster.hosts == 4 && cluster.per_host == 2); /* the file says it */
    write_text("part.yaml", "hosts: 1\nlocal_rate: 5\n");
    plan("tiny.yaml --cluster=part.yaml");
    assert_memory_equal(noted, "probe tiny.yaml ", 16);
    assert_true(cluster.local.latency == 3);
    write_text("part.yaml", "hosts: 1\nlocal_latency: 5\n");
    plan("tiny.yaml --cluster=part.yaml");
    assert_memory_equal(noted, "probe tiny.yaml ", 16);
    assert_true(cluster.local.rate == 4);
    probes = false;
    plan("tiny.yaml --workers=1");
    probes = true;
    assert_true(cluster.local.latency == tr_cluster_ordinary.local.latency);
    assert_true(cluster.local.rate == tr_cluster_ordinary.local.rate);
    assert_int_equal(plan("tiny.yaml --cluster=none.yaml"), TR_ENOTFOUND);
}

static void files_are_written(void **state)
{
    static const struct {
        const char *words, *wrong, *begins;
    } cases[] = {
        {"tiny.yaml --workers=1 --json=x", "tiny.yaml --workers=1 --json=none/x", "{"},
        {"tiny.yaml --workers=1 --page=x", "tiny.yaml --workers=1 --page=none/x", "<!DOCTYPE html>"},
        {"tiny.yaml --workers=1 --picture=x", "tiny.yaml --workers=1 --picture=none/x", "<"},
    };
    struct tr_file_content content;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (plan(cases[i].words) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(tr_file_read("x", 1 << 20, &content), TR_OK);
        assert_memory_equal(content.data, cases[i].begins, strlen(cases[i].begins));
        tr_file_content_free(&content);
        assert_int_equal(remove("x"), 0);
        /* Before it takes its time. */
        assert_int_not_equal(plan(cases[i].wrong), TR_OK);
        assert_non_null(strstr(tr_error_message(), "there is no directory \"none\""));
        assert_string_equal(noted, "");
    }
}

/* Without memory the command fails, or it prints and writes all of it. */
static void memory_is_refused(void **state)
{
    static const char *const words[] = {"tiny.yaml", "--hosts=a:2,b:2", "--json=j",
                                        "--page=h",  "--picture=p",     "--no-data-cache"},
                             *const files[] = {"j", "h", "p"};
    static const char *const environment[] = {NULL};
    char whole[4096] = "";
    int64_t size[3] = {0};
    (void)state;
    for (int64_t at = INT64_MAX, done = 0; !done; at++) {
        const bool first = at == INT64_MAX;
        void *options;
        for (int i = 0; i < 3; i++) remove(files[i]);
        noted[0] = '\0';
        assert_int_equal(cli_command_read(&cli_plan, 6, words, environment, &options), TR_OK);
        const int64_t live = tr_alloc_live();
        printed_begin();
        refuse_begin(at);
        const tr_status status = cli_plan.run(options);
        done = refuse_end() && !first;
        const char *text = printed_end();
        assert_int_equal(tr_alloc_live(), live);
        cli_command_release(&cli_plan, &options);
        if (status != TR_OK && (status != TR_ENOMEM || first || done))
            fail_msg("allocation %d: %s", (int)at, tr_error_message());
        if (first) {
            snprintf(whole, sizeof whole, "%s", text);
            at = -1;
        }
        if (status == TR_OK && strcmp(text, whole) != 0) fail_msg("allocation %d: %s", (int)at, text);
        for (int i = 0; i < 3 && status == TR_OK; i++) {
            struct tr_file_content content;
            assert_int_equal(tr_file_read(files[i], 1 << 20, &content), TR_OK);
            if (first) size[i] = (int64_t)content.size;
            assert_int_equal(content.size, size[i]);
            tr_file_content_free(&content);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_orders),
        cmocka_unit_test(clusters_are_measured_or_described),
        cmocka_unit_test(files_are_written),
        cmocka_unit_test(memory_is_refused),
    };
    return cmocka_run_group_tests_name("cli.plan_command", tests, place_make, place_remove);
}
