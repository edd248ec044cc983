#include "device/gpu/self_test.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"
#include "device/gpu/cache.h"
#include "device/gpu/product.h"
#include "device/ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers to try ---- */

enum { TRIPLES = 8192, PAIRS = 8192, VALUES = 8192, BLOCKS = 256 };

static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001,
    0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff,
    0x3f800000, 0xbf800000, 0x3f800001, 0x34000000, 0x33800000, 0x4b000000,
};
#define SPECIAL (sizeof special / sizeof special[0])

static float float_of(uint32_t bits)
{
    return tr_mathf_float((int32_t)bits);
}

/* A special number, any bits, a subnormal, a number of middle size, or one with a short mantissa (for
   ties). */
static float pick(const uint32_t word[2])
{
    uint32_t r = word[1];
    switch (word[0] % 6) {
    case 0:
        return float_of(special[r % SPECIAL]);
    case 1:
        return float_of(r);
    case 2:
        return float_of(r & 0x807fffff);
    case 3:
        return float_of((r & 0x807ff800) | (uint32_t)(64 + (r >> 3) % 8) << 23);
    default:
        return float_of((r & 0x807fffff) | (uint32_t)(119 + (r >> 7) % 16) << 23);
    }
}

static void fill_triples(float *in)
{
    const tr_rng_key key = {0x7e57, 1};
    for (uint32_t i = 0; i < TRIPLES; i++) {
        uint32_t word[8];
        tr_rng_philox(key, i, 0, 0, 0, word);
        tr_rng_philox(key, i, 1, 0, 0, word + 4);
        float *at = in + 3 * (size_t)i;
        for (int j = 0; j < 3; j++) at[j] = pick(word + 2 * j);
        float product = at[0] * at[1];
        /* sums that cancel, and sums that decide a rounding */
        if (i % 5 == 0 && isfinite(product)) at[2] = -product;
        if (i % 7 == 0 && isfinite(product)) at[2] = product * 0x1p-24f;
    }
}

static void expect_triples(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++, in += 3, out += 7) {
        float product = in[0] * in[1];
        out[0] = fmaf(in[0], in[1], in[2]);
        out[1] = product;
        out[2] = in[0] + in[1];
        out[3] = in[0] / in[1];
        out[4] = sqrtf(in[0]);
        out[5] = product + in[2];
        out[6] = (float)tr_mathf_bits(in[0]);
    }
}

/* The modular inverse of an odd number, modulo 2^32. */
static uint32_t inverse(uint32_t odd)
{
    uint32_t found = odd; /* correct for the last three bits */
    for (int i = 0; i < 4; i++) found *= 2 - odd * found;
    return found;
}

/* The hardest quotients to round: b has 24 bits and is odd, m has 25, and m b = 2^24 a + 1, where a has 24
   bits. Then 2^24 a / b = m - 1 / b is next to the middle between two floats. */
static void pick_nearly_half(uint32_t word, float pair[2])
{
    uint32_t b = 0x800001 | (word & 0x7fffff), m = (1u << 24) | (inverse(b) & 0xffffff);
    uint64_t a = ((uint64_t)m * b - 1) >> 24;
    pair[0] = float_of((127 + (word >> 23) % 64) << 23 | (uint32_t)(a & 0x7fffff));
    pair[1] = float_of((127 - (word >> 29) % 8) << 23 | (b & 0x7fffff));
}

/* Hard quotients, subnormal ones, and numbers of any size, whose roots are tried. */
static void fill_pairs(float *in)
{
    const tr_rng_key key = {0x7e57, 3};
    for (uint32_t i = 0; i < PAIRS; i++, in += 2) {
        uint32_t word[4];
        tr_rng_philox(key, i, 0, 0, 0, word);
        if (i % 4 < 2) {
            pick_nearly_half(word[0], in);
        } else if (i % 4 == 2) {
            uint32_t exponent = 1 + word[2] % 120;
            in[0] = float_of((word[0] & 0x807fffff) | exponent << 23);
            in[1] = float_of((word[1] & 0x807fffff) | (exponent + 125 + word[3] % 10) << 23);
        } else {
            in[0] = float_of(word[0] & 0x7fffffff);
            in[1] = float_of(word[1]);
        }
    }
}

static void expect_pairs(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++, in += 2, out += 2) {
        out[0] = in[0] / in[1];
        out[1] = sqrtf(in[0]);
    }
}

static void fill_values(float *in)
{
    for (uint32_t i = 0; i < VALUES; i++) in[i] = float_of(i * (0xffffffffu / VALUES) + i % 977);
    for (size_t i = 0; i < SPECIAL; i++) in[i] = float_of(special[i]);
}

