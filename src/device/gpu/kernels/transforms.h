/* For device/winograd.inc, which follows, for floats: tr_winograd_input() and so on. */
#define W_NAME(name)   tr_winograd_##name
#define W_F            float
#define W_SET(c)       (c)
#define W_FMA(a, b, c) D_FMA(a, b, c)
#define W_ADD(a, b)    ((a) + (b))
#define W_SUB(a, b)    ((a) - (b))
#define W_MUL(a, b)    ((a) * (b))
#define W_INLINE       static inline
