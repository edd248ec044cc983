/* Units of operations at the edges of their definitions, where the random numbers of dispute.units do not
 * come: equal numbers, exact thresholds, a single number that is not finite. All outputs are those of `ref`.
 */
#include "base/fail.h"
#include "device/device.h"
#include "dispute/units/unit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* All that operations read and write lies here; and as it was before. */
static float memory[1024], before[1024];
static int64_t used;

static float *put(const float *numbers, int64_t count)
{
    float *place = memory + used;
    assert_true(used + count <= COUNT(memory));
    if (numbers)
        memcpy(place, numbers, (size_t)count * sizeof *numbers);
    else
        memset(place, 0x55, (size_t)count * sizeof *numbers);
    used += count;
    return place;
}

static void *put_words(const void *words, size_t bytes)
{
    float numbers[64];
    assert_true(bytes <= sizeof numbers);
    memcpy(numbers, words, bytes);
    return put(numbers, (int64_t)(bytes + 3) / 4);
}

static tr_status open_input(void *user, const void *at, int bytes, bool own, uint64_t *value, uint32_t *leaf,
                            uint32_t *byte)
{
    const ptrdiff_t offset = (const char *)at - (const char *)memory;
    (void)user;
    assert_true(offset >= 0 && offset + bytes <= (ptrdiff_t)sizeof memory);
    *value = 0;
    memcpy(value, (const char *)(own ? memory : before) + offset, (size_t)bytes);
    *leaf = *byte = 0;
    return TR_OK;
}

static void check(enum tr_operation_number number, const void *arguments)
{
    const struct tr_unit_source source = {open_input, NULL};
    struct tr_unit_region region[TR_UNIT_REGIONS];
    const int64_t rows = tr_operation_rows(tr_operation_of(number), arguments, true);
    const int regions = tr_unit_regions(number, arguments, rows, region);
    assert_true(regions > 0);
    for (int i = 0; i < regions; i++)
        for (int64_t at = 0; at < region[i].width / region[i].size; at++) {
            const struct tr_unit_output place = {region[i].operand->name, 0, at};
            struct tr_unit_program program = {0};
            uint32_t expected = 0;
            assert_int_equal(region[i].rows, 1);
            memcpy(&expected, region[i].begin + at * region[i].size, (size_t)region[i].size);
            if (tr_unit_build(number, arguments, &place, &source, &program) != TR_OK)
                fail_msg("%s", tr_error_message());
            const uint32_t got = tr_program_result(&program);
            if (!tr_program_same(expected, got, region[i].size == 4))
                fail_msg("%s: \"%s\" %lld is %08x, its unit says %08x", tr_operation_of(number)->name,
                         place.operand, (long long)at, (unsigned)expected, (unsigned)got);
            tr_program_release(&program);
        }
    used = 0;
}

static tr_device *device;

