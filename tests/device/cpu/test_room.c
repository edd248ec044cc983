/* What a member of the team may fill of each cache. */
#include "device/cpu/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define KIB(n) ((int64_t)(n) << 10)
#define MIB(n) ((int64_t)(n) << 20)

static const struct {
    struct tr_caches caches;
    int threads, processors;
    int64_t first, second, last; /* expected */
} cases[] = {
    /* nothing is known */
    {{{{0, 0}, {0, 0}, {0, 0}}}, 4, 8, KIB(32), MIB(1), MIB(16)},
    /* its own first and second level; the third one is divided among the members */
    {{{{KIB(32), 1}, {MIB(2), 1}, {MIB(32), 8}}}, 4, 8, KIB(32), MIB(2), MIB(8)},
    {{{{KIB(32), 1}, {MIB(2), 1}, {MIB(32), 8}}}, 8, 8, KIB(32), MIB(2), MIB(4)},
    {{{{KIB(32), 1}, {MIB(2), 1}, {MIB(15), 8}}}, 3, 8, KIB(32), MIB(2), MIB(5)},
    /* four of sixteen processors share it: one, two, then three of six members */
    {{{{KIB(32), 1}, {MIB(1), 1}, {MIB(12), 4}}}, 4, 16, KIB(32), MIB(1), MIB(12)},
    {{{{KIB(32), 1}, {MIB(1), 1}, {MIB(12), 4}}}, 5, 16, KIB(32), MIB(1), MIB(6)},
    {{{{KIB(32), 1}, {MIB(1), 1}, {MIB(12), 4}}}, 8, 16, KIB(32), MIB(1), MIB(6)},
    {{{{KIB(32), 1}, {MIB(1), 1}, {MIB(12), 4}}}, 9, 16, KIB(32), MIB(1), MIB(4)},
    /* more members than processors have the part of a processor */
    {{{{KIB(32), 1}, {MIB(1), 2}, {MIB(16), 2}}}, 9, 2, KIB(32), KIB(512), MIB(8)},
    /* limits */
    {{{{KIB(4), 1}, {KIB(64), 1}, {MIB(1), 1}}}, 1, 1, KIB(8), KIB(128), MIB(4)},
    {{{{KIB(8) + 1, 1}, {KIB(128) + 1, 1}, {MIB(4) + 1, 1}}}, 1, 1, KIB(8) + 1, KIB(128) + 1, MIB(4) + 1},
    {{{{KIB(48), 1}, {MIB(8), 1}, {MIB(300), 1}}}, 1, 1, KIB(32), MIB(4), MIB(16)},
    {{{{KIB(32) - 1, 1}, {MIB(4) - 1, 1}, {MIB(16) - 1, 1}}}, 1, 1, KIB(32) - 1, MIB(4) - 1, MIB(16) - 1},
    /* without a third level, the second is the last */
    {{{{KIB(32), 1}, {MIB(12), 4}, {0, 0}}}, 2, 4, KIB(32), MIB(4), MIB(6)},
};

static void members_share_what_their_processors_share(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cpu_room room = cpu_room_of(&cases[i].caches, cases[i].threads, cases[i].processors);
        if (room.first != cases[i].first || room.second != cases[i].second || room.last != cases[i].last)
            fail_msg("case %zu: %lld, %lld and %lld bytes", i, (long long)room.first, (long long)room.second,
                     (long long)room.last);
        assert_int_equal(room.shared, CPU_ROOM_SHARED);
    }
}

static void sizes_scale_with_the_cache(void **state)
{
    (void)state;
    const struct cpu_room room = {KIB(8), MIB(2), MIB(4), CPU_ROOM_SHARED};
    assert_int_equal(cpu_room_first(&room, 256, 1), 64);
    assert_int_equal(cpu_room_first(&room, 256, 64), 64);
    assert_int_equal(cpu_room_first(&room, 256, 65), 65);
    assert_int_equal(cpu_room_second(&room, 256, 1), 512);
    assert_int_equal(cpu_room_second(&room, 256, 512), 512);
    assert_int_equal(cpu_room_second(&room, 256, 513), 513);
    assert_int_equal(cpu_room_last(&room, 1000, 1), 250);
    assert_int_equal(cpu_room_last(&room, 1003, 1), 250);
    assert_int_equal(cpu_room_last(&room, 1000, 251), 251);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_share_what_their_processors_share),
        cmocka_unit_test(sizes_scale_with_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
