/* Each check feeds vectors from all over float32, the special values among them, and compares every lane with
 * the scalar operation. NaN equals NaN. */
#include "device/cpu/vec_checks.h"

#include "base/numbers/mathf.h"
#include "base/numbers/rng.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/compress.h"
#include "device/cpu/vectors/lanes.h"
#include "device/cpu/vectors/math.h"
#include "device/functions.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

extern const struct vec_checks CPU_KERNEL(vec_checks);

static char message[256];

static const float special[] = {
    0.0f,       -0.0f,     1.0f,    -1.0f,     0x1p-149f, -0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f,
    -0x1p-126f, 0x1p-24f,  0x1p23f, 0x1p24f,   -0x1p31f,  16777217.f, 0x1.fffffep127f,  -0x1.fffffep127f,
    INFINITY,   -INFINITY, NAN,     0.921875f, 88.72284f, -87.33655f, -103.97208f,      9.02f,
};

/* Bits number `index` of an endless sequence that begins with all pairs of the special values. */
static uint32_t word(uint32_t stream, uint32_t index)
{
    uint32_t block[4];
    if (index < LENGTH(special) * LENGTH(special)) {
        uint32_t pick = stream == 0 ? index / LENGTH(special) : (index + stream - 1) % LENGTH(special);
        return (uint32_t)tr_mathf_bits(special[pick]);
    }
    tr_rng_philox((tr_rng_key){stream, 9}, index, 0, 0, 0, block);
    return block[0];
}

static void fill(uint32_t stream, uint32_t first, float x[VW])
{
    for (int i = 0; i < VW; i++) x[i] = tr_mathf_float((int32_t)word(stream, first + (uint32_t)i));
}

static void fill_words(uint32_t stream, uint32_t first, vi *v)
{
    float x[VW];
    fill(stream, first, x);
    *v = v_bits(v_load(x));
}

static uint32_t lane_of(vi v, int i)
{
    float x[VW];
    v_store(x, v_from_bits(v));
    return (uint32_t)tr_mathf_bits(x[i]);
}

static bool same(float a, float b)
{
    return tr_mathf_bits(a) == tr_mathf_bits(b) || (a != a && b != b);
}

static const char *wrong(const char *what, int lane, double got, double expected)
{
    snprintf(message, sizeof message, "%s: lane %d is %a, should be %a", what, lane, got, expected);
    return message;
}

/* Each of these is compared on so many numbers. */
#define SAMPLES 100000

