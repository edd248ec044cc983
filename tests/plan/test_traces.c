/* Traces of simulated ranks, as SimGrid reads them: every action once, in its order, messages with the same
 * number at both ends, and the cluster beside them. (SimGrid itself replays some in plan.replay.)
 */
#include "plan/world/traces.h"

#include "base/fail.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { RANKS = 5, TAGS = 100 };

static const struct tr_cluster cluster = {.hosts = 2,
                                          .per_host = 2,
                                          .remote = {.latency = 5e-5, .rate = 1.25e7},
                                          .local = {.latency = 2e-6, .rate = 2e9}};

static struct tr_traces *begin(void)
{
    struct tr_traces *traces;
    assert_int_equal(tr_traces_create(scratch_place, "local-sgd,every=2", RANKS, &cluster, &traces), TR_OK);
    return traces;
}

/* A file of the traces; free with tr_file_content_free(). */
static struct tr_file_content read_file(const char *name)
{
    char path[SCRATCH_PATH], folder[SCRATCH_PATH];
    struct tr_file_content content;
    scratch_join(path, scratch_join(folder, scratch_place, "local-sgd-every-2-5"), name);
    if (tr_file_read(path, 1 << 20, &content) != TR_OK) fail_msg("%s", tr_error_message());
    return content;
}

static void expect_file(const char *name, const char *expected)
{
    struct tr_file_content content = read_file(name);
    assert_string_equal(content.data, expected);
    tr_file_content_free(&content);
}

/* What is computed between two messages is one action. */
static void actions_have_their_order(void **state)
{
    int number = -1, asked = -1, end = 0;
    (void)state;
    struct tr_traces *traces = begin();
    const struct tr_sim_listener *tell = tr_traces_listener(traces);
    tell->computes(tell->user, 0, 1e-6);
    tell->computes(tell->user, 0, 2.5e-6);
    tell->sends(tell->user, 0, 1, 7, 1000);
    tell->computes(tell->user, 0, 4e-9);
    tell->receives(tell->user, 1, 0, 7, 1000);
    tell->computes(tell->user, 1, 0.5);
    tell->received(tell->user, 1, 0, 7);
    assert_int_equal(tr_traces_finish(traces, 1.5), TR_OK);
    tr_traces_destroy(&traces);
    assert_null(traces);
    struct tr_file_content content = read_file("rank-0.txt");
    assert_int_equal(sscanf(content.data,
                            "0 init\n0 compute 3500\n0 isend 1 %d 1000\n0 compute 4\n0 finalize\n%n", &number,
                            &end),
                     1);
    assert_int_equal(end, content.size);
    tr_file_content_free(&content);
    content = read_file("rank-1.txt");
    end = 0;
    assert_int_equal(sscanf(content.data,
                            "1 init\n1 irecv 0 %d 1000\n1 compute 500000000\n1 wait 0 1 %d\n1 finalize\n%n",
                            &asked, &number, &end),
                     2);
    assert_int_equal(end, content.size);
    assert_int_equal(asked, number);
    tr_file_content_free(&content);
    expect_file("rank-4.txt", "4 init\n4 finalize\n");
}

/* The numbers of one kind of a rank's actions, in their order. */
static int numbers_of(const char *file, const char *action, int *numbers)
{
    struct tr_file_content content = read_file(file);
    int count = 0;
    for (const char *at = content.data; (at = strstr(at, action)) != NULL; at++) {
        at += strlen(action);
        numbers[count++] = (int)strtol(at, NULL, 10);
        assert_true(count <= 2 * TAGS);
    }
    tr_file_content_free(&content);
    return count;
}

/* Two messages for each of many tags, and as many back: the receiver waits for each by the number under which
   it is sent, and the two of a tag have different ones. */
