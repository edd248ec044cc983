#include "device/operation.h"

#include <string.h>

/* ---- what the expressions in descriptions use ---- */

static int64_t tr_window_in(const struct tr_sliding_window *window)
{
    return (int64_t)window->in_h * window->in_w;
}

static int64_t tr_window_out(const struct tr_sliding_window *window)
{
    return (int64_t)window->out_h * window->out_w;
}

static int64_t tr_window_taps(const struct tr_sliding_window *window)
{
    return (int64_t)window->kernel_h * window->kernel_w;
}

static int64_t tr_fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t tr_join_width(int32_t parts, const int64_t *width)
{
    int64_t all = 0;
    for (int32_t i = 0; i < parts; i++) all += width[i];
    return all;
}

/* The keys of all queries. */
static int64_t tr_attention_keys(const struct tr_attention *at, bool host)
{
    return host ? at->key_offset[at->examples] - at->key_offset[0] : at->examples;
}

/* The number of pairs of queries and keys that meet, of one head. */
static int64_t tr_attention_pairs(const struct tr_attention *at, bool host)
{
    int64_t pairs = 0;
    if (!host) return at->examples;
    for (int64_t e = 0; e < at->examples; e++) {
        const int64_t n = at->offset[e + 1] - at->offset[e], m = at->key_offset[e + 1] - at->key_offset[e];
        if (at->window == 0) {
            pairs += at->causal ? n * (m - n) + n * (n + 1) / 2 : n * m;
            continue;
        }
        for (int64_t t = m - n; t < m; t++) {
            const int64_t end = at->causal ? t + 1 : tr_fewer(m, t + at->window);
            pairs += end - (t < at->window ? 0 : t - at->window + 1);
        }
    }
    return pairs;
}

static int64_t tr_gathered_words(const struct tr_op_gather_rows *a, bool host)
{
    if (!a->start) return a->rows * a->width;
    return host ? a->offset[a->rows] - a->offset[0] : a->rows;
}

/* Operations for one number. */
static int64_t tr_rule_operations(enum tr_rule rule)
{
    static const int operations[] = {
        [TR_RULE_SGD] = 2,  [TR_RULE_MOMENTUM] = 4, [TR_RULE_ADAM] = 12,   [TR_RULE_ADAMW] = 14,
        [TR_RULE_LION] = 9, [TR_RULE_RMSPROP] = 9,  [TR_RULE_ADAGRAD] = 6, [TR_RULE_STATISTIC] = 3};
    return operations[rule];
}

/* ---- the table ---- */

#define DECLARE(op)                                                                                          \
    static int64_t measure_##op(const void *arguments, int64_t rows, bool host, int64_t *elements);
TR_DEVICE_OPS(DECLARE)
#undef DECLARE

/* Functions: each line appends the elements of its operand, or adds operations. */
#define NONE              elements[count++] = 0;
#define POINTER(m, n)     elements[count++] = a->m ? (n) : 0;
#define LINE(role, ...)   LINE_##role(__VA_ARGS__)
#define LINE_SIZE(m)      NONE
#define LINE_SHAPE(m)     NONE
#define LINE_CUT(m)       NONE
#define LINE_OFFSET(m)    NONE
#define LINE_READS        POINTER
#define LINE_READS_PART   POINTER
#define LINE_WRITES       POINTER
#define LINE_WRITES_PART  POINTER
#define LINE_KEEPS        POINTER
#define LINE_UPDATES      POINTER
#define LINE_UPDATES_PART POINTER
#define LINE_REPLACES     POINTER
#define LINE_NODES        POINTER
#define LINE_INDEX        POINTER
#define LINE_WORKSPACE    POINTER
#define LINE_PART(m, op)                                                                                     \
    operations += measure_##op(&a->m, rows, host, NULL);                                                     \
    NONE
#define LINE_OPERATIONS(n)                                                                                   \
    operations += (n);                                                                                       \
    NONE
#define MEASURE(op)                                                                                          \
    static int64_t measure_##op(const void *arguments, int64_t rows, bool host, int64_t *elements)           \
    {                                                                                                        \
        const struct tr_op_##op *a = arguments;                                                              \
        int64_t ignored[TR_OPERANDS_MOST], operations = 0;                                                   \
        int count = 0;                                                                                       \
        (void)rows;                                                                                          \
        (void)host;                                                                                          \
        if (!elements) elements = ignored;                                                                   \
        TR_ABOUT_##op(LINE) return operations;                                                               \
    }
TR_DEVICE_OPS(MEASURE)
#undef MEASURE
#undef LINE

