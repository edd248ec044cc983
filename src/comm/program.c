/* Programs for a stack machine: push an input, replace the two on top by their sum, store the top as the
 * next output. They run in blocks that stay in the first level of cache, so each input is read once from
 * memory, and each output written once.
 */
#include "comm/program.h"

#include "base/alloc.h"
#include "base/numbers/tree.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#define BLOCK 512 /* floats */
/* On the way from the root to a leaf, each right turn leaves a sum waiting. */
#define DEPTH (TR_TREE_DEPTH + 1)

enum { ADD = -1, STORE = -2 }; /* other codes push the input with that number */

struct tr_program {
    int inputs, outputs, length;
    int32_t *code;          /* [length] */
    struct tr_node *output; /* [outputs] */
    int32_t *direct;        /* [outputs] */
};

/* State of the translation: inputs are used in ascending order. */
struct maker {
    tr_program *program;
    const struct tr_node *input;
    int used;
};

static int64_t middle_of(struct tr_node node)
{
    int64_t left = 1;
    while (left * 2 < node.last - node.first) left *= 2;
    return node.first + left;
}

static void emit(struct maker *maker, int32_t code)
{
    maker->program->code[maker->program->length++] = code;
}

/* Whether the next inputs cover all leaves of a node. */
static bool is_covered(const struct maker *maker, struct tr_node node)
{
    int64_t reached = node.first;
    for (int i = maker->used; i < maker->program->inputs && reached < node.last; i++) {
        if (maker->input[i].first != reached) return false;
        reached = maker->input[i].last;
    }
    return reached == node.last;
}

/* A node that is covered by inputs. */
static void make_sum(struct maker *maker, struct tr_node node)
{
    struct tr_node next = maker->input[maker->used];
    if (next.first == node.first && next.last == node.last) {
        emit(maker, maker->used++);
        return;
    }
    int64_t middle = middle_of(node);
    assert(node.last - node.first > 1); /* otherwise an input would not be a node of the tree */
    make_sum(maker, (struct tr_node){node.first, middle});
    make_sum(maker, (struct tr_node){middle, node.last});
    emit(maker, ADD);
}

/* The largest covered nodes below a node. */
static void make_outputs(struct maker *maker, struct tr_node node)
{
    tr_program *program = maker->program;
    if (maker->used == program->inputs || maker->input[maker->used].first >= node.last) return;
    if (is_covered(maker, node)) {
        int start = program->length;
        make_sum(maker, node);
        program->direct[program->outputs] = program->length - start == 1 ? program->code[start] : -1;
        program->output[program->outputs++] = node;
        emit(maker, STORE);
        return;
    }
    int64_t middle = middle_of(node);
    assert(node.last - node.first > 1);
    make_outputs(maker, (struct tr_node){node.first, middle});
    make_outputs(maker, (struct tr_node){middle, node.last});
}

tr_status tr_program_create(int64_t leaves, const struct tr_node *input, int inputs, tr_program **out)
{
    assert(leaves > 0 && leaves <= INT32_MAX);
    tr_program *program = tr_alloc_zero(1, sizeof *program);
    *out = program;
    if (!program) return TR_ENOMEM;
    size_t most = (size_t)inputs;
    program->inputs = inputs;
    program->code = tr_alloc(3 * most, sizeof *program->code); /* per input at most a push, a sum, a store */
    program->output = tr_alloc(most, sizeof *program->output);
    program->direct = tr_alloc(most, sizeof *program->direct);
    if (!program->code || !program->output || !program->direct) {
        tr_program_destroy(out);
        return TR_ENOMEM;
    }
    struct maker maker = {program, input, 0};
    make_outputs(&maker, (struct tr_node){0, leaves});
    assert(maker.used == inputs);
    return TR_OK;
}

void tr_program_destroy(tr_program **handle)
{
    tr_program *program = *handle;
    if (!program) return;
    tr_free(program->code);
    tr_free(program->output);
    tr_free(program->direct);
    tr_free(program);
    *handle = NULL;
}

int tr_program_outputs(const tr_program *program)
{
    return program->outputs;
}

struct tr_node tr_program_output(const tr_program *program, int output)
{
    assert(output >= 0 && output < program->outputs);
    return program->output[output];
}

int tr_program_direct(const tr_program *program, int output)
{
    assert(output >= 0 && output < program->outputs);
    return program->direct[output];
}

/* The loop below has independent iterations. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* out may be left or right. */
static void add(float *out, const float *left, const float *right, int64_t count)
{
    INDEPENDENT
    for (int64_t i = 0; i < count; i++) out[i] = left[i] + right[i];
}

static void run_block(const tr_program *program, const float *const *input, int64_t begin, int64_t count,
                      float *const *output)
{
    _Alignas(TR_CACHE_LINE) float sum[DEPTH][BLOCK];
    const float *stack[DEPTH];
    int top = -1, done = 0;
    for (int i = 0; i < program->length; i++) {
        int32_t code = program->code[i];
        float *out = output[done] ? output[done] + begin : NULL;
        if (code >= 0) {
            assert(top + 1 < DEPTH);
            stack[++top] = input[code] + begin;
        } else if (code == ADD) {
            top--;
            float *to = out && program->code[i + 1] == STORE ? out : sum[top];
            add(to, stack[top], stack[top + 1], count);
            stack[top] = to;
        } else {
            if (out && out != stack[top]) memcpy(out, stack[top], (size_t)count * sizeof *out);
            top--;
            done++;
        }
    }
}

static _Thread_local struct {
    tr_program_listener listener;
    void *user;
} rehearsal;

void tr_program_rehearse(tr_program_listener listener, void *user)
{
    rehearsal.listener = listener;
    rehearsal.user = user;
}

void tr_program_moved(int64_t floats, int64_t others)
{
    if (!rehearsal.listener) return;
    if (floats > 0) rehearsal.listener(rehearsal.user, TR_MOTION_ALL, floats);
    if (others > 0) rehearsal.listener(rehearsal.user, TR_MOTION_OTHER, others);
}

/* Notifies the listener; returns whether nothing needs to be computed. */
static bool is_rehearsed(const tr_program *program, int64_t count, float *const *output)
{
    int64_t streams = program->inputs;
    if (!rehearsal.listener) return false;
    for (int i = 0; i < program->outputs; i++) streams += output[i] != NULL;
    rehearsal.listener(rehearsal.user, TR_MOTION_ALL, streams * count);
    return count >= TR_PROGRAM_REHEARSED;
}

void tr_program_run(const tr_program *program, const float *const *input, int64_t count, float *const *output)
{
    if (is_rehearsed(program, count, output)) return;
    for (int64_t begin = 0; begin < count; begin += BLOCK)
        run_block(program, input, begin, count - begin < BLOCK ? count - begin : BLOCK, output);
}