static void expect_values(const float *in, float *out, size_t count)
{
    for (size_t i = 0; i < count; i++, out += 5) {
        out[0] = tr_expf(in[i]);
        out[1] = tr_logf(in[i]);
        out[2] = tr_tanhf(in[i]);
        out[3] = tr_sigmoidf(in[i]);
        out[4] = tr_erff(in[i]);
    }
}

/* ---- a trial ---- */

/* Inputs and expected results, on the host and on the device. */
struct trial {
    const char *name;
    const char *const *part; /* names of a result's numbers, `parts` of them, or NULL */
    int parts, takes;        /* each result is computed from so many inputs by `expect` */
    void (*expect)(const float *in, float *out, size_t count);
    size_t inputs, results;
    bool tiles;                 /* run with each tile of products */
    float *in, *expected, *got; /* on the host */
    float *in_there, *out_there;
};

static const char *const arithmetic_parts[] = {"fused multiply-add", "product",     "sum",
                                               "quotient",           "square root", "product and sum",
                                               "integer as a float"};
static const char *const division_parts[] = {"quotient", "square root"};
static const char *const function_parts[] = {"exp", "log", "tanh", "sigmoid", "erf"};

static void trial_end(struct gpu *gpu, struct trial *trial)
{
    tr_device_free(&gpu->base, trial->in_there);
    tr_device_free(&gpu->base, trial->out_there);
    tr_free(trial->in);
    tr_free(trial->expected);
    tr_free(trial->got);
}

static tr_status trial_begin(struct gpu *gpu, struct trial *trial)
{
    void *in, *out;
    trial->in = tr_alloc_zero(trial->inputs, sizeof(float));
    trial->expected = tr_alloc_zero(trial->results, sizeof(float));
    trial->got = tr_alloc_zero(trial->results, sizeof(float));
    if (!trial->in || !trial->expected || !trial->got) return TR_ENOMEM;
    TR_TRY(gpu_alloc(&gpu->base, trial->inputs * sizeof(float), &in));
    trial->in_there = in;
    TR_TRY(gpu_alloc(&gpu->base, trial->results * sizeof(float), &out));
    trial->out_there = out;
    return TR_OK;
}

static tr_status trial_upload(struct gpu *gpu, const struct trial *trial)
{
    return gpu_to_device(&gpu->base, trial->in_there, trial->in, trial->inputs * sizeof(float));
}

/* +0 or -0 in place of a subnormal number. */
static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* Whether result `at` is what flushing subnormal operands or the result would give. */
static bool is_flushed(const struct trial *trial, size_t at)
{
    float in[3], out[8];
    if (!trial->expect) return false;
    size_t which = at / (size_t)trial->parts, part = at % (size_t)trial->parts;
    for (int i = 0; i < trial->takes; i++)
        in[i] = flushed(trial->in[which * (size_t)trial->takes + (size_t)i]);
    trial->expect(in, out, 1);
    int32_t have = tr_mathf_bits(trial->got[at]);
    return have == tr_mathf_bits(out[part]) || have == tr_mathf_bits(flushed(out[part])) ||
           have == tr_mathf_bits(flushed(trial->expected[at]));
}

/* Copies the results back and compares them; all NaNs count as equal. */
static tr_status trial_judge(struct gpu *gpu, struct trial *trial)
{
    TR_TRY(gpu_to_host(&gpu->base, trial->got, trial->out_there, trial->results * sizeof(float)));
    TR_TRY(gpu->api->wait(gpu->session));
    for (size_t i = 0; i < trial->results; i++) {
        int32_t want = tr_mathf_bits(trial->expected[i]), have = tr_mathf_bits(trial->got[i]);
        if (want == have || (isnan(trial->expected[i]) && isnan(trial->got[i]))) continue;
        char which[64] = "";
        if (gpu->tile) snprintf(which, sizeof which, " in tiles of %d x %d", gpu->tile->m, gpu->tile->n);
        if (trial->parts) snprintf(which, sizeof which, ": %s", trial->part[i % (size_t)trial->parts]);
        return tr_fail(
            TR_EUNSUPPORTED,
            "%s does not give the bits of other devices: %s%s, result %zu is %08x and should be %08x%s; "
            "choose another device or driver",
            gpu->base.description, trial->name, which, i, (unsigned)have, (unsigned)want,
            is_flushed(trial, i) ? ", since subnormal numbers are flushed to 0" : "");
    }
    return TR_OK;
}

static tr_status run_each(struct gpu *gpu, const struct trial *trial, const char *kernel, int64_t count)
{
    struct gpu_call call;
    gpu_begin(&call, &gpu->base, "exact", "", kernel);
    gpu_long(&call, count);
    gpu_array(&call, trial->in_there);
    gpu_array(&call, trial->out_there);
    return gpu_run_each(&call, count);
}