static const char *math_functions_of(const float x[VW])
{
    float y[VW];
    vf v = v_load(x);
#define SAME_AS(vector, scalar)                                                                              \
    v_store(y, vector(v));                                                                                   \
    for (int i = 0; i < VW; i++)                                                                             \
        if (!same(y[i], scalar(x[i]))) return wrong(#vector, i, (double)y[i], (double)scalar(x[i]));
    SAME_AS(v_exp, tr_expf)
    SAME_AS(v_log, tr_logf)
    SAME_AS(v_tanh, tr_tanhf)
    SAME_AS(v_sigmoid, tr_sigmoidf)
    SAME_AS(v_erf, tr_erff)
#undef SAME_AS
    return NULL;
}

/* Lanes of any size; all within some bound, so that a vector may leave out what large numbers need; and one
   lane about such a bound. */
static const char *math_functions(void)
{
    static const float bounds[] = {1.0f, 4.0f, 20.0f, 84.0f, 85.99f, 86.0f, 87.0f, 88.5f, 89.0f, 104.0f};
    float x[VW];
    for (uint32_t first = 0; first < SAMPLES; first += VW) {
        fill(0, first, x);
        const char *failed = math_functions_of(x);
        const float bound = bounds[first / VW % LENGTH(bounds)];
        for (int i = 0; i < VW; i++) x[i] = (float)(int32_t)word(5, first + (uint32_t)i) * 0x1p-31f * bound;
        if (!failed) failed = math_functions_of(x);
        const uint32_t turn = first / VW / LENGTH(bounds); /* each bound comes to each lane with both signs */
        x[turn % VW] = turn / VW % 2 ? -bound : bound;
        if (!failed) failed = math_functions_of(x);
        if (failed) return failed;
    }
    return NULL;
}

static const char *arithmetic(void)
{
    float a[VW], b[VW], c[VW], y[VW];
    for (uint32_t first = 0; first < SAMPLES; first += VW) {
        fill(0, first, a);
        fill(1, first, b);
        fill(2, first, c);
        vf va = v_load(a), vb = v_load(b), vc = v_load(c);
#define SAME_AS(vector, scalar)                                                                              \
    v_store(y, vector);                                                                                      \
    for (int i = 0; i < VW; i++)                                                                             \
        if (!same(y[i], scalar)) return wrong(#vector, i, (double)y[i], (double)(scalar));
        SAME_AS(v_add(va, vb), a[i] + b[i])
        SAME_AS(v_sub(va, vb), a[i] - b[i])
        SAME_AS(v_mul(va, vb), a[i] * b[i])
        SAME_AS(v_div(va, vb), a[i] / b[i])
        SAME_AS(v_sqrt(va), sqrtf(a[i]))
        SAME_AS(v_fma(va, vb, vc), fmaf(a[i], b[i], c[i]))
        SAME_AS(v_greater(va, vb), a[i] > b[i] ? a[i] : b[i])
        SAME_AS(v_lesser(va, vb), a[i] < b[i] ? a[i] : b[i])
        SAME_AS(v_fnma(va, vb, vc), fmaf(-a[i], b[i], c[i]))
        SAME_AS(v_zero(), 0.0f)
        SAME_AS(v_set1(a[0]), a[0])
        SAME_AS(v_select(v_lt(va, vb), va, vc), a[i] < b[i] ? a[i] : c[i])
        SAME_AS(v_select(v_gt(va, vb), va, vc), a[i] > b[i] ? a[i] : c[i])
        SAME_AS(v_select(v_ge(va, vb), va, vc), a[i] >= b[i] ? a[i] : c[i])
        SAME_AS(v_select(v_eq(va, vb), va, vc), a[i] == b[i] ? a[i] : c[i])
        SAME_AS(v_select(v_not_le(va, vb), va, vc), !(a[i] <= b[i]) ? a[i] : c[i])
        SAME_AS(v_select(vm_and(v_lt(va, vb), v_lt(vc, vb)), va, vc),
                a[i] < b[i] && c[i] < b[i] ? a[i] : c[i])
        SAME_AS(v_select(v_replaces(va, vb), va, vb),
                a[i] > b[i] || (a[i] != a[i] && b[i] == b[i]) ? a[i] : b[i])
#undef SAME_AS
    }
    return NULL;
}

/* Sums so close to half way between two floats that a number with 53 bits does not tell on which side: who
   rounds twice is wrong on some. Results are normal, subnormal and on the border. */
static const char *roundings(void)
{
    float a[VW], b[VW], c[VW], y[VW];
    for (uint32_t first = 0; first < SAMPLES; first += VW) {
        for (int i = 0; i < VW; i++) {
            uint32_t random = word(0, first + (uint32_t)i);
            int exponent = (int)(random >> 24) % 40 - 148; /* of half a unit in the last place */
            float unit = ldexpf(1, exponent / 2), more = ldexpf(1, exponent - exponent / 2);
            c[i] = ldexpf((float)(random & 0xffffff), exponent + 1 < -149 ? -149 : exponent + 1);
            a[i] = unit * (1 + 0x1p-23f);
            b[i] = more * (random & 1 << 23 ? -1.0f : 1.0f) * (1 - 0x1p-23f);
            if (random & 1 << 22) a[i] = unit; /* below or above */
            if (random & 1 << 21) b[i] = more * (1 + 0x1p-22f);
        }
        v_store(y, v_fma(v_load(a), v_load(b), v_load(c)));
        for (int i = 0; i < VW; i++)
            if (!same(y[i], fmaf(a[i], b[i], c[i])))
                return wrong("v_fma", i, (double)y[i], (double)fmaf(a[i], b[i], c[i]));
    }
    return NULL;
}

static const char *integers(void)
{
    for (uint32_t first = 0; first < SAMPLES; first += VW) {
        vi a, b, high;
        fill_words(0, first, &a);
        fill_words(1, first, &b);
        uint32_t factor = word(3, first);
        vi low = vi_mul_wide(a, factor, &high);
        for (int i = 0; i < VW; i++) {
            uint32_t x = lane_of(a, i), y = lane_of(b, i);
            uint64_t product = (uint64_t)x * factor;
#define SAME_AS(vector, scalar)                                                                              \
    if (lane_of(vector, i) != (uint32_t)(scalar))                                                            \
        return wrong(#vector, i, lane_of(vector, i), (uint32_t)(scalar));
            SAME_AS(vi_add(a, b), x + y)
            SAME_AS(vi_sub(a, b), x - y)
            SAME_AS(vi_and(a, b), x & y)
            SAME_AS(vi_or(a, b), x | y)
            SAME_AS(vi_xor(a, b), x ^ y)
            SAME_AS(vi_shl(a, 23), x << 23)
            SAME_AS(vi_shr(a, 8), x >> 8)
            SAME_AS(vi_sar(a, 1), (int32_t)x >> 1)
            SAME_AS(vi_set1((int32_t)factor), factor)
            SAME_AS(vi_select(vi_eq(a, b), a, vi_set1(7)), x == y ? x : 7)
            SAME_AS(low, product)
            SAME_AS(high, product >> 32)
            SAME_AS(v_bits(v_to_float(vi_sar(a, 8))), tr_mathf_bits((float)((int32_t)x >> 8)))
#undef SAME_AS
        }
    }
    return NULL;
}

/* Everything in part, at the very end of a page after which nothing may be touched. */
static const char *parts(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0) return "no memory to test with";
    const char *result = NULL;
    float x[VW], y[VW];
    fill(2, 5000, x);
    for (int n = 0; n <= VW && !result; n++) {
        float *at = (float *)(void *)(pages + page) - n;
        uint8_t *bytes = pages + page - n;
        for (int i = 0; i < n; i++) at[i] = x[i];
        v_store(y, v_load_part(at, n));
        for (int i = 0; i < VW; i++)
            if (!same(y[i], i < n ? x[i] : 0)) result = wrong("v_load_part", i, (double)y[i], (double)x[i]);
        v_store(y, v_keep_part(v_load(x), n));
        for (int i = 0; i < VW; i++)
            if (!same(y[i], i < n ? x[i] : 0)) result = wrong("v_keep_part", i, (double)y[i], (double)x[i]);
        at[-1] = 3;
        v_store_part(at, v_set1(5), n);
        for (int i = -1; i < n; i++)
            if (at[i] != (i < 0 ? 3 : 5)) result = wrong("v_store_part", i, (double)at[i], 5);
        for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(250 + i);
        vi loaded = n == VW ? vi_load_bytes(bytes) : vi_load_bytes_part(bytes, n);
        for (int i = 0; i < VW; i++)
            if (lane_of(loaded, i) != (i < n ? (uint8_t)(250 + i) : 0u))
                result = wrong("vi_load_bytes", i, lane_of(loaded, i), (uint8_t)(250 + i));
        bytes[-1] = 77;
        vi stored = vi_set1(0x12345677);
        for (int i = 0; i < n; i++) bytes[i] = 0;
        if (n == VW)
            vi_store_bytes(bytes, stored);
        else
            vi_store_bytes_part(bytes, stored, n);
        for (int i = -1; i < n; i++)
            if (bytes[i] != (i < 0 ? 77 : 0x77)) result = wrong("vi_store_bytes", i, bytes[i], 0x77);
    }
    munmap(pages, 2 * page);
    return result;
}

static const char *shuffles(void)
{
    /* Word w of item k is 4 k + w; afterwards the words lie in ascending order. */
    vi order = vi_zip4_order(), words[4];
    for (int w = 0; w < 4; w++) words[w] = vi_add(vi_shl(order, 2), vi_set1(w));
    vi_zip4(words);
    for (int i = 0; i < 4 * VW; i++)
        if (lane_of(words[i / VW], i % VW) != (uint32_t)i)
            return wrong("vi_zip4", i, lane_of(words[i / VW], i % VW), i);
    vf rows[VW];
    float x[VW];
    for (int r = 0; r < VW; r++) {
        for (int c = 0; c < VW; c++) x[c] = (float)(r * VW + c);
        rows[r] = v_load(x);
    }
    v_transpose(rows);
    for (int r = 0; r < VW; r++) {
        v_store(x, rows[r]);
        for (int c = 0; c < VW; c++)
            if (x[c] != (float)(c * VW + r)) return wrong("v_transpose", c, (double)x[c], c * VW + r);
    }
    return NULL;
}

#ifdef V_HAS_COMPRESS
/* Every mask: its lanes move to the front, and back to where they were. */
static const char *compression(void)
{
    float number[VW], other[VW], side[VW], x[VW];
    for (int i = 0; i < VW; i++) {
        number[i] = (float)(i + 1);
        other[i] = -number[i];
    }
    for (uint32_t mask = 0; mask < UINT32_C(1) << VW; mask++) {
        for (int i = 0; i < VW; i++) side[i] = mask >> i & 1 ? 1.0f : -1.0f;
        const vm m = v_gt(v_load(side), v_zero());
        const vf packed = v_compress(m, v_load(number));
        int count = 0;
        v_store(x, packed);
        for (int i = 0; i < VW; i++)
            if (mask >> i & 1) {
                if (x[count] != number[i])
                    return wrong("v_compress", count, (double)x[count], (double)number[i]);
                count++;
            }
        if (vm_count(m) != count) return wrong("vm_count", mask, vm_count(m), count);
        v_store(x, v_expand(m, packed, v_load(other)));
        for (int i = 0; i < VW; i++)
            if (x[i] != (mask >> i & 1 ? number[i] : other[i]))
                return wrong("v_expand", i, (double)x[i], (double)(mask >> i & 1 ? number[i] : other[i]));
        v_store(x, v_select(vm_not(m), v_load(number), v_load(other)));
        for (int i = 0; i < VW; i++)
            if (x[i] != (mask >> i & 1 ? other[i] : number[i]))
                return wrong("vm_not", i, (double)x[i], (double)(mask >> i & 1 ? other[i] : number[i]));
    }
    return NULL;
}
#endif

/* Lane sums and maxima of rows of every width up to some vectors. */
static const char *rows_by_lanes(void)
{
    float x[100];
    for (int width = 1; width <= LENGTH(x); width++) {
        float lane[LANES] = {0}, greatest;
        for (int k = 0; k < width; k++) {
            x[k] = (float)(int32_t)word(4, 10000u + (uint32_t)(width * 100 + k)) * 0x1p-20f;
            lane[k % LANES] += x[k];
        }
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int j = 0; j < half; j++) lane[j] += lane[j + half];
        struct lanes sum = lanes_set1(0);
        for (int k = 0; k < width; k += LANES) sum = lanes_add(sum, lanes_load(x + k, width - k));
        if (!same(lanes_total(sum), lane[0]))
            return wrong("lanes_total", width, (double)lanes_total(sum), (double)lane[0]);
        greatest = x[0];
        for (int k = 1; k < width; k++) greatest = x[k] > greatest ? x[k] : greatest;
        if (!same(lanes_maximum(x, width), greatest))
            return wrong("lanes_maximum", width, (double)lanes_maximum(x, width), (double)greatest);
        for (int k = 0; k < width; k++) {
            float kept = x[k];
            x[k] = NAN;
            if (!same(lanes_maximum(x, width), NAN))
                return wrong("lanes_maximum of NaN", k, (double)lanes_maximum(x, width), (double)NAN);
            x[k] = kept;
        }
    }
    return NULL;
}

static void functions(const float *in, int count, float *out)
{
    float y[FUNCTIONS][VW];
    for (int first = 0; first < count; first += VW) {
        vf x = v_load(in + first);
        v_store(y[0], v_exp(x));
        v_store(y[1], v_log(x));
        v_store(y[2], v_tanh(x));
        v_store(y[3], v_sigmoid(x));
        v_store(y[4], v_erf(x));
        for (int i = 0; i < VW; i++)
            for (int f = 0; f < FUNCTIONS; f++) *out++ = y[f][i];
    }
}

static const struct vec_check checks[] = {
    {"exp, log, tanh, sigmoid, erf", math_functions},
    {"arithmetic and comparisons", arithmetic},
    {"rounding of sums half way between floats", roundings},
    {"integers", integers},
    {"parts of vectors", parts},
    {"shuffles", shuffles},
#ifdef V_HAS_COMPRESS
    {"compressed lanes", compression},
#endif
    {"lane sums and maxima", rows_by_lanes},
};

#define STRING_(isa) #isa
#define STRING(isa)  STRING_(isa)

const struct vec_checks CPU_KERNEL(vec_checks) = {STRING(TR_ISA), LENGTH(checks), checks, functions};
