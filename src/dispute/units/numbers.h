/* The vocabulary of units: numbers of the program that is being built (dispute/units/unit.h). */
#ifndef TR_DISPUTE_NUMBERS_H
#define TR_DISPUTE_NUMBERS_H

#include "base/numbers/tree.h"
#include "dispute/units/unit.h"

#define LANES 16

/* A value of the program. */
struct num {
    uint32_t id;
};

/* ---- instructions ---- */

struct num unit_emit(enum tr_program_op op, struct num a, struct num b, struct num c, struct num d);
struct num constant(float value);
struct num word(uint32_t bits);
static inline struct num fused(struct num a, struct num b, struct num c)
{
    return unit_emit(TR_PROGRAM_FMA, a, b, c, c);
}
static inline struct num add(struct num a, struct num b)
{
    return unit_emit(TR_PROGRAM_ADD, a, b, a, a);
}
static inline struct num sub(struct num a, struct num b)
{
    return unit_emit(TR_PROGRAM_SUB, a, b, a, a);
}
static inline struct num mul(struct num a, struct num b)
{
    return unit_emit(TR_PROGRAM_MUL, a, b, a, a);
}
static inline struct num over(struct num a, struct num b)
{
    return unit_emit(TR_PROGRAM_DIV, a, b, a, a);
}
static inline struct num root(struct num a)
{
    return unit_emit(TR_PROGRAM_SQRT, a, a, a, a);
}
/* a < b ? yes : no; a == b ? yes : no. */
static inline struct num if_less(struct num a, struct num b, struct num yes, struct num no)
{
    return unit_emit(TR_PROGRAM_LESS, a, b, yes, no);
}
static inline struct num if_equal(struct num a, struct num b, struct num yes, struct num no)
{
    return unit_emit(TR_PROGRAM_EQUAL, a, b, yes, no);
}
/* -a; |a|. */
static inline struct num negated(struct num a)
{
    return unit_emit(TR_PROGRAM_XOR, a, word(0x80000000u), a, a);
}
static inline struct num magnitude(struct num a)
{
    return unit_emit(TR_PROGRAM_AND, a, word(0x7fffffffu), a, a);
}
struct num flushed(struct num a);
struct num exponential(struct num a);
struct num logarithm(struct num a);
struct num tangent(struct num a); /* hyperbolic */
struct num sigmoid(struct num a);
struct num error_function(struct num a);

/* ---- inputs ---- */

struct num in(const void *at);      /* a word */
struct num own(const void *at);     /* a word that the operation has written */
struct num in_byte(const void *at); /* a byte, as an integer */
int64_t whole(const int32_t *at);   /* integers that refer to others */
int64_t whole_byte(const uint8_t *at);
int64_t wide(const int64_t *at);
/* Ends the unit: the arguments, or the data they point to, are invalid. */
void unit_refuse(const char *why);

/* The example that a row belongs to, by offsets [examples + 1]. */
struct unit_example {
    int64_t number, begin, end;
};
struct unit_example example_of(const int32_t *offset, int64_t examples, int64_t row);

/* ---- what texts of operations share ---- */

/* A lane sum or chain being computed. */
struct lane_sum {
    struct num lane[LANES];
    int64_t count;
};
struct lane_sum lanes_begin(void);
void lanes_add(struct lane_sum *lanes, struct num a);
void lanes_fused(struct lane_sum *lanes, struct num a, struct num b);
struct num lanes_total(const struct lane_sum *lanes);

/* A maximum being computed: the first of equal values, NaN above all; and its place. */
struct greatest {
    struct num value, at;
    bool any;
};
void greatest_add(struct greatest *greatest, struct num value, int64_t at);

struct num activated(enum tr_activation activation, float slope, struct num x);
/* One of four words of Philox, as in tr_rng_philox(); and x as dropout keeps or drops it. */
struct num philox(const uint32_t key[2], const struct num counter[4], int which);
struct num kept(struct num bits, float rate, struct num x);

/* Node `node` of a cut: the tree over the contributions of microbatches. */
typedef struct num unit_leaf(const void *arguments, int32_t microbatch, int64_t at);
struct num over_cut(const struct tr_cut *cut, int64_t node, unit_leaf *leaf, const void *arguments,
                    int64_t at);
static inline int64_t cut_begin(const struct tr_cut *cut, int32_t microbatch)
{
    return cut->row[microbatch];
}
static inline int64_t cut_end(const struct tr_cut *cut, int32_t microbatch)
{
    return cut->row[microbatch + 1];
}
/* The microbatch that a row belongs to. */
int32_t microbatch_of(const struct tr_cut *cut, int64_t row);

/* The pixel that tap `tap` of output pixel `output` reads, -1 outside of the image. */
int64_t pixel_of(const struct tr_sliding_window *window, int64_t output, int64_t tap);
/* The tap by which output pixel `output` reads pixel `pixel`, -1 for none. */
int64_t tap_of(const struct tr_sliding_window *window, int64_t output, int64_t pixel);
static inline int64_t pixels_in(const struct tr_sliding_window *window)
{
    return (int64_t)window->in_h * window->in_w;
}
static inline int64_t pixels_out(const struct tr_sliding_window *window)
{
    return (int64_t)window->out_h * window->out_w;
}
static inline int64_t taps_of(const struct tr_sliding_window *window)
{
    return (int64_t)window->kernel_h * window->kernel_w;
}

/* Whether an output is one of the operand `name`. */
static inline bool is(const struct tr_unit_output *place, const char *name)
{
    return strcmp(place->operand, name) == 0;
}

/* ---- the lists ---- */

typedef struct num unit_function(const void *arguments, const struct tr_unit_output *place);
struct unit_entry {
    enum tr_operation_number operation;
    unit_function *value;
};

#define UNIT(op)                                                                                             \
    static struct num op##_value(const struct tr_op_##op *a, const struct tr_unit_output *to);               \
    static struct num op##_unit(const void *arguments, const struct tr_unit_output *to)                      \
    {                                                                                                        \
        return op##_value(arguments, to);                                                                    \
    }                                                                                                        \
    static struct num op##_value(const struct tr_op_##op *a, const struct tr_unit_output *to)
#define UNIT_ENTRY(op) {TR_OPERATION_##op, op##_unit},
#define UNIT_END                                                                                             \
    {                                                                                                        \
        TR_OPERATIONS, NULL                                                                                  \
    }

extern const struct unit_entry unit_attention[], unit_dense[], unit_elements[], unit_group[], unit_input[],
    unit_losses[], unit_norm[], unit_pool[], unit_recurrent[], unit_sequence[], unit_update[], unit_window[],
    unit_winograd[];

#endif
