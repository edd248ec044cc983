/* The tool of the comparisons itself: it must see a single wrong bit, a write beyond the end and a changed
 * input, and must not mind which NaN a NaN is.
 */
#include "device/cases/cases.h"

#include "device/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static tr_device *device;

static int make_device(void **state)
{
    (void)state;
    return tr_device_create("ref", 0, NULL, &device) == TR_OK ? 0 : -1;
}

static int destroy_device(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    return 0;
}

/* A scene with an input, an output of three floats, bytes and a workspace; `y` is what the "operation" wrote.
 */
static void play(struct scene *scene, const struct scene *model, const float y[3])
{
    if (model)
        scene_begin_like(scene, device, model);
    else
        scene_begin(scene, device, SCENE_EDGES, 3, 4);
    scene_in(scene, "x", 5);
    memcpy(scene_out(scene, "y", 3), y, 3 * sizeof *y);
    memcpy(scene_out_bytes(scene, "taken", 2), "ab", 2);
    scene_workspace(scene, 4, 1);
    scene_end(scene, TR_OK);
}

static const float numbers[3] = {1, 0, 3};

/* Whether a scene in which one byte of buffer `which` was changed, at `offset` from its contents, differs. */
static bool notices(int which, int64_t offset)
{
    struct scene expected, got;
    char text[256];
    play(&expected, NULL, numbers);
    play(&got, &expected, numbers);
    assert_false(scene_differs(&expected, &got, text, sizeof text));
    assert_true(scene_hash(&expected, 1) == scene_hash(&got, 1));
    struct scene_buffer *b = &got.buffer[which];
    b->after[(int64_t)b->lead + offset] ^= 1;
    bool differs = scene_differs(&expected, &got, text, sizeof text);
    if (differs) assert_non_null(strstr(text, b->name));
    scene_release(&got);
    scene_release(&expected);
    return differs;
}

static void test_every_byte_counts(void **state)
{
    (void)state;
    const int64_t sizes[] = {5 * 4, 3 * 4, 2};
    for (int which = 0; which < 3; which++)
        for (int64_t offset = -32; offset < sizes[which] + 128; offset++) assert_true(notices(which, offset));
}

static void test_workspace_may_change_but_not_its_guards(void **state)
{
    (void)state;
    for (int64_t offset = 0; offset < 4; offset++) assert_false(notices(3, offset));
    assert_true(notices(3, -1));
    assert_true(notices(3, 4));
}

static bool same(const float a[3], const float b[3])
{
    struct scene expected, got;
    char text[256];
    play(&expected, NULL, a);
    play(&got, &expected, b);
    bool differs = scene_differs(&expected, &got, text, sizeof text);
    assert_true(differs == (scene_hash(&expected, 1) != scene_hash(&got, 1)));
    scene_release(&got);
    scene_release(&expected);
    return !differs;
}

static void test_zeros_and_nan(void **state)
{
    (void)state;
    const float zero[3] = {1, 0.0f, 3}, minus[3] = {1, -0.0f, 3};
    const float nan[3] = {1, __builtin_nanf(""), 3}, other[3] = {1, -__builtin_nanf("0x1234"), 3};
    assert_true(same(zero, zero));
    assert_false(same(zero, minus));
    assert_true(same(nan, other));
    assert_false(same(nan, zero));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_workspace_may_change_but_not_its_guards),
        cmocka_unit_test(test_zeros_and_nan),
    };
    return cmocka_run_group_tests_name("scenes", tests, make_device, destroy_device);
}