static tr_status try_arithmetic(struct gpu *gpu, struct trial *trial)
{
    fill_triples(trial->in);
    expect_triples(trial->in, trial->expected, TRIPLES);
    TR_TRY(trial_upload(gpu, trial));
    return run_each(gpu, trial, "exact_arithmetic", TRIPLES);
}

static tr_status try_division(struct gpu *gpu, struct trial *trial)
{
    fill_pairs(trial->in);
    expect_pairs(trial->in, trial->expected, PAIRS);
    TR_TRY(trial_upload(gpu, trial));
    return run_each(gpu, trial, "exact_division", PAIRS);
}

static tr_status try_functions(struct gpu *gpu, struct trial *trial)
{
    fill_values(trial->in);
    expect_values(trial->in, trial->expected, VALUES);
    TR_TRY(trial_upload(gpu, trial));
    return run_each(gpu, trial, "exact_functions", VALUES);
}

static tr_status try_random(struct gpu *gpu, struct trial *trial)
{
    const tr_rng_key key = {123, 0xdeadbeef};
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t words[4];
        tr_rng_philox(key, i, 1, 2, 3, words);
        for (int j = 0; j < 4; j++) trial->expected[4 * i + j] = tr_rng_unit(words[j]);
    }
    struct gpu_call call;
    gpu_begin(&call, &gpu->base, "exact", "", "exact_random");
    gpu_long(&call, BLOCKS);
    gpu_uint(&call, key.k0);
    gpu_uint(&call, key.k1);
    gpu_array(&call, trial->out_there);
    return gpu_run_each(&call, BLOCKS);
}

static void fill_uniform(float *to, size_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word[4];
        tr_rng_philox((tr_rng_key){0x7e57, 2}, i, 0, 0, 0, word);
        to[i] = 2 * tr_rng_unit(word[0]) - 1;
    }
}

/* Every 19th row, or column, is so small that its products are subnormal. */
static void shrink(float *to, size_t rows, size_t columns, bool by_column)
{
    for (size_t i = 0; i < rows * columns; i++)
        if ((by_column ? i % columns : i / columns) % 19 == 3) to[i] *= 0x1p-130f;
}

/* Each side is slightly larger than that of the largest tile. */
enum { ROWS = 133, IN = 141, OUT = 131, X = ROWS * IN, W = IN * OUT };

static tr_status try_product(struct gpu *gpu, struct trial *trial)
{
    fill_uniform(trial->in, trial->inputs);
    shrink(trial->in, ROWS, IN, false);
    struct tr_op_dense_forward op = {.rows = ROWS,
                                     .in = IN,
                                     .out = OUT,
                                     .x = trial->in,
                                     .w = trial->in + X,
                                     .b = trial->in + X + W,
                                     .y = trial->expected};
    TR_TRY(ref_dense_forward(&gpu->base, &op));
    TR_TRY(trial_upload(gpu, trial));
    op.x = trial->in_there;
    op.w = trial->in_there + X;
    op.b = trial->in_there + X + W;
    op.y = trial->out_there;
    return tr_device_dense_forward(&gpu->base, &op);
}

static tr_status try_gradient(struct gpu *gpu, struct trial *trial)
{
    static const int64_t row[] = {0, 27, 28, 70, 70, ROWS};
    static const int32_t bound[] = {0, 4, 5};
    fill_uniform(trial->in, trial->inputs);
    shrink(trial->in, ROWS, IN, true);
    struct tr_op_dense_backward_weights op = {.in = IN,
                                              .out = OUT,
                                              .x = trial->in,
                                              .dy = trial->in + X,
                                              .dw = trial->expected,
                                              .db = trial->expected + W,
                                              .cut = {5, row, 2, bound, W + OUT}};
    TR_TRY(ref_dense_backward_weights(&gpu->base, &op));
    TR_TRY(trial_upload(gpu, trial));
    op.x = trial->in_there;
    op.dy = trial->in_there + X;
    op.dw = trial->out_there;
    op.db = trial->out_there + W;
    return tr_device_dense_backward_weights(&gpu->base, &op);
}

