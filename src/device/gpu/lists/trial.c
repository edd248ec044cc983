/* A test of a device's lists, when it is opened. */
#include "device/gpu/lists/kept.h"

enum { NUMBERS = 100, TURNS = GPU_OFTEN + 4, CHANGES = GPU_ALIKE + 4 };

/* Two lists that share kernels and memory, each enqueued again while unfinished: x becomes 2 x + 6 in each
   turn, in operations that must keep their order. */
static tr_status repeat(tr_device *device, float *x, float *y, float *one, float *two)
{
    const struct tr_op_add add[] = {
        {NUMBERS, x, one, y}, {NUMBERS, y, one, x}, {NUMBERS, x, two, y}, {NUMBERS, y, x, x}};
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < 4; i++) {
            TR_TRY(tr_device_add(device, &add[i]));
            if (i % 2) TR_TRY(gpu_lists_end(gpu_of(device)));
        }
    return TR_OK;
}

/* How many numbers a turn changes: fewer in each. */
static int changed_in(int turn)
{
    return NUMBERS - 7 * turn;
}

/* Stretches of the same kernels with ever fewer numbers, enqueued while the earlier ones are unfinished: x
   becomes x + 3. */
static tr_status follow(tr_device *device, float *x, float *y, float *one, float *two)
{
    for (int turn = 0; turn < CHANGES; turn++) {
        int count = changed_in(turn);
        const struct tr_op_add add[] = {{count, x, one, y}, {count, y, two, x}};
        for (int i = 0; i < 2; i++) TR_TRY(tr_device_add(device, &add[i]));
        TR_TRY(gpu_lists_end(gpu_of(device)));
    }
    return TR_OK;
}

/* Runs `what` on x = 0, and copies x to `got`. */
static tr_status run(struct gpu *gpu, float *memory, float got[NUMBERS],
                     tr_status (*what)(tr_device *, float *, float *, float *, float *))
{
    tr_device *device = &gpu->base;
    float *x = memory, *y = x + NUMBERS, *one = y + NUMBERS, *two = one + NUMBERS;
    const struct tr_op_fill fill[] = {{NUMBERS, 0, x}, {NUMBERS, 1, one}, {NUMBERS, 2, two}};
    for (int i = 0; i < 3; i++) TR_TRY(tr_device_fill(device, &fill[i]));
    TR_TRY(gpu_lists_end(gpu));
    TR_TRY(what(device, x, y, one, two));
    TR_TRY(gpu_to_host(device, got, x, NUMBERS * sizeof *got));
    return gpu->api->wait(gpu->session);
}

static bool repeats_rightly(struct gpu *gpu, float *memory)
{
    float got[NUMBERS], expected = 0;
    tr_status status = run(gpu, memory, got, repeat);
    bool right = status == TR_OK && gpu->lists->kept_count > 0;
    if (status != TR_OK) (void)gpu->api->wait(gpu->session); /* a copy goes to `got` */
    for (int turn = 0; turn < TURNS; turn++) expected = 2 * expected + 6;
    for (int i = 0; i < NUMBERS && right; i++) right = got[i] == expected;
    return right;
}

static bool follows_rightly(struct gpu *gpu, float *memory)
{
    float got[NUMBERS];
    tr_status status = run(gpu, memory, got, follow);
    const struct gpu_lists *lists = gpu->lists;
    bool right = status == TR_OK && !lists->rigid && lists->kept_count > 0 &&
                 lists->kept[lists->kept_count - 1].follows;
    if (status != TR_OK) (void)gpu->api->wait(gpu->session);
    for (int i = 0; i < NUMBERS && right; i++) {
        float expected = 0;
        for (int turn = 0; turn < CHANGES; turn++) expected += i < changed_in(turn) ? 3 : 0;
        right = got[i] == expected;
    }
    return right;
}

bool gpu_lists_try(struct gpu *gpu, bool *follow)
{
    void *memory;
    if (gpu_alloc(&gpu->base, (size_t)4 * NUMBERS * sizeof(float), &memory) != TR_OK) return false;
    bool right = repeats_rightly(gpu, memory);
    *follow = right && gpu->api->change_list && follows_rightly(gpu, memory);
    while (gpu->lists->kept_count > 0) gpu_lists_drop(gpu, gpu->lists->kept_count - 1);
    gpu->lists->same = gpu->lists->alike = (struct gpu_stretches){0};
    gpu_free(&gpu->base, memory);
    return right;
}
