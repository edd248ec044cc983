/* Which parts of a run a verification repeats: all segments or as many as are drawn, from the last states
 * that are at hand, divided among processes. */
#include "refuse.h"
#include "verify/stretches.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MOST 32

/* A claim with so many segments, and states at the boundaries where `states` has a letter other than '.'. */
struct sample {
    struct claim claim;
    struct tr_receipt_boundary boundary[MOST + 1];
    char *checkpoint[MOST + 1];
};

static const struct claim *sample(struct sample *out, const char *states)
{
    static char path[] = "checkpoint";
    *out = (struct sample){0};
    out->claim.receipt.count = (int64_t)strlen(states);
    out->claim.receipt.boundary = out->boundary;
    out->claim.checkpoint = out->checkpoint;
    for (size_t i = 0; states[i]; i++) {
        out->boundary[i].step = (int64_t)i;
        out->checkpoint[i] = states[i] == '.' ? NULL : path;
    }
    return &out->claim;
}

/* The stretches as "0-3 4-5", and the number of segments in them. */
static int64_t plan(const char *states, const struct tr_verify_settings *settings, char text[256])
{
    struct sample made;
    struct stretches stretches;
    size_t length = 0;
    assert_int_equal(stretches_plan(sample(&made, states), settings, &stretches), TR_OK);
    text[0] = '\0';
    for (int64_t i = 0; i < stretches.count; i++)
        length += (size_t)snprintf(text + length, 256 - length, "%s%d-%d", i ? " " : "",
                                   (int)stretches.stretch[i].first, (int)stretches.stretch[i].end);
    const int64_t checked = stretches.checked;
    stretches_release(&stretches);
    assert_null(stretches.stretch);
    assert_int_equal(stretches.count, 0);
    return checked;
}

static void expect(const char *states, const struct tr_verify_settings *settings, const char *expected,
                   int64_t segments)
{
    char text[256];
    const int64_t checked = plan(states, settings, text);
    if (strcmp(text, expected) != 0 || checked != segments)
        fail_msg("%s, share %d of %d: \"%s\" with %d segments, not \"%s\" with %d", states, settings->share,
                 settings->shares, text, (int)checked, expected, (int)segments);
}

static void all_segments_are_one_stretch(void **state)
{
    (void)state;
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    expect(".", &settings, "0-0", 0);
    expect("..", &settings, "0-1", 1);
    expect(".....", &settings, "0-4", 4);
    expect(".xxxx", &settings, "0-4", 4);
    settings.segments = 4;
    expect(".....", &settings, "0-4", 4);
    settings.segments = 1000;
    expect(".....", &settings, "0-4", 4);
}

/* Each begins where a state is at hand; those with one beginning stay together. */
static void shares_begin_at_states(void **state)
{
    (void)state;
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    static const char *const two[] = {"0-2 4-5", "2-4"};
    for (settings.share = 0, settings.shares = 2; settings.share < 2; settings.share++)
        expect("..x.xx", &settings, two[settings.share], settings.share ? 2 : 3);
    static const char *const three[] = {"0-2", "2-4", "4-5"};
    for (settings.share = 0, settings.shares = 3; settings.share < 3; settings.share++)
        expect("..x.xx", &settings, three[settings.share], settings.share < 2 ? 2 : 1);
    settings.shares = 5;
    settings.share = 4;
    expect("..x.xx", &settings, "", 0);
    settings.share = 0;
    settings.shares = 1;
    expect("..x.xx", &settings, "0-5", 5);
}

/* As many as are wanted, each once; every segment is drawn by some seed, and equal seeds draw the same. */
static void draws_take_so_many_segments(void **state)
{
    (void)state;
    static const char states[] = "xxxxxxxxxxx"; /* 10 segments, each of which can be run alone */
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    char text[256], again[256], other[256];
    for (settings.segments = 1; settings.segments <= 10; settings.segments++) {
        bool seen[10] = {false};
        int differ = 0;
        for (settings.seed = 0; settings.seed < 60; settings.seed++) {
            assert_int_equal(plan(states, &settings, text), settings.segments);
            assert_int_equal(plan(states, &settings, again), settings.segments);
            assert_string_equal(text, again);
            differ += settings.seed > 0 && strcmp(text, other) != 0;
            memcpy(other, text, sizeof other);
            for (const char *at = text; at; at = strchr(at, ' ')) {
                int first, end;
                at += *at == ' ';
                assert_int_equal(sscanf(at, "%d-%d", &first, &end), 2);
                assert_true(first >= 0 && first < end && end <= 10);
                for (int i = first; i < end; i++) seen[i] = true;
            }
        }
        for (int i = 0; i < 10; i++) assert_true(seen[i]);
        assert_true(settings.segments == 10 ? differ == 0 : differ > 20);
    }
}