/* Runs it and compares. */
#define CHECK(op, arguments)                                                                                 \
    do {                                                                                                     \
        memcpy(before, memory, sizeof memory);                                                               \
        assert_int_equal(tr_device_##op(device, arguments), TR_OK);                                          \
        check(TR_OPERATION_##op, arguments);                                                                 \
    } while (0)

static const float edges[] = {0,          -0.0f,      1,          -1,         3,           -3,
                              6,          -6,         2.9999998f, 3.0000002f, -2.9999998f, -3.0000002f,
                              5.9999995f, 6.0000005f, 3.5f,       -3.5f,      0x1p-149f,   -0x1p-149f,
                              1e30f,      -1e30f,     INFINITY,   -INFINITY,  NAN};

static void activations(void **state)
{
    float dy[COUNT(edges)];
    (void)state;
    for (int64_t i = 0; i < COUNT(dy); i++) dy[i] = 0.75f + (float)i;
    for (int kind = 0; kind < TR_ACTIVATIONS; kind++) {
        const struct tr_op_activation_forward forward = {
            COUNT(edges), put(edges, COUNT(edges)), put(NULL, COUNT(edges)), (enum tr_activation)kind, 0.25f};
        CHECK(activation_forward, &forward);
        const struct tr_op_activation_backward backward = {.count = COUNT(edges),
                                                           .x = put(edges, COUNT(edges)),
                                                           .y = put(edges, COUNT(edges)),
                                                           .dy = put(dy, COUNT(dy)),
                                                           .dx = put(NULL, COUNT(edges)),
                                                           .activation = (enum tr_activation)kind,
                                                           .slope = 0.25f};
        CHECK(activation_backward, &backward);
    }
}

/* Labels that are written as numbers, up to the largest and beyond. */
static void labels(void **state)
{
    static const float numbers[] = {0,
                                    -0.0f,
                                    0.5f,
                                    0.99999994f,
                                    1,
                                    1.5f,
                                    2,
                                    3,
                                    4,
                                    255,
                                    256,
                                    0x1.8p22f,
                                    0x1.fffffep22f,
                                    0x1p23f,
                                    0x1.000002p23f,
                                    0x1.fffffep23f,
                                    0x1p24f,
                                    0x1.000002p24f,
                                    0x1p25f,
                                    0x1.234566p27f,
                                    0x1p30f,
                                    0x1.fffffep30f,
                                    0x1p31f,
                                    0x1p32f,
                                    -1,
                                    -3,
                                    1e30f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN};
    const struct tr_op_to_labels a = {COUNT(numbers), put(numbers, COUNT(numbers)),
                                      (int32_t *)(void *)put(NULL, COUNT(numbers))};
    (void)state;
    CHECK(to_labels, &a);
}

/* A single parameter that is no longer finite, the first one, the last one or one between, is told. */
static void parameters_that_are_not_finite(void **state)
{
    static const float kinds[] = {1, INFINITY, -INFINITY, NAN};
    (void)state;
    for (int64_t at = 0; at < 3; at++)
        for (int64_t kind = 0; kind < COUNT(kinds); kind++)
            for (int held = 0; held < 2; held++)
                for (uint32_t nonfinite = 0; nonfinite < 2; nonfinite++) {
                    float numbers[3] = {1, 2, 3};
                    const struct tr_step_scalars scalars = {
                        .rate = 0.5f, .ema_decay = 0.75f, .held = held ? 1 : 0, .nonfinite = nonfinite};
                    numbers[at] = kinds[kind];
                    const struct tr_op_update update = {.count = 3,
                                                        .rule = TR_RULE_SGD,
                                                        .rate_factor = 1,
                                                        .grad = put(numbers, 3),
                                                        .w = put(edges + 2, 3),
                                                        .ema = put(edges + 2, 3),
                                                        .scalars = put_words(&scalars, sizeof scalars)};
                    CHECK(update, &update);
                    const struct tr_op_advance advance = {.count = 3,
                                                          .rate_factor = 1,
                                                          .factor = 1,
                                                          .direction = put(numbers, 3),
                                                          .w = put(edges + 2, 3),
                                                          .ema = put(edges + 2, 3),
                                                          .scalars = put_words(&scalars, sizeof scalars)};
                    CHECK(advance, &advance);
                    for (int64_t count = 0; count <= 3; count += 3) {
                        const struct tr_op_hold hold = {count, put(numbers, 3),
                                                        put_words(&scalars, sizeof scalars)};
                        CHECK(hold, &hold);
                    }
                }
}

/* Where one of the squares is 0 the size of a step is the factor; and decays of all sizes. */
static void sizes_of_steps(void **state)
{
    static const float squares[][2] = {{0, 4},     {9, 0},   {9, 4},  {0.25f, 0.0625f},
                                       {-0.0f, 4}, {NAN, 4}, {9, NAN}};
    static const float decays[] = {0, 0.5f, 1, 2};
    (void)state;
    for (int64_t i = 0; i < COUNT(squares); i++)
        for (int64_t k = 0; k < COUNT(decays); k++) {
            const struct tr_op_advance a = {.count = 3,
                                            .rate_factor = 0.5f,
                                            .factor = 0.25f,
                                            .decay = decays[k],
                                            .direction = put(edges + 2, 3),
                                            .squares = put(squares[i], 2),
                                            .w = put(edges + 4, 3)};
            CHECK(advance, &a);
        }
}

/* Clipped at the norm itself, and at the value itself; a norm that is no number clips nothing. */
static void clipping(void **state)
{
    static const float squares[][2] = {{9, 16}, {9, 15}, {9, 17}, {NAN, 1}, {0, 0}};
    static const struct tr_step_scalars scalars = {.rate = 0.5f, .adam_rate = 0.25f, .adam_correction = 1};
    static const float gradient[] = {0.5f, -0.5f, 0.50000006f, -0.50000006f, 0.25f, 3, -3, NAN};
    static const float most[] = {4, 0.25f, 0.24999999f, 0.25000003f, -0.0f, 100, NAN, 0};
    (void)state;
    for (int64_t i = 0; i < COUNT(squares); i++) {
        const struct tr_op_clip_scale a = {.count = 2,
                                           .max_norm = 5,
                                           .squares = put(squares[i], 2),
                                           .norm = put(NULL, 1),
                                           .scalars = put_words(&scalars, sizeof scalars)};
        CHECK(clip_scale, &a);
    }
    for (int rule = 0; rule <= TR_RULE_STATISTIC; rule++)
        for (int amsgrad = 0; amsgrad < 2; amsgrad++) {
            struct tr_op_update a = {.count = COUNT(gradient),
                                     .rule = (enum tr_rule)rule,
                                     .rate_factor = 1,
                                     .beta1 = 0.5f,
                                     .beta2 = 0, /* so that v is the square of the gradient */
                                     .epsilon = 0.125f,
                                     .decay = 2,
                                     .l2 = amsgrad ? 2 : 0,
                                     .clip_value = 0.5f,
                                     .grad = put(gradient, COUNT(gradient)),
                                     .w = put(most, COUNT(most)),
                                     .m = put(most, COUNT(most)),
                                     .v = put(most, COUNT(most)),
                                     .scalars = put_words(&scalars, sizeof scalars)};
            if (amsgrad && (rule == TR_RULE_ADAM || rule == TR_RULE_ADAMW)) a.vmax = put(most, COUNT(most));
            if (rule == TR_RULE_RMSPROP && amsgrad) a.m = NULL;
            CHECK(update, &a);
        }
}

/* Numbers that meet their targets, or miss them by as much as decides. */
static void losses_of_numbers(void **state)
{
    static const float x[] = {0, 1, -1, 0.5f, -0.5f, 0.75f, 2, -0.0f},
                       target[] = {0, 0, 0, 0, 0, 0, 0.5f, 0.5f};
    static const float deltas[] = {0, 0.5f, 1, 1.5f},
                       quantile[] = {0.25f, 0.5f, 0.75f, 1, 0, 0.1f, 0.2f, 0.3f};
    (void)state;
    for (int64_t i = 0; i < COUNT(deltas); i++) {
        const struct tr_op_huber_error a = {.rows = 2,
                                            .width = 4,
                                            .delta = deltas[i],
                                            .scale = 0.5f,
                                            .x = put(x, 8),
                                            .target = put(target, 8),
                                            .loss = put(NULL, 2),
                                            .dx = put(NULL, 8)};
        CHECK(huber_error, &a);
    }
    for (int64_t each = 1; each <= 2; each++) {
        const struct tr_op_quantile_error a = {.rows = 2,
                                               .width = 4,
                                               .each = each,
                                               .scale = 0.5f,
                                               .x = put(x, 8),
                                               .target = put(target, 8),
                                               .quantile = put(quantile, 8),
                                               .loss = put(NULL, 2),
                                               .dx = put(NULL, 8)};
        CHECK(quantile_error, &a);
    }
    for (int weights = 0; weights < 2; weights++) {
        const struct tr_op_binary_cross_entropy a = {.rows = 2,
                                                     .width = 4,
                                                     .scale = 0.5f,
                                                     .x = put(x, 8),
                                                     .target = put(target, 8),
                                                     .weight = weights ? put(quantile, 4) : NULL,
                                                     .loss = put(NULL, 2),
                                                     .correct = put(NULL, 2),
                                                     .dx = put(NULL, 8)};
        CHECK(binary_cross_entropy, &a);
    }
}

/* Embeddings at the margin, at half of it, and at one place. */
static void losses_of_distances(void **state)
{
    static const float ends[] = {0, 1, 2, 1.9999999f, 4, 3.9999998f, 4.0000005f, 5};
    (void)state;
    for (int64_t i = 0; i < COUNT(ends); i++)
        for (int32_t same = -1; same < 2; same++) {
            const float pair[] = {0, ends[i]};
            const struct tr_op_contrastive_error a = {.rows = 1,
                                                      .width = 1,
                                                      .margin = 4,
                                                      .scale = 0.5f,
                                                      .x = put(pair, 2),
                                                      .label = put_words(&same, sizeof same),
                                                      .loss = put(NULL, 1),
                                                      .correct = put(NULL, 1),
                                                      .dx = put(NULL, 2)};
            CHECK(contrastive_error, &a);
        }
    for (int64_t i = 0; i < COUNT(ends); i++)
        for (int64_t k = 0; k < COUNT(ends); k++)
            for (int squared = 0; squared < 2; squared++) {
                const float three[] = {0, ends[i], -ends[k]};
                const struct tr_op_triplet_error a = {.rows = 1,
                                                      .width = 1,
                                                      .squared = squared,
                                                      .margin = 1,
                                                      .scale = 0.5f,
                                                      .x = put(three, 3),
                                                      .loss = put(NULL, 1),
                                                      .correct = put(NULL, 1),
                                                      .dx = put(NULL, 3)};
                CHECK(triplet_error, &a);
            }
}

static int set_up(void **state)
{
    (void)state;
    return tr_device_create("ref", 1, NULL, &device) == TR_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    tr_device_destroy(&device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations),
        cmocka_unit_test(labels),
        cmocka_unit_test(parameters_that_are_not_finite),
        cmocka_unit_test(sizes_of_steps),
        cmocka_unit_test(clipping),
        cmocka_unit_test(losses_of_numbers),
        cmocka_unit_test(losses_of_distances),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
