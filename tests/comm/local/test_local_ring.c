/* Rings between processes: frames of all sizes come out whole and in order, wherever the end of the ring is;
 * and whatever another process may write there, the reader reads nothing outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "comm/local/ring.h"

#include <string.h>

#define SIZES 8 /* of groups, whose rings have different capacities */

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static unsigned char byte_at(uint64_t frame, uint64_t at)
{
    return (unsigned char)(frame * 31 + at * 7 + at / 251);
}

/* Frames written and not yet read. */
struct expected {
    uint64_t cookie[512];
    uint64_t count[512];
    int first, last;
};

static bool write_one(struct local_writer *writer, struct expected *expected, unsigned char *data,
                      uint64_t cookie)
{
    size_t piece = tr_local_ring_piece(writer->capacity);
    /* Small ones, any, and the largest. */
    uint32_t kind = draw(3);
    uint64_t count = kind == 0 ? draw(20) : kind == 1 ? draw((uint32_t)piece) : piece - draw(3);
    struct local_frame frame = {.kind = LOCAL_MORE, .cookie = cookie, .count = count};
    bool done;
    for (uint64_t i = 0; i < count; i++) data[i] = byte_at(cookie, i);
    assert_int_equal(tr_local_write(writer, &frame, data, &done), TR_OK);
    if (!done) return false;
    expected->cookie[expected->last % 512] = cookie;
    expected->count[expected->last++ % 512] = count;
    return true;
}

/* True if there was a frame. Counts how often the sender was to be told of room. */
static bool read_one(struct local_reader *reader, struct expected *expected, unsigned char *data,
                     int *relieved)
{
    struct local_frame frame;
    bool found;
    assert_int_equal(tr_local_read(reader, &frame, &found), TR_OK);
    assert_int_equal(found, expected->first < expected->last);
    if (!found) return false;
    assert_int_equal(frame.kind, LOCAL_MORE);
    assert_int_equal(frame.cookie, expected->cookie[expected->first % 512]);
    assert_int_equal(frame.count, expected->count[expected->first++ % 512]);
    *relieved += tr_local_take(reader, &frame, data);
    for (uint64_t i = 0; i < frame.count; i++) assert_int_equal(data[i], byte_at(frame.cookie, i));
    return true;
}

static void test_frames(void **state)
{
    (void)state;
    static const int size[SIZES] = {1, 2, 3, 16, 40, 64, 100, 256};
    static unsigned char data[1 << 18];
    for (int s = 0; s < SIZES; s++) {
        struct local_area area;
        static struct expected expected;
        memset(&expected, 0, sizeof expected);
        seed = (uint64_t)s;
        assert_int_equal(tr_local_area_create(size[s], &area), TR_OK);
        int to = size[s] - 1, full = 0, relieved = 0;
        struct local_writer writer = tr_local_writer(&area, 0, to);
        struct local_reader reader = tr_local_reader(&area, 0, to);
        assert_true(4 * (tr_local_ring_piece(writer.capacity) + sizeof(struct local_frame)) <=
                    writer.capacity);
        for (uint64_t cookie = 0; cookie < 3000;) {
            /* Bursts in both directions, so that it is empty, full and in between. */
            for (uint32_t i = draw(8); i > 0 && expected.last - expected.first < 512; i--) {
                if (write_one(&writer, &expected, data, cookie)) {
                    cookie++;
                    continue;
                }
                full++;
                /* Room is announced before the ring is empty, and once. */
                int before = relieved;
                while (read_one(&reader, &expected, data, &relieved)) continue;
                assert_int_equal(relieved, before + 1);
            }
            for (uint32_t i = draw(8); i > 0 && read_one(&reader, &expected, data, &relieved); i--) continue;
        }
        while (read_one(&reader, &expected, data, &relieved)) continue;
        assert_true(full > 0);
        tr_local_area_close(&area);
    }
}

/* Messages that are read soon stay within the first part of a ring, so that a pair takes little memory. */
static void test_stays_small(void **state)
{
    (void)state;
    struct local_area area;
    unsigned char data[64] = {0};
    assert_int_equal(tr_local_area_create(2, &area), TR_OK);
    struct local_writer writer = tr_local_writer(&area, 0, 1);
    struct local_reader reader = tr_local_reader(&area, 0, 1);
    for (int i = 0; i < 100000; i++) {
        struct local_frame frame = {.kind = LOCAL_MORE, .count = (uint64_t)(i % 64)};
        bool done, found;
        assert_int_equal(tr_local_write(&writer, &frame, data, &done), TR_OK);
        assert_int_equal(tr_local_read(&reader, &frame, &found), TR_OK);
        assert_true(done && found);
        tr_local_take(&reader, &frame, data);
        assert_true(reader.tail % reader.capacity <= reader.capacity / 4 + 256);
    }
    tr_local_area_close(&area);
}

/* Counts that another process damaged, and frames that do not fit what is there. */
static void test_damage(void **state)
{
    (void)state;
    struct local_area area;
    struct local_frame frame;
    bool done, found;
    for (int round = 0; round < 6; round++) {
        assert_int_equal(tr_local_area_create(2, &area), TR_OK);
        struct local_writer writer = tr_local_writer(&area, 0, 1);
        struct local_reader reader = tr_local_reader(&area, 0, 1);
        frame = (struct local_frame){.kind = LOCAL_MORE};
        assert_int_equal(tr_local_write(&writer, &frame, NULL, &done), TR_OK);
        struct local_frame *there = (struct local_frame *)(void *)writer.ring->data;
        if (round == 0) atomic_store(&writer.ring->head, writer.capacity + 8); /* more than fits */
        if (round == 1) atomic_store(&writer.ring->head, 8);                   /* less than a frame */
        if (round == 2) there->count = 1;                                      /* more than was published */
        if (round == 3) there->count = UINT64_MAX - 3;
        if (round == 4) there->count = INT64_MAX;
        if (round == 5) atomic_store(&writer.ring->head, (uint64_t)-64); /* backwards */
        assert_int_equal(tr_local_read(&reader, &frame, &found), TR_EPEER);
        assert_false(found);
        assert_non_null(strstr(tr_error_message(), "is damaged"));
        atomic_store(&writer.ring->tail, round % 2 ? 1000 : UINT64_MAX); /* beyond what was written */
        assert_int_equal(tr_local_write(&writer, &frame, NULL, &done), TR_EPEER);
        assert_false(done);
        tr_local_area_close(&area);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_stays_small),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests_name("comm.local_ring", tests, NULL, NULL);
}