/* The seed that was agreed on names the same segments in every version. */
static void a_seed_names_segments(void **state)
{
    (void)state;
    static const char *const drawn[] = {"8-9 11-12 18-19", "5-7 26-27", "1-2 5-6 13-14"};
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    settings.segments = 3;
    for (settings.seed = 0; settings.seed < 3; settings.seed++)
        expect("xxxxxxxxxxxxxxxxxxxxxxxxxxxxx", &settings, drawn[settings.seed], 3);
}

/* A drawn segment without a state of its own is run from the last one before it, and joined with what is run
   anyway. */
static void a_drawn_segment_begins_at_a_state(void **state)
{
    (void)state;
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    char text[256];
    int lone = 0, joined = 0;
    settings.segments = 2;
    for (settings.seed = 0; settings.seed < 40; settings.seed++) {
        const int64_t checked = plan("...x...", &settings, text);
        int a, b, c, d, parts = sscanf(text, "%d-%d %d-%d", &a, &b, &c, &d);
        assert_true(a == 0 || a == 3);
        if (parts == 4) { /* one on each side */
            lone++;
            assert_int_equal(a, 0);
            assert_int_equal(c, 3);
            assert_in_range(b, 1, 2); /* with 3 it would be the same stretch */
            assert_in_range(d, 4, 6);
            assert_int_equal(checked, b + d - 3);
        } else {
            joined++;
            assert_int_equal(parts, 2);
            assert_int_equal(checked, b - a);
        }
    }
    assert_true(lone > 0 && joined > 0);
}

/* The last segment is needed for the hash at the end. */
static void an_expected_hash_needs_the_last_segment(void **state)
{
    (void)state;
    struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    char text[256];
    settings.segments = 1;
    settings.expect = "0123456789abcdef";
    for (settings.seed = 0; settings.seed < 30; settings.seed++) {
        const int64_t checked = plan("xxxxxx", &settings, text);
        assert_in_range(checked, 1, 2);
        assert_string_equal(text + strlen(text) - 2, "-5");
    }
}

static void wrong_numbers_are_refused(void **state)
{
    static const struct {
        int64_t segments;
        int share, shares;
        const char *message;
    } wrong[] = {
        {-1, 0, 0, "-1 segments cannot be drawn; give 1 or more, or 0 for all"},
        {0, 0, -1, "share 0 of -1; the first of 3 is 0 of 3"},
        {0, -1, 3, "share -1 of 3; the first of 3 is 0 of 3"},
        {0, 3, 3, "share 3 of 3; the first of 3 is 0 of 3"},
        {0, 1, 1, "share 1 of 1; the first of 3 is 0 of 3"},
        {0, 1, 0, "share 1 of 0; the first of 3 is 0 of 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
        struct sample made;
        struct stretches stretches;
        settings.segments = wrong[i].segments;
        settings.share = wrong[i].share;
        settings.shares = wrong[i].shares;
        assert_int_equal(stretches_plan(sample(&made, "...."), &settings, &stretches), TR_EINVAL);
        assert_string_equal(tr_error_message(), wrong[i].message);
        assert_null(stretches.stretch);
    }
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    const struct tr_verify_settings settings = TR_VERIFY_SETTINGS_INIT;
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        struct sample made;
        struct stretches stretches;
        refuse_begin(at);
        tr_status status = stretches_plan(sample(&made, ".x.x"), &settings, &stretches);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        stretches_release(&stretches);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void impossible_numbers_have_no_chance(void **state)
{
    (void)state;
    assert_true(isnan(tr_verify_chance(-1, 0, 0)));
    assert_true(isnan(tr_verify_chance(3, -1, 1)));
    assert_true(isnan(tr_verify_chance(3, 1, -1)));
    assert_true(isnan(tr_verify_chance(3, 4, 3)));
    assert_true(isnan(tr_verify_chance(3, 3, 4)));
    assert_true(tr_verify_chance(0, 0, 0) == 0);
    assert_true(tr_verify_chance(3, 3, 0) == 0);
    assert_true(tr_verify_chance(3, 3, 1) == 1);
    assert_true(tr_verify_chance(3, 1, 3) == 1);
    assert_true(tr_verify_chance(1000000, 999999, 2) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_segments_are_one_stretch),
        cmocka_unit_test(shares_begin_at_states),
        cmocka_unit_test(draws_take_so_many_segments),
        cmocka_unit_test(a_seed_names_segments),
        cmocka_unit_test(a_drawn_segment_begins_at_a_state),
        cmocka_unit_test(an_expected_hash_needs_the_last_segment),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(lack_of_memory_is_told),
        cmocka_unit_test(impossible_numbers_have_no_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