static const struct {
    struct trial trial;
    tr_status (*run)(struct gpu *gpu, struct trial *trial);
} trials[] = {
    {{.name = "arithmetic",
      .part = arithmetic_parts,
      .parts = 7,
      .takes = 3,
      .expect = expect_triples,
      .inputs = (size_t)TRIPLES * 3,
      .results = (size_t)TRIPLES * 7},
     try_arithmetic},
    {{.name = "division",
      .part = division_parts,
      .parts = 2,
      .takes = 2,
      .expect = expect_pairs,
      .inputs = (size_t)PAIRS * 2,
      .results = (size_t)PAIRS * 2},
     try_division},
    {{.name = "functions",
      .part = function_parts,
      .parts = 5,
      .takes = 1,
      .expect = expect_values,
      .inputs = VALUES,
      .results = (size_t)VALUES * 5},
     try_functions},
    {{.name = "random numbers", .inputs = 1, .results = (size_t)BLOCKS * 4}, try_random},
    {{.name = "a product", .inputs = X + W + OUT, .results = (size_t)ROWS * OUT, .tiles = true}, try_product},
    {{.name = "a gradient",
      .inputs = X + (size_t)ROWS * OUT,
      .results = (size_t)2 * (W + OUT),
      .tiles = true},
     try_gradient},
};
enum { TRIALS = sizeof trials / sizeof trials[0] };

static tr_status run_one(struct gpu *gpu, int number)
{
    struct trial trial = trials[number].trial;
    tr_status status = trial_begin(gpu, &trial);
    if (status == TR_OK) status = trials[number].run(gpu, &trial);
    if (status == TR_OK) status = trial_judge(gpu, &trial);
    if (status != TR_OK)
        (void)gpu->api->wait(gpu->session); /* copies may be reading the memory that is
                                               freed here */
    trial_end(gpu, &trial);
    return status;
}

static tr_status run_all(struct gpu *gpu)
{
    const struct gpu_tile *tile;
    for (int i = 0; i < TRIALS; i++)
        if (!trials[i].trial.tiles) TR_TRY(run_one(gpu, i));
    for (int t = 0; (tile = gpu_product_tile(&gpu->info, t)); t++)
        for (int i = 0; i < TRIALS; i++) {
            if (!trials[i].trial.tiles) continue;
            gpu->tile = tile;
            tr_status status = run_one(gpu, i);
            gpu->tile = NULL;
            TR_TRY(status);
        }
    return TR_OK;
}

/* ---- once for each device ---- */

/* Kept of a device that passed: whether with its own fused multiply-adds or with those of kernels/fma.h. */
static const char passed[2][16] = {"exact", "exact, own fma"};

static bool test_key(const struct gpu *gpu, char key[TR_SHA256_TEXT])
{
    static const char *const sources[] = {"exact", "product", "reduction"};
    const struct gpu_info *info = &gpu->info;
    const struct gpu_tile *tile;
    struct gpu_key under_way;
    gpu_key_begin(&under_way);
    gpu_key_add(&under_way, "self-test");
    gpu_key_add(&under_way, gpu->api->name);
    gpu_key_add(&under_way, gpu->api->exact);
    gpu_key_add(&under_way, info->platform);
    gpu_key_add(&under_way, info->vendor);
    gpu_key_add(&under_way, info->name);
    gpu_key_add(&under_way, info->driver);
    gpu_key_add(&under_way, info->own_division ? "own division" : "");
    for (int i = 0; (tile = gpu_product_tile(info, i)); i++) {
        char text[80];
        snprintf(text, sizeof text, "%d %d %d %d %d", tile->m, tile->n, tile->k, tile->thread_m,
                 tile->thread_n);
        gpu_key_add(&under_way, text);
    }
    for (int i = 0; i < gpu_prelude_count; i++)
        gpu_key_add(&under_way, gpu_source(gpu->sources, gpu_prelude[i]));
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        gpu_key_add(&under_way, gpu_source(gpu->sources, sources[i]));
    return gpu_key_end(&under_way, key);
}

static bool passed_before(struct gpu *gpu, const char *key)
{
    struct tr_file_content file;
    size_t skip;
    if (!gpu_cache_read(gpu->cache, key, &file, &skip)) return false;
    int how = 0;
    while (how < 2 && (file.size - skip != sizeof passed[0] ||
                       memcmp(file.data + skip, passed[how], sizeof passed[0]) != 0))
        how++;
    tr_file_content_free(&file);
    gpu->own_fma = how == 1;
    return how < 2;
}

tr_status gpu_self_test(struct gpu *gpu)
{
    char key[TR_SHA256_TEXT];
    bool keeps = gpu->cache && test_key(gpu, key);
    gpu->own_fma = false;
    if (keeps && passed_before(gpu, key)) return TR_OK;
    tr_status status = run_all(gpu);
    if (status == TR_EUNSUPPORTED && gpu->info.slow) { /* a function, which may be inexact */
        gpu_programs_release(gpu);
        gpu->own_fma = true;
        status = run_all(gpu);
    }
    if (status == TR_OK && keeps) gpu_cache_write(gpu->cache, key, passed[gpu->own_fma], sizeof passed[0]);
    return status;
}
