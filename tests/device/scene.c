#include "device/scene.h"

#include "base/alloc.h"
#include "base/numbers/rng.h"
#include "base/numbers/tree.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define GUARD_IN  0xff /* as a float NaN: an input read beyond its end shows in the results */
#define GUARD_OUT 0xa5

void scene_begin(struct scene *scene, tr_device *device, enum scene_flavor flavor, uint32_t operation,
                 uint32_t number)
{
    memset(scene, 0, sizeof *scene);
    scene->device = device;
    scene->flavor = flavor;
    scene->operation = operation;
    scene->number = number;
}

void scene_begin_like(struct scene *scene, tr_device *device, const struct scene *model)
{
    scene_begin(scene, device, model->flavor, model->operation, model->number);
    scene->model = model;
}

void scene_name(struct scene *scene, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(scene->name, sizeof scene->name, format, arguments);
    va_end(arguments);
}

static void must(tr_status status)
{
    if (status != TR_OK) fail_msg("%s: %s", tr_status_name(status), tr_error_message());
}

/* A buffer with guards, whose contents are the given bytes, or guard bytes when NULL. */
static void *place(struct scene *scene, const char *name, enum scene_kind kind, size_t bytes, size_t element,
                   unsigned char guard, const void *contents)
{
    assert_true(scene->buffers < SCENE_BUFFERS);
    struct scene_buffer *b = &scene->buffer[scene->buffers];
    b->name = name;
    b->kind = kind;
    b->bytes = bytes;
    b->lead = 64 + element * (size_t)(1 + scene->buffers * 5 % 7);
    b->all = b->lead + bytes + 256;
    b->guard = guard;
    b->before = tr_alloc(b->all, 1);
    b->after = tr_alloc(b->all, 1);
    assert_non_null(b->before);
    assert_non_null(b->after);
    memset(b->before, guard, b->all);
    if (contents) memcpy(b->before + b->lead, contents, bytes);
    void *memory;
    must(tr_device_alloc(scene->device, b->all, &memory));
    must(tr_device_to_device(scene->device, memory, b->before, b->all));
    must(tr_device_wait(scene->device));
    b->memory = memory;
    scene->buffers++;
    return b->memory + b->lead;
}

/* Four random words for element i of the next buffer. */
static void draw(const struct scene *scene, int64_t i, uint32_t words[4])
{
    tr_rng_key key = {scene->operation, scene->number};
    tr_rng_philox(key, (uint32_t)i, (uint32_t)scene->buffers, (uint32_t)scene->flavor, 0, words);
}

static float number(enum scene_flavor flavor, const uint32_t words[4])
{
    float sign = words[0] & 1 ? -1.0f : 1.0f;
    float fraction = 1 + tr_rng_unit(words[1]);
    uint32_t choice = words[2] % 64, power = words[3];
    if (flavor == SCENE_PLAIN) return sign * tr_rng_unit(words[1]);
    if (flavor == SCENE_HUGE) {
        if (choice == 0) return sign * INFINITY;
        if (choice == 1) return NAN;
        if (choice < 16) return sign * ldexpf(fraction, (int)(power % 128));
    }
    if (choice < 6) return sign * 0.0f;
    if (choice < 12) return sign * ldexpf(fraction, -127 - (int)(power % 23)); /* subnormal */
    if (choice < 24) return sign * 0.25f * (float)(power % 4);
    return sign * ldexpf(fraction, (int)(power % 36) - 30);
}

static float *place_numbers(struct scene *scene, const char *name, int64_t count, bool positive)
{
    size_t bytes = (size_t)count * sizeof(float);
    if (scene->model) {
        const struct scene_buffer *same = &scene->model->buffer[scene->buffers];
        assert_int_equal(same->bytes, bytes);
        return place(scene, name, SCENE_FLOATS, bytes, sizeof(float), GUARD_IN, same->before + same->lead);
    }
    float *numbers = tr_alloc((size_t)count, sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        draw(scene, i, words);
        numbers[i] = number(scene->flavor, words);
        if (positive) numbers[i] = fabsf(numbers[i]);
    }
    float *placed = place(scene, name, SCENE_FLOATS, bytes, sizeof *numbers, GUARD_IN, numbers);
    tr_free(numbers);
    return placed;
}

float *scene_in(struct scene *scene, const char *name, int64_t count)
{
    return place_numbers(scene, name, count, false);
}

float *scene_positive(struct scene *scene, const char *name, int64_t count)
{
    return place_numbers(scene, name, count, true);
}