/* Tables: each line becomes an operand. */
#define MEMBER(role, m, of)      {TR_ROLE_##role, #m, offsetof(arguments_type, m), sizeof(of), TR_OPERATIONS},
#define WHOLE(role, m)           MEMBER(role, m, ((arguments_type *)0)->m)
#define DATA(role, m)            MEMBER(role, m, *((arguments_type *)0)->m)
#define ENTRY(role, ...)         ENTRY_##role(__VA_ARGS__)
#define ENTRY_SIZE(m)            WHOLE(SIZE, m)
#define ENTRY_SHAPE(m)           WHOLE(SHAPE, m)
#define ENTRY_CUT(m)             WHOLE(CUT, m)
#define ENTRY_OFFSET(m)          DATA(OFFSET, m)
#define ENTRY_READS(m, n)        DATA(READS, m)
#define ENTRY_READS_PART(m, n)   DATA(READS_PART, m)
#define ENTRY_WRITES(m, n)       DATA(WRITES, m)
#define ENTRY_WRITES_PART(m, n)  DATA(WRITES_PART, m)
#define ENTRY_KEEPS(m, n)        DATA(KEEPS, m)
#define ENTRY_UPDATES(m, n)      DATA(UPDATES, m)
#define ENTRY_UPDATES_PART(m, n) DATA(UPDATES_PART, m)
#define ENTRY_REPLACES(m, n)     DATA(REPLACES, m)
#define ENTRY_NODES(m, n)        DATA(NODES, m)
#define ENTRY_INDEX(m, n)        DATA(INDEX, m)
#define ENTRY_WORKSPACE(m, n)    DATA(WORKSPACE, m)
#define ENTRY_PART(m, op)        {TR_ROLE_PART, #m, offsetof(arguments_type, m), 0, TR_OPERATION_##op},
#define ENTRY_OPERATIONS(n)      {TR_ROLE_OPERATIONS, NULL, 0, 0, TR_OPERATIONS},
#define DESCRIBE(op, class)                                                                                  \
    static const struct tr_operation *describe_##op(void)                                                    \
    {                                                                                                        \
        typedef struct tr_op_##op arguments_type;                                                            \
        static const struct tr_operand operand[] = {TR_ABOUT_##op(ENTRY)};                                   \
        enum { COUNT = sizeof operand / sizeof operand[0] };                                                 \
        static const struct tr_operation operation = {#op, class, COUNT, operand, measure_##op};             \
        _Static_assert(COUNT <= TR_OPERANDS_MOST, "lines");                                                  \
        return &operation;                                                                                   \
    }
#define DESCRIBE_CORE(op)   DESCRIBE(op, TR_CORE_OPERATION)
#define DESCRIBE_HOST(op)   DESCRIBE(op, TR_HOST_OPERATION)
#define DESCRIBE_FUSION(op) DESCRIBE(op, TR_FUSION)
TR_DEVICE_CORE_OPS(DESCRIBE_CORE)
TR_DEVICE_HOST_OPS(DESCRIBE_HOST)
TR_DEVICE_FUSIONS(DESCRIBE_FUSION)

const struct tr_operation *tr_operation_of(enum tr_operation_number number)
{
#define DESCRIPTION(op) [TR_OPERATION_##op] = describe_##op,
    static const struct tr_operation *(*const description[TR_OPERATIONS])(void) = {
        TR_DEVICE_OPS(DESCRIPTION)};
#undef DESCRIPTION
    return description[number]();
}

/* ---- reading it ---- */

static const struct tr_operand *find(const struct tr_operation *operation, enum tr_role role)
{
    for (int i = 0; i < operation->count; i++)
        if (operation->operand[i].role == role) return &operation->operand[i];
    return NULL;
}

static const void *member(const struct tr_operand *operand, const void *arguments)
{
    return (const char *)arguments + operand->offset;
}

const struct tr_cut *tr_operation_cut(const struct tr_operation *operation, const void *arguments)
{
    const struct tr_operand *cut = find(operation, TR_ROLE_CUT);
    return cut ? member(cut, arguments) : NULL;
}

int64_t tr_operation_rows(const struct tr_operation *operation, const void *arguments, bool host)
{
    const struct tr_operand *size = find(operation, TR_ROLE_SIZE), *at = find(operation, TR_ROLE_OFFSET);
    const struct tr_cut *cut = tr_operation_cut(operation, arguments);
    int64_t examples = 0;
    if (size)
        memcpy(&examples, member(size, arguments), sizeof examples);
    else if (cut && cut->count > 0)
        examples = cut->row[cut->count];
    const int32_t *offset = at ? tr_operand_pointer(at, arguments) : NULL;
    return offset && host ? (int64_t)offset[examples] - offset[0] : examples;
}

const void *tr_operand_pointer(const struct tr_operand *operand, const void *arguments)
{
    const void *pointer;
    switch (operand->role) {
    case TR_ROLE_SIZE:
    case TR_ROLE_SHAPE:
    case TR_ROLE_CUT:
    case TR_ROLE_PART:
    case TR_ROLE_OPERATIONS:
        return NULL;
    default:
        memcpy(&pointer, member(operand, arguments), sizeof pointer);
        return pointer;
    }
}

bool tr_operand_reads(const struct tr_operand *operand)
{
    return operand->role == TR_ROLE_READS || operand->role == TR_ROLE_READS_PART ||
           operand->role == TR_ROLE_REPLACES || operand->role == TR_ROLE_UPDATES ||
           operand->role == TR_ROLE_UPDATES_PART;
}

bool tr_operand_writes(const struct tr_operand *operand)
{
    return operand->role == TR_ROLE_WRITES || operand->role == TR_ROLE_WRITES_PART ||
           operand->role == TR_ROLE_UPDATES || operand->role == TR_ROLE_UPDATES_PART ||
           operand->role == TR_ROLE_NODES;
}

/* How many times the data of an operand pass through memory. */
static int64_t passes(const struct tr_operand *operand, const struct tr_cut *cut)
{
    switch (operand->role) {
    case TR_ROLE_UPDATES:
    case TR_ROLE_UPDATES_PART:
    case TR_ROLE_REPLACES:
    case TR_ROLE_WORKSPACE:
        return 2;
    case TR_ROLE_NODES:
        return cut->nodes;
    default:
        return 1;
    }
}

struct tr_operation_cost tr_operation_cost(const struct tr_operation *operation, const void *arguments,
                                           bool host)
{
    int64_t elements[TR_OPERANDS_MOST];
    const int64_t rows = tr_operation_rows(operation, arguments, host);
    struct tr_operation_cost cost = {operation->measure(arguments, rows, host, elements), 0};
    for (int i = 0; i < operation->count; i++)
        cost.bytes += elements[i] * (int64_t)operation->operand[i].bytes *
                      passes(&operation->operand[i], tr_operation_cut(operation, arguments));
    return cost;
}
