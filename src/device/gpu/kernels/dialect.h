/* The dialect: kernels written once, as OpenCL C 1.2 and as CUDA C.
 *
 *   D_KERNEL(threads) void name(...)   a kernel whose groups have so many threads, along one axis
 *   D_KERNEL_GROUPS(threads, groups)   the same, with so many registers for a thread that this many groups share a
 *                                      unit; with 1 all that it asks for: otherwise compilers may choose fewer, and
 *                                      keep numbers of a main loop in memory
 *   D_IN(type, x_), D_OUT(type, x_)    a parameter in the device's memory; D_USE(type, x, x_) makes the pointer x of
 *                                      it (NULL if the caller gave none); D_OUT may also be read
 *   D_GLOBAL                           in front of pointers into the device's memory
 *   D_SHARED                           an array that the threads of a group share; D_SHARED_POINTER: points to one
 *   D_BARRIER()                        waits for all threads of the group; their writes to D_SHARED are visible;
 *                                      D_BARRIER_MEMORY(): also their writes to the device's memory
 *   D_THREAD(), D_GROUP(axis), D_INDEX()   the number of the thread in its group, of the group, and of the thread;
 *                                      D_GROUPS(axis): how many groups there are, where they are gpu_walkers() or
 *                                      fewer along axes 1 and 2
 *   D_FMA(a, b, c), D_DIV(a, b), D_SQRT(a)   one rounding each; + - * round separately. Floats are never divided by
 *                                      /, which not all devices round correctly: where D_OWN_DIVISION is defined,
 *                                      these are the functions of division.h, and that of fma.h where D_OWN_FMA is
 *   D_BITS(x), D_FLOAT(bits)           a float's bits as int32_t, and back
 *   D_MULHI(a, b)                      the upper half of the product of two uint32_t
 *   D_ZEROS(x)                         leading zeros of a uint64_t that is not 0
 *   D_OR(address, bits), D_INCREMENT(address)   atomic, on an int
 *   D_LANE(shift), D_LINE(axis, shift) where 2^shift neighbouring threads of a group work on one line: the number of
 *                                      the thread in its line, and of the line along the axis
 *   D_LEAST(a, b), D_MOST(a, b)        the smaller, the larger one; the second where one is NaN
 *   D_INFINITY, D_NAN, D_IS_FINITE(x)  of floats
 *   D_USE_SCALARS(type, s, s_)         as D_USE, of struct d_scalars
 *   D_KEEP_POINTER(p), D_KEEP(x)       a statement: keeps a pointer, an integer in a register, so that it is not
 *                                      computed again each time
 *   D_UNROLL, D_UNROLL_SOME, D_UNROLL_MANY, D_ROLLED  before a loop: unroll it wholly where that pays; by four; by
 *                                      sixteen, so that as many loads are under way; never
 */
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#pragma OPENCL FP_CONTRACT OFF
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
typedef uchar uint8_t;
#define D_KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1)))
#define D_KERNEL_GROUPS(threads, groups) D_KERNEL(threads)
#define D_GLOBAL          __global
#define D_SHARED          __local
#define D_SHARED_POINTER  __local
#define D_BARRIER()       barrier(CLK_LOCAL_MEM_FENCE)
#define D_BARRIER_MEMORY() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define D_THREAD()        ((int)get_local_id(0))
#define D_GROUP(axis)     ((int)((axis) == 0 ? get_group_id(0) : get_group_id(axis) + get_global_offset(axis)))
#define D_GROUPS(axis)    ((int)get_num_groups(axis))
#ifdef D_OWN_FMA
#define D_FMA(a, b, c)    d_fma(a, b, c)
#else
#define D_FMA(a, b, c)    fma((float)(a), (float)(b), (float)(c))
#endif
#ifdef D_OWN_DIVISION
#define D_DIV(a, b)       d_divide(a, b)
#define D_SQRT(a)         d_square_root(a)
#else
#define D_DIV(a, b)       ((float)(a) / (float)(b))
#define D_SQRT(a)         sqrt((float)(a))
#endif
#define D_BITS(x)         as_int((float)(x))
#define D_FLOAT(bits)     as_float((int)(bits))
#define D_MULHI(a, b)     mul_hi((uint)(a), (uint)(b))
#define D_ZEROS(x)        ((int)clz((ulong)(x)))
#define D_OR(address, v)  atomic_or((volatile __global int *)(address), v)
#define D_INCREMENT(address) atomic_inc((volatile __global int *)(address))
#define D_KEEP_POINTER(p) {}
#define D_KEEP(x)         {}
#ifdef D_KEEP_ROLLED /* compilers for processors take minutes for unrolled loops */
#define D_UNROLL
#define D_UNROLL_SOME
#define D_UNROLL_MANY
#else
#define D_UNROLL      _Pragma("unroll")
#define D_UNROLL_SOME _Pragma("unroll 4")
#define D_UNROLL_MANY _Pragma("unroll 16")
#endif
#define D_ROLLED _Pragma("unroll 1")
#elif defined(__CUDACC__)
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned char uint8_t;
#define D_KERNEL(threads) extern "C" __global__ __launch_bounds__(threads)
#define D_KERNEL_GROUPS(threads, groups) extern "C" __global__ __launch_bounds__(threads, groups)
#define D_GLOBAL
#define D_SHARED          __shared__
#define D_SHARED_POINTER
#define D_BARRIER()       __syncthreads()
#define D_BARRIER_MEMORY() __syncthreads()
#define D_THREAD()        ((int)threadIdx.x)
extern "C" {
__constant__ unsigned int d_first_group[3]; /* of struct gpu_launch: the host writes it where it is not 0 */
}
#define D_GROUP(axis)                                                                                        \
    ((int)((axis) == 0   ? blockIdx.x                                                                        \
           : (axis) == 1 ? blockIdx.y + d_first_group[1]                                                     \
                         : blockIdx.z + d_first_group[2]))
