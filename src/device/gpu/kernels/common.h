/* Pieces of arithmetic that several kernels share; follows the dialect and base/numbers/mathf.inc. */

/* enum tr_activation of device/ops.h. */
#define ACT_NONE       0
#define ACT_RELU       1
#define ACT_LEAKY_RELU 2
#define ACT_TANH       3
#define ACT_SIGMOID    4
#define ACT_GELU       5
#define ACT_GELU_TANH  6
#define ACT_SILU       7
#define ACT_HARD_SWISH 8
#define ACT_RELU6      9

static inline float gelu_erf(float x)
{
    return tr_mathf_erf(x * 0x1.6a09e6p-1f);
}

static inline float gelu_tanh(float x)
{
    return tr_mathf_tanh(x * D_FMA(x * x, 0x1.2444f2p-5f, 0x1.988454p-1f));
}

/* hard_swish over x. */
static inline float hard_gate(float x)
{
    float t = x + 3.0f;
    return (0.0f > t ? 0.0f : t > 6.0f ? 6.0f : t) * 0x1.555556p-3f;
}

static inline float activate(int activation, float slope, float x)
{
    if (activation == ACT_RELU) return 0.0f > x ? 0.0f : x;
    if (activation == ACT_LEAKY_RELU) return 0.0f > x ? slope * x : x;
    if (activation == ACT_TANH) return tr_mathf_tanh(x);
    if (activation == ACT_SIGMOID) return tr_mathf_sigmoid(x);
    if (activation == ACT_GELU) return (0.5f * x) * (1.0f + gelu_erf(x));
    if (activation == ACT_GELU_TANH) return (0.5f * x) * (1.0f + gelu_tanh(x));
    if (activation == ACT_SILU) return x * tr_mathf_sigmoid(x);
    if (activation == ACT_HARD_SWISH) return x * hard_gate(x);
    if (activation == ACT_RELU6) return 0.0f > x ? 0.0f : x > 6.0f ? 6.0f : x;
    return x;
}

/* Whether a later value replaces the kept one in a maximum: the first of equal values stays, NaN wins. */
static inline int replaces(float later, float kept)
{
    return later > kept || (later != later && kept == kept);
}

/* Philox 4x32-10, as in base/numbers/rng.h. */
static inline void philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3,
                          uint32_t *out)
{
    D_ROLLED for (int round = 0; round < 10; round++)
    {
        uint32_t n0 = D_MULHI(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = D_MULHI(0xD2511F53u, c0) ^ c3 ^ k1;
        c1 = 0xCD9E8D57u * c2;
        c3 = 0xD2511F53u * c0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* 24 high bits as a float in [0, 1). */
static inline float unit(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

/* Windows that slide over images of [in_h][in_w] pixels: parameters of kernels, see operations/window.h. */
#define WINDOW_PARAMETERS                                                                                    \
    int in_h, int in_w, int out_h, int out_w, int kernel_h, int kernel_w, int stride_h, int stride_w,        \
        int dilation_h, int dilation_w, int pad_top, int pad_left

/* The first and the last output, along one axis, whose window may reach input `at`. */
static inline int first_reaching(int at, int taps, int stride, int dilation, int pad)
{
    int beyond = at + pad - (taps - 1) * dilation;
    return beyond > 0 ? (beyond + stride - 1) / stride : 0;
}

static inline int last_reaching(int at, int stride, int pad, int out)
{
    return D_LEAST((at + pad) / stride, out - 1);
}