float *scene_out(struct scene *scene, const char *name, int64_t count)
{
    return place(scene, name, SCENE_FLOATS, (size_t)count * sizeof(float), sizeof(float), GUARD_OUT, NULL);
}

uint8_t *scene_out_bytes(struct scene *scene, const char *name, int64_t count)
{
    return place(scene, name, SCENE_BYTES, (size_t)count, 1, GUARD_OUT, NULL);
}

void *scene_data(struct scene *scene, const char *name, size_t bytes, size_t element, const void *contents)
{
    return place(scene, name, SCENE_BYTES, bytes, element, GUARD_IN, contents);
}

void *scene_workspace(struct scene *scene, int64_t bytes, size_t element)
{
    return place(scene, "workspace", SCENE_WORKSPACE, (size_t)bytes, element, GUARD_OUT, NULL);
}

static int32_t *place_indices(struct scene *scene, const char *name, int64_t count, int32_t limit,
                              bool missing)
{
    int32_t *indices = tr_alloc((size_t)count, sizeof *indices);
    assert_non_null(indices);
    for (int64_t i = 0; i < count; i++) {
        uint32_t words[4];
        draw(scene, i, words);
        /* half of them near the beginning, so that some occur often */
        indices[i] = (int32_t)(words[0] % (uint32_t)(words[1] & 1 && limit > 3 ? 3 : limit));
    }
    for (int64_t i = 0; missing && i < count; i += 1 + i % 3) indices[i] = -1 - (int32_t)i;
    int32_t *placed = scene_data(scene, name, (size_t)count * sizeof *indices, sizeof *indices, indices);
    tr_free(indices);
    return placed;
}

int32_t *scene_indices(struct scene *scene, const char *name, int64_t count, int32_t limit)
{
    return place_indices(scene, name, count, limit, false);
}

int32_t *scene_labels(struct scene *scene, const char *name, int64_t count, int32_t limit, bool missing)
{
    return place_indices(scene, name, count, limit, missing);
}

struct tr_step_scalars *scene_scalars(struct scene *scene)
{
    struct tr_step_scalars scalars = {.step = 7 + scene->number,
                                      .rate = 0.0625f,
                                      .adam_rate = 0.013f,
                                      .adam_correction = 3.7f,
                                      .ema_decay = 0.97f,
                                      .clip_scale = 0.375f};
    return scene_data(scene, "scalars", sizeof scalars, sizeof(uint32_t), &scalars);
}

int32_t *scene_offsets(struct scene *scene, int64_t examples, int32_t longest, bool empty, int32_t *offset)
{
    offset[0] = 0;
    for (int64_t e = 0; e < examples; e++) {
        uint32_t words[4];
        draw(scene, e, words);
        int32_t length = 1 + (int32_t)(words[0] % (uint32_t)longest);
        offset[e + 1] = offset[e] + (empty && e % 3 == 1 ? 0 : length);
    }
    return scene_data(scene, "offset", (size_t)(examples + 1) * sizeof *offset, sizeof *offset, offset);
}

/* `rows` of `count` microbatches, which are leaves first, first + 1, ... of a tree over `leaves`. */
static const struct {
    int count;
    int rows[SCENE_LEAVES];
    int leaves, first;
} cuts[] = {
    {1, {1}, 1, 0},
    {1, {7}, 1, 0},
    {2, {3, 4}, 2, 0},
    {2, {16, 17}, 4, 2},
    {3, {5, 1, 9}, 3, 0},
    {3, {4, 0, 5}, 3, 0},
    {4, {13, 12, 13, 12}, 4, 0},
    {5, {2, 3, 1, 3, 2}, 5, 0},
    {5, {2, 1, 4, 1, 1}, 8, 3},
    {5, {3, 2, 0, 1, 4}, 7, 2},
    {5, {15, 31, 2, 17, 6}, 16, 9},
    {7, {1, 1, 1, 1, 1, 1, 1}, 7, 0},
    {11, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}, 13, 1},
    {16, {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, 16, 0},
    {2, {0, 0}, 2, 0},
    {0, {0}, 4, 4},
};

int scene_cuts(void)
{
    return (int)(sizeof cuts / sizeof cuts[0]);
}

int64_t scene_cut_rows(int index)
{
    int64_t rows = 0;
    for (int i = 0; i < cuts[index].count; i++) rows += cuts[index].rows[i];
    return rows;
}

