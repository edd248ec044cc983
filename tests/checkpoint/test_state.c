/* States that a program gives: as bytes, or by a function that hands out as much as it likes; and a stream
 * without memory to write or read it. */
#include "base/alloc.h"
#include "base/fail.h"
#include "checkpoint/sample.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* More than two of the steps in which the reader's memory grows, and no multiple of them. */
#define FLOATS 60001

static uint8_t packed[1 << 19];
static size_t packed_size;
static float values[FLOATS];

static void assert_message_has(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}

static tr_status gather(void *user, const void *data, size_t size)
{
    (void)user;
    assert_true(packed_size + size <= sizeof packed);
    memcpy(packed + packed_size, data, size);
    packed_size += size;
    return TR_OK;
}

static tr_status pack_large(const struct tr_stored_sink *sink)
{
    const struct tr_stored_tensor tensor = {"conv1.weight", TR_DTYPE_F32, 1, {FLOATS}, values};
    const struct tr_checkpoint_content content = {
        .facts = {.step = 9, .microbatches = 1, .model_digest = "", .data_digest = "", .parameter_hash = ""},
        .group = {[TR_CHECKPOINT_PARAMETERS] = {&tensor, 1, NULL}},
    };
    packed_size = 0;
    return tr_checkpoint_pack(sink, &content);
}

static int make_packed(void **state)
{
    (void)state;
    for (int i = 0; i < FLOATS; i++) values[i] = (float)i / 7;
    return pack_large(&(struct tr_stored_sink){gather, NULL}) != TR_OK;
}

/* Gives the packed bytes in pieces. */
struct flow {
    size_t at, most; /* most: of one call */
    int64_t last;    /* returned at the end */
    size_t end;
    size_t largest; /* room that was offered */
};

static int64_t give(void *user, void *bytes, size_t room)
{
    struct flow *flow = user;
    assert_true(room > 0);
    if (room > flow->largest) flow->largest = room;
    size_t size = flow->end - flow->at;
    if (size == 0) return flow->last;
    if (size > flow->most) size = flow->most;
    if (size > room) size = room;
    memcpy(bytes, packed + flow->at, size);
    flow->at += size;
    return (int64_t)size;
}

static void assert_is_whole(tr_checkpoint **checkpoint)
{
    static float found[FLOATS];
    size_t size;
    const struct tr_stored_tensor tensor = {"conv1.weight", TR_DTYPE_F32, 1, {FLOATS}, found};
    memset(found, 0, sizeof found);
    assert_string_equal(tr_checkpoint_path(*checkpoint), TR_CHECKPOINT_MEMORY);
    assert_int_equal(tr_checkpoint_facts(*checkpoint)->step, 9);
    assert_null(tr_checkpoint_skipped(*checkpoint));
    const void *bytes = tr_checkpoint_packed(*checkpoint, &size);
    assert_int_equal(size, packed_size);
    assert_memory_equal(bytes, packed, packed_size);
    assert_int_equal(tr_checkpoint_load(*checkpoint, TR_CHECKPOINT_PARAMETERS, &tensor, 1), TR_OK);
    assert_memory_equal(found, values, sizeof values);
    tr_checkpoint_close(checkpoint);
    assert_null(*checkpoint);
}

static void functions_give_as_much_as_they_like(void **state)
{
    (void)state;
    static const size_t most[] = {1, 777, 1 << 16, (1 << 16) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        struct flow flow = {.most = most[i], .end = packed_size};
        const struct tr_run_state given = {.read = give, .user = &flow};
        tr_checkpoint *checkpoint;
        assert_true(tr_checkpoint_state_is_given(&given));
        assert_int_equal(tr_checkpoint_open_state(&given, &checkpoint), TR_OK);
        assert_int_equal(flow.at, packed_size);
        assert_is_whole(&checkpoint);
    }
}

static void bytes_are_borrowed(void **state)
{
    (void)state;
    const struct tr_run_state given = {.bytes = packed, .size = packed_size}, none = {0};
    tr_checkpoint *checkpoint;
    size_t size;
    assert_false(tr_checkpoint_state_is_given(&none));
    assert_true(tr_checkpoint_state_is_given(&given));
    assert_int_equal(tr_checkpoint_open_state(&given, &checkpoint), TR_OK);
    assert_ptr_equal(tr_checkpoint_packed(checkpoint, &size), packed);
    assert_is_whole(&checkpoint);
}