static void messages_have_numbers(void **state)
{
    static int sent[2 * TAGS], asked[2 * TAGS], waited[2 * TAGS], back[2 * TAGS];
    (void)state;
    struct tr_traces *traces = begin();
    const struct tr_sim_listener *tell = tr_traces_listener(traces);
    for (int turn = 0; turn < 2; turn++)
        for (int tag = 0; tag < TAGS; tag++) {
            tell->sends(tell->user, 0, 3, tag, 8);
            tell->receives(tell->user, 3, 0, tag, 8);
            tell->sends(tell->user, 3, 0, tag, 8);
        }
    for (int turn = 0; turn < 2; turn++)
        for (int tag = 0; tag < TAGS; tag++) tell->received(tell->user, 3, 0, tag);
    assert_int_equal(tr_traces_finish(traces, 1), TR_OK);
    tr_traces_destroy(&traces);
    assert_int_equal(numbers_of("rank-0.txt", "0 isend 3 ", sent), 2 * TAGS);
    assert_int_equal(numbers_of("rank-3.txt", "3 irecv 0 ", asked), 2 * TAGS);
    assert_int_equal(numbers_of("rank-3.txt", "3 wait 0 3 ", waited), 2 * TAGS);
    assert_int_equal(numbers_of("rank-3.txt", "3 isend 0 ", back), 2 * TAGS);
    assert_memory_equal(sent, asked, sizeof sent);
    assert_memory_equal(sent, waited, sizeof sent);
    assert_memory_equal(sent, back, sizeof sent); /* each direction counts by itself */
    for (int tag = 0; tag < TAGS; tag++) {
        assert_int_not_equal(sent[tag], sent[TAGS + tag]);
        if (tag > 0) assert_int_not_equal(sent[tag], sent[tag - 1]);
    }
}

/* A message crosses two links between hosts, each with half of the latency. */
static void the_cluster_is_described(void **state)
{
    static const char *const parts[] = {"radical=\"0-1\"", "speed=\"1000000000f\"", "core=\"2\"",
                                        " bw=\"12500000Bps\" lat=\"0.000025000s\"",
                                        "loopback_bw=\"2000000000Bps\" loopback_lat=\"0.000002000s\""};
    char wanted[4 * SCRATCH_PATH] = "";
    (void)state;
    struct tr_traces *traces = begin();
    assert_int_equal(tr_traces_finish(traces, 1.5), TR_OK);
    tr_traces_destroy(&traces);
    expect_file("hosts.txt", "host-0\nhost-0\nhost-1\nhost-1\nhost-0\n");
    expect_file("seconds.txt", "1.500000000\n");
    for (int rank = 0; rank < RANKS; rank++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted),
                 "%s/local-sgd-every-2-5/rank-%d.txt\n", scratch_place, rank);
    expect_file("traces.txt", wanted);
    struct tr_file_content content = read_file("platform.xml");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strstr(content.data, parts[i])) fail_msg("no %s in %s", parts[i], content.data);
    tr_file_content_free(&content);
}

/* Without memory for any part of them there are no traces, rather than some without a few of their actions.
 */
static void all_or_none_are_kept(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_traces *traces;
        int64_t live = tr_alloc_live();
        refuse_begin(at);
        tr_status status = tr_traces_create(scratch_place, "local-sgd,every=2", RANKS, &cluster, &traces);
        if (status == TR_OK) {
            const struct tr_sim_listener *tell = tr_traces_listener(traces);
            for (int tag = 0; tag < TAGS; tag++) {
                tell->sends(tell->user, 1, 2, tag, 8);
                tell->receives(tell->user, 2, 1, tag, 8);
                tell->received(tell->user, 2, 1, tag);
            }
            /* A first one of a rank that comes by itself. */
            tell->received(tell->user, 4, 1, 0);
            status = tr_traces_finish(traces, 1);
        } else {
            assert_null(traces);
        }
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_traces_destroy(&traces);
        assert_null(traces);
        assert_int_equal(tr_alloc_live(), live);
    }
    static int sent[2 * TAGS], waited[2 * TAGS];
    assert_int_equal(numbers_of("rank-1.txt", "1 isend 2 ", sent), TAGS);
    assert_int_equal(numbers_of("rank-2.txt", "2 wait 1 2 ", waited), TAGS);
    assert_memory_equal(sent, waited, sizeof sent);
}

static void a_file_is_in_their_way(void **state)
{
    struct tr_traces *traces;
    (void)state;
    scratch_write_text("easgd-5", "");
    tr_status status = tr_traces_create(scratch_place, "easgd", RANKS, &cluster, &traces);
    if (status == TR_OK) status = tr_traces_finish(traces, 1);
    tr_traces_destroy(&traces);
    assert_int_not_equal(status, TR_OK);
    if (!strstr(tr_error_message(), "easgd-5")) fail_msg("no name in %s", tr_error_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_have_their_order), cmocka_unit_test(messages_have_numbers),
        cmocka_unit_test(the_cluster_is_described), cmocka_unit_test(all_or_none_are_kept),
        cmocka_unit_test(a_file_is_in_their_way),
    };
    return cmocka_run_group_tests_name("plan.traces", tests, scratch_place_make, scratch_place_remove);
}