struct tr_cut scene_cut(struct scene *scene, int index)
{
    int count = cuts[index].count, first = cuts[index].first;
    int64_t bounds[2 * TR_TREE_DEPTH + 1];
    scene->row[0] = 0;
    for (int i = 0; i < count; i++) scene->row[i + 1] = scene->row[i] + cuts[index].rows[i];
    int nodes = tr_tree_cover(cuts[index].leaves, first, first + count, bounds);
    for (int j = 0; j <= nodes; j++) scene->bound[j] = (int32_t)bounds[j] - first;
    return (struct tr_cut){.count = count, .row = scene->row, .nodes = nodes, .bound = scene->bound};
}

float *scene_nodes(struct scene *scene, const char *name, int64_t count, struct tr_cut *cut)
{
    if (cut->stride == 0) cut->stride = count + 5;
    return scene_out(scene, name, cut->nodes * cut->stride);
}

void scene_end(struct scene *scene, tr_status status)
{
    must(status);
    for (int i = 0; i < scene->buffers; i++) {
        struct scene_buffer *b = &scene->buffer[i];
        must(tr_device_to_host(scene->device, b->after, b->memory, b->all));
    }
    must(tr_device_wait(scene->device));
}

static bool guards_hold(const struct scene_buffer *b)
{
    for (size_t i = 0; i < b->lead; i++)
        if (b->after[i] != b->guard) return false;
    for (size_t i = b->lead + b->bytes; i < b->all; i++)
        if (b->after[i] != b->guard) return false;
    return true;
}

static uint32_t word_at(const struct scene_buffer *b, size_t index)
{
    uint32_t word;
    memcpy(&word, b->after + b->lead + index * sizeof word, sizeof word);
    return word;
}

static float float_of(uint32_t word)
{
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static bool floats_differ(const struct scene_buffer *expected, const struct scene_buffer *got, char *text,
                          size_t size)
{
    for (size_t i = 0; i < expected->bytes / sizeof(float); i++) {
        uint32_t want = word_at(expected, i), have = word_at(got, i);
        if (want == have || (isnan(float_of(want)) && isnan(float_of(have)))) continue;
        snprintf(text, size, "%s[%zu of %zu] is %.9g (%08x), ref has %.9g (%08x)", expected->name, i,
                 expected->bytes / sizeof(float), (double)float_of(have), have, (double)float_of(want), want);
        return true;
    }
    return false;
}

static bool bytes_differ(const struct scene_buffer *expected, const struct scene_buffer *got, char *text,
                         size_t size)
{
    for (size_t i = expected->lead; i < expected->lead + expected->bytes; i++) {
        if (expected->after[i] == got->after[i]) continue;
        snprintf(text, size, "byte %zu of %zu of %s is %u, ref has %u", i - expected->lead, expected->bytes,
                 expected->name, got->after[i], expected->after[i]);
        return true;
    }
    return false;
}

bool scene_differs(const struct scene *expected, const struct scene *got, char *text, size_t size)
{
    assert_int_equal(expected->buffers, got->buffers);
    for (int i = 0; i < expected->buffers; i++) {
        const struct scene_buffer *want = &expected->buffer[i], *have = &got->buffer[i];
        assert_int_equal(want->bytes, have->bytes);
        if (!guards_hold(have)) {
            snprintf(text, size, "memory around %s was written", have->name);
            return true;
        }
        if (memcmp(want->after + want->lead, have->after + have->lead, want->bytes) == 0) continue;
        if (want->kind == SCENE_FLOATS && floats_differ(want, have, text, size)) return true;
        if (want->kind == SCENE_BYTES && bytes_differ(want, have, text, size)) return true;
    }
    return false;
}

uint64_t scene_hash(const struct scene *scene, uint64_t hash)
{
    for (int i = 0; i < scene->buffers; i++) {
        const struct scene_buffer *b = &scene->buffer[i];
        bool floats = b->kind == SCENE_FLOATS;
        size_t count = b->kind == SCENE_WORKSPACE ? 0 : floats ? b->bytes / sizeof(float) : b->bytes;
        for (size_t k = 0; k < count; k++) {
            uint32_t word = floats ? word_at(b, k) : b->after[b->lead + k];
            if (floats && isnan(float_of(word))) word = 0x7fc00000;
            hash = (hash ^ word) * 0x100000001b3u;
        }
    }
    return hash;
}

void scene_release(struct scene *scene)
{
    for (int i = 0; i < scene->buffers; i++) {
        tr_device_free(scene->device, scene->buffer[i].memory);
        tr_free(scene->buffer[i].before);
        tr_free(scene->buffer[i].after);
    }
    scene->buffers = 0;
}