static void streams_that_end_badly(void **state)
{
    (void)state;
    static const struct {
        size_t end;
        int64_t last;
        const char *message;
    } cases[] = {
        {100, -1, "the function that gives the state ended it with -1 after 100 bytes"},
        {0, -77, "ended it with -77 after 0 bytes"},
        {100, 1 << 20, "ended it with 1048576 after 100 bytes"},
        {100, (1 << 16) - 99, "ended it with 65437 after 100 bytes"}, /* one more than there was room for */
    };
    tr_checkpoint *checkpoint;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct flow flow = {.most = SIZE_MAX, .end = cases[i].end, .last = cases[i].last};
        const int64_t live = tr_alloc_live();
        checkpoint = (tr_checkpoint *)packed;
        assert_int_equal(
            tr_checkpoint_open_state(&(struct tr_run_state){.read = give, .user = &flow}, &checkpoint),
            TR_EIO);
        assert_message_has(cases[i].message);
        assert_null(checkpoint);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Too short, it is a damaged one. */
    struct flow flow = {.most = SIZE_MAX, .end = 2000};
    const int64_t live = tr_alloc_live();
    assert_int_not_equal(
        tr_checkpoint_open_state(&(struct tr_run_state){.read = give, .user = &flow}, &checkpoint), TR_OK);
    assert_null(checkpoint);
    assert_int_equal(tr_alloc_live(), live);
    flow = (struct flow){.most = SIZE_MAX, .end = packed_size};
    const struct tr_run_state twice = {.bytes = packed, .size = packed_size, .read = give, .user = &flow};
    assert_int_equal(tr_checkpoint_open_state(&twice, &checkpoint), TR_EINVAL);
    assert_message_has("a state is given as bytes and by a function; give one of them");
    assert_null(checkpoint);
    assert_int_equal(flow.at, 0);
}

static tr_status open_flow(tr_checkpoint **checkpoint)
{
    struct flow flow = {.most = 10000, .end = packed_size};
    return tr_checkpoint_open_state(&(struct tr_run_state){.read = give, .user = &flow}, checkpoint);
}

/* What is borrowed stays with the caller. */
static tr_status open_borrowed(tr_checkpoint **checkpoint)
{
    return tr_checkpoint_open_packed(packed, packed_size, false, checkpoint);
}

static void every_allocation_of_a_reader_fails(void **state)
{
    static tr_status (*const opens[])(tr_checkpoint * *checkpoint) = {open_flow, open_borrowed};
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            tr_checkpoint *checkpoint;
            refuse_begin(at);
            const tr_status status = opens[i](&checkpoint);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            if (done)
                assert_is_whole(&checkpoint);
            else
                assert_null(checkpoint);
            assert_int_equal(tr_alloc_live(), live);
        }
}

static tr_status discard(void *user, const void *data, size_t size)
{
    int64_t *left = user;
    (void)data, (void)size;
    return (*left)-- == 0 ? tr_fail(TR_EPEER, "the other side is gone") : TR_OK;
}

static void every_allocation_of_a_writer_fails(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        int64_t calls = -1;
        refuse_begin(at);
        const tr_status status = sample_pack(&(struct tr_stored_sink){discard, &calls}, 3);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (!done) assert_message_has("checkpoint of step 3 not saved");
        assert_int_equal(tr_alloc_live(), live);
    }
}

/* A sink's own failure comes back, whichever of its calls it is. */
static void every_call_of_a_sink_fails(void **state)
{
    (void)state;
    tr_status status = TR_EPEER;
    int64_t at = 0;
    for (; status != TR_OK; at++) {
        const int64_t live = tr_alloc_live();
        int64_t left = at;
        status = sample_pack(&(struct tr_stored_sink){discard, &left}, 3);
        assert_int_equal(tr_alloc_live(), live);
        if (status == TR_OK) {
            assert_true(left >= 0);
            continue;
        }
        assert_int_equal(left, -1); /* nothing is written after it */
        assert_int_equal(status, TR_EPEER);
        assert_message_has("checkpoint of step 3 not saved");
        assert_message_has("the other side is gone");
    }
    assert_true(at > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_give_as_much_as_they_like),
        cmocka_unit_test(bytes_are_borrowed),
        cmocka_unit_test(streams_that_end_badly),
        cmocka_unit_test(every_allocation_of_a_reader_fails),
        cmocka_unit_test(every_allocation_of_a_writer_fails),
        cmocka_unit_test(every_call_of_a_sink_fails),
    };
    return cmocka_run_group_tests(tests, make_packed, NULL);
}