#define D_GROUPS(axis)    ((int)((axis) == 0 ? gridDim.x : (axis) == 1 ? gridDim.y : gridDim.z))
#define D_FMA(a, b, c)    __fmaf_rn(a, b, c)
#define D_DIV(a, b)       __fdiv_rn(a, b)
#define D_SQRT(a)         __fsqrt_rn(a)
#define D_BITS(x)         __float_as_int(x)
#define D_FLOAT(bits)     __int_as_float(bits)
#define D_MULHI(a, b)     __umulhi(a, b)
#define D_ZEROS(x)        __clzll((int64_t)(x))
#define D_OR(address, v)  atomicOr((int *)(address), v)
#define D_INCREMENT(address) atomicAdd((int *)(address), 1)
#define D_KEEP_POINTER(p)                                                                                    \
    {                                                                                                        \
        asm volatile("" : "+l"(p));                                                                          \
        __builtin_assume(__isGlobal(p));                                                                     \
    }
static inline void d_keep(uint32_t &x)
{
    asm volatile("" : "+r"(x));
}
static inline void d_keep(int64_t &x)
{
    asm volatile("" : "+l"(x));
}
#define D_KEEP(x)         d_keep(x);
#define D_UNROLL          _Pragma("unroll")
#define D_UNROLL_SOME     _Pragma("unroll 4")
#define D_UNROLL_MANY     _Pragma("unroll 16")
#define D_ROLLED          _Pragma("unroll 1")
#else
#error "neither OpenCL C nor CUDA"
#endif

#define D_IN(type, name)  D_GLOBAL const type *name##block, int64_t name##first
#define D_OUT(type, name) D_GLOBAL type *name##block, int64_t name##first
#define D_USE(type, pointer, name) D_GLOBAL type *pointer = name##block ? name##block + name##first : name##block
#define D_INDEX()                  ((int64_t)D_GROUP(0) * D_THREADS + D_THREAD())
#define D_LANE(shift)              (D_THREAD() & ((1 << (shift)) - 1))
#define D_LINE(axis, shift)        ((int64_t)D_GROUP(axis) * (D_THREADS >> (shift)) + (D_THREAD() >> (shift)))
#define D_LEAST(a, b)              ((a) < (b) ? (a) : (b))
#define D_MOST(a, b)               ((a) > (b) ? (a) : (b))
#define D_INFINITY                 D_FLOAT(0x7f800000)
#define D_NAN                      D_FLOAT(0x7fc00000)
#define D_IS_FINITE(x)             ((D_BITS(x) & 0x7f800000) != 0x7f800000)

/* struct tr_step_scalars of device/ops.h. It is a parameter D_IN(uint32_t, ...) or D_OUT(uint32_t, ...), since it
   may begin at any multiple of 4 bytes. */
struct d_scalars {
    uint32_t step;
    float rate, adam_rate, adam_correction, ema_decay, clip_scale;
    int32_t nonfinite, held;
};
#define D_USE_SCALARS(type, pointer, name) D_GLOBAL type *pointer = (D_GLOBAL type *)(name##block + name##first)

/* base/numbers/mathf.inc follows, for floats: tr_mathf_exp(), tr_mathf_log(), tr_mathf_tanh(), tr_mathf_sigmoid(),
   tr_mathf_erf(), tr_mathf_flush(). */
#define M_NAME(name)           tr_mathf_##name
#define M_F                    float
#define M_I                    int32_t
#define M_SET(c)               (c)
#define M_SET_INT(c)           (c)
#define M_INFINITY             D_INFINITY
#define M_NAN                  D_NAN
#define M_FMA(a, b, c)         D_FMA(a, b, c)
#define M_ADD(a, b)            ((a) + (b))
#define M_SUB(a, b)            ((a) - (b))
#define M_MUL(a, b)            ((a) * (b))
#define M_DIV(a, b)            D_DIV(a, b)
#define M_LESS(a, b, yes, no)  ((a) < (b) ? (yes) : (no))
#define M_EQUAL(a, b, yes, no) ((a) == (b) ? (yes) : (no))
#define M_BITS(x)              D_BITS(x)
#define M_FLOAT(bits)          D_FLOAT(bits)
#define M_TO_FLOAT(n)          ((float)(n))
#define M_IADD(a, b)           ((int32_t)((uint32_t)(a) + (uint32_t)(b)))
#define M_ISUB(a, b)           ((int32_t)((uint32_t)(a) - (uint32_t)(b)))
#define M_AND(a, b)            ((a) & (b))
#define M_OR(a, b)             ((a) | (b))
#define M_SHL(a, count)        ((int32_t)((uint32_t)(a) << (count)))
#define M_SHR(a, count)        ((a) >> (count))
