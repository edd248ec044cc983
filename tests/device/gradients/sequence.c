/* Gradients of embeddings, of recurrent layers, and of what becomes of the rows of a sequence. */
#include "device/differences.h"
#include "device/gradients/gradients.h"
#include "device/ref/ref.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define WIDTH      3
#define VOCABULARY 4

struct embedding {
    struct tr_op_embedding_forward forward;
    float *dy;
};

static double embedding_scalar(void *user)
{
    struct embedding *e = user;
    assert_int_equal(ref_embedding_forward(NULL, &e->forward), TR_OK);
    return differences_weigh(e->forward.rows * WIDTH, e->forward.y, e->dy);
}

void gradients_embedding(void)
{
    /* One token in two microbatches, one twice in the same, one that does not occur. */
    static const int32_t token[GRADIENTS_ROWS] = {3, 0, 3, 1, 1};
    int64_t rows = GRADIENTS_ROWS;
    float *table = differences_numbers(VOCABULARY * WIDTH, 1), *dy = differences_numbers(rows * WIDTH, 2);
    float *y = differences_zeros(rows * WIDTH), *dtable = differences_zeros(VOCABULARY * WIDTH);
    int32_t workspace[VOCABULARY + 1 + GRADIENTS_ROWS];
    struct embedding e = {
        {.rows = rows, .vocabulary = VOCABULARY, .width = WIDTH, .token = token, .table = table, .y = y}, dy};
    struct tr_op_embedding_backward backward = {.vocabulary = VOCABULARY,
                                                .width = WIDTH,
                                                .token = token,
                                                .dy = dy,
                                                .dtable = dtable,
                                                .workspace = workspace,
                                                .cut = gradients_cut};
    assert_int_equal(ref_embedding_backward(NULL, &backward), TR_OK);
    differences_check("embedding", embedding_scalar, &e, DIFFERENCES_LINEAR, table, dtable, 0,
                      VOCABULARY * WIDTH);
    differences_release(4, (float *[]){table, dy, y, dtable});
}

/* Five sequences, one of them empty and one longer than any truncation tried. */
#define HIDDEN   3
#define EXAMPLES GRADIENTS_ROWS
#define LONGEST  7
static const int32_t offset[EXAMPLES + 1] = {0, 2, 2, 3, 3 + LONGEST, 4 + LONGEST};
#define ROWS (4 + LONGEST)

struct lstm {
    float *input, *w, *b, *dy; /* what is given; input is the part of the gates that comes from x */
    float *gates, *c, *h;      /* what the forward operation makes */
    float *dgates, *dw;
};

static struct lstm lstm_make(void)
{
    return (struct lstm){.input = differences_numbers(ROWS * 4 * HIDDEN, 1),
                         .w = differences_numbers(HIDDEN * 4 * HIDDEN, 2),
                         .b = differences_numbers(4 * HIDDEN, 3),
                         .dy = differences_numbers(ROWS * HIDDEN, 4),
                         .gates = differences_zeros(ROWS * 4 * HIDDEN),
                         .c = differences_zeros(ROWS * HIDDEN),
                         .h = differences_zeros(ROWS * HIDDEN),
                         .dgates = differences_zeros(ROWS * 4 * HIDDEN),
                         .dw = differences_zeros(HIDDEN * 4 * HIDDEN)};
}

static void lstm_release(struct lstm *l)
{
    differences_release(9, (float *[]){l->input, l->w, l->b, l->dy, l->gates, l->c, l->h, l->dgates, l->dw});
}

static double lstm_scalar(void *user)
{
    struct lstm *l = user;
    struct tr_op_lstm_forward forward = {.examples = EXAMPLES,
                                         .hidden = HIDDEN,
                                         .offset = offset,
                                         .w = l->w,
                                         .b = l->b,
                                         .gates = l->gates,
                                         .c = l->c,
                                         .h = l->h};
    memcpy(l->gates, l->input, ROWS * 4 * HIDDEN * sizeof *l->gates);
    assert_int_equal(ref_lstm_forward(NULL, &forward), TR_OK);
    return differences_weigh(ROWS * HIDDEN, l->h, l->dy);
}

static void lstm_backward(struct lstm *l, int32_t truncate)
{
    struct tr_op_lstm_backward backward = {.examples = EXAMPLES,
                                           .hidden = HIDDEN,
                                           .truncate = truncate,
                                           .offset = offset,
                                           .w = l->w,
                                           .gates = l->gates,
                                           .c = l->c,
                                           .dy = l->dy,
                                           .dgates = l->dgates};
    assert_int_equal(ref_lstm_backward(NULL, &backward), TR_OK);
}

void gradients_lstm(void)
{
    struct lstm l = lstm_make();
    float db[4 * HIDDEN] = {0};
    lstm_scalar(&l);
    lstm_backward(&l, 0);
    struct tr_op_lstm_backward_weights weights = {.examples = EXAMPLES,
                                                  .hidden = HIDDEN,
                                                  .offset = offset,
                                                  .h = l.h,
                                                  .dgates = l.dgates,
                                                  .dw = l.dw,
                                                  .cut = gradients_cut};
    assert_int_equal(ref_lstm_backward_weights(NULL, &weights), TR_OK);
    for (int i = 0; i < ROWS * 4 * HIDDEN; i++) db[i % (4 * HIDDEN)] += l.dgates[i];
    differences_check("lstm, input", lstm_scalar, &l, DIFFERENCES_SMOOTH, l.input, l.dgates, 0,
                      ROWS * 4 * HIDDEN);
    differences_check("lstm, w", lstm_scalar, &l, DIFFERENCES_SMOOTH, l.w, l.dw, 0, HIDDEN * 4 * HIDDEN);
    differences_check("lstm, b", lstm_scalar, &l, DIFFERENCES_SMOOTH, l.b, db, 0, 4 * HIDDEN);
    lstm_release(&l);
}

/* Truncation cuts each sequence into pieces between which no gradient flows. So with dy only in the pieces
   that hold time steps [first, first + truncate), the gradient there is the true one, and before it is 0. */
static void check_piece(int32_t truncate, int32_t first)
{
    struct lstm l = lstm_make();
    int32_t begin = offset[3] + first; /* in the longest sequence */
    int32_t end = first + truncate < LONGEST ? begin + truncate : offset[4];
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < HIDDEN && (r < begin || r >= end); k++) l.dy[r * HIDDEN + k] = 0;
    lstm_scalar(&l);
    lstm_backward(&l, truncate);
    char what[60];
    snprintf(what, sizeof what, "lstm truncated at %d, from time %d", truncate, first);
    differences_check(what, lstm_scalar, &l, DIFFERENCES_SMOOTH, l.input, l.dgates, begin * 4 * HIDDEN,
                      end * 4 * HIDDEN);
    for (int i = 0; i < ROWS * 4 * HIDDEN; i++)
        if (i < begin * 4 * HIDDEN || i >= end * 4 * HIDDEN) assert_true(l.dgates[i] == 0);
    lstm_release(&l);
}

void gradients_lstm_truncated(void)
{
    for (int32_t truncate = 1; truncate <= LONGEST + 1; truncate++)
        for (int32_t first = 0; first < LONGEST; first += truncate) check_piece(truncate, first);
}

struct last {
    struct tr_op_sequence_last_forward forward;
    float *dy;
};

static double last_scalar(void *user)
{
    struct last *l = user;
    assert_int_equal(ref_sequence_last_forward(NULL, &l->forward), TR_OK);
    return differences_weigh(EXAMPLES * WIDTH, l->forward.y, l->dy);
}

void gradients_sequence_last(void)
{
    float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(EXAMPLES * WIDTH, 2);
    float *y = differences_zeros(EXAMPLES * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
    struct last l = {{.examples = EXAMPLES, .width = WIDTH, .offset = offset, .x = x, .y = y}, dy};
    struct tr_op_sequence_last_backward backward = {
        .examples = EXAMPLES, .width = WIDTH, .offset = offset, .dy = dy, .dx = dx};
    assert_int_equal(ref_sequence_last_backward(NULL, &backward), TR_OK);
    differences_check("last row", last_scalar, &l, DIFFERENCES_LINEAR, x, dx, 0, ROWS * WIDTH);
    differences_release(4, (float *[]){x, dy, y, dx});
}

struct pool_rows {
    struct tr_op_pool_rows_forward forward;
    float *dy;
};

static double pool_rows_scalar(void *user)
{
    struct pool_rows *p = user;
    assert_int_equal(ref_pool_rows_forward(NULL, &p->forward), TR_OK);
    return differences_weigh(EXAMPLES * WIDTH, p->forward.y, p->dy);
}

/* A small step: the greatest must stay the greatest. */
void gradients_pool_rows(void)
{
    for (int max = 0; max < 2; max++) {
        float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(EXAMPLES * WIDTH, 2);
        float *y = differences_zeros(EXAMPLES * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
        int32_t taken[EXAMPLES * WIDTH];
        enum tr_pool kind = max ? TR_POOL_MAX : TR_POOL_AVERAGE;
        for (int i = 0; i < ROWS * WIDTH && max; i++) x[i] = (float)(i * 7 % (ROWS * WIDTH)); /* far apart */
        struct pool_rows p = {{.examples = EXAMPLES,
                               .width = WIDTH,
                               .offset = offset,
                               .kind = kind,
                               .x = x,
                               .y = y,
                               .taken = taken},
                              dy};
        pool_rows_scalar(&p);
        struct tr_op_pool_rows_backward backward = {.examples = EXAMPLES,
                                                    .width = WIDTH,
                                                    .offset = offset,
                                                    .kind = kind,
                                                    .dy = dy,
                                                    .taken = taken,
                                                    .dx = dx};
        assert_int_equal(ref_pool_rows_backward(NULL, &backward), TR_OK);
        differences_check(max ? "greatest of rows" : "mean of rows", pool_rows_scalar, &p,
                          max ? DIFFERENCES_SMOOTH : DIFFERENCES_LINEAR, x, dx, 0, ROWS * WIDTH);
        differences_release(4, (float *[]){x, dy, y, dx});
    }
}
struct unfold {
    struct tr_op_sequence_unfold forward;
    float *dy;
};

static double unfold_scalar(void *user)
{
    struct unfold *u = user;
    assert_int_equal(ref_sequence_unfold(NULL, &u->forward), TR_OK);
    return differences_weigh(ROWS * u->forward.taps * WIDTH, u->forward.y, u->dy);
}

void gradients_sequence_fold(void)
{
    for (int64_t i = 0; i < 8; i++) {
        const int64_t taps = 1 + i % 4, dilation = 1 + i / 4;
        float *x = differences_numbers(ROWS * WIDTH, 1), *dy = differences_numbers(ROWS * taps * WIDTH, 2);
        float *y = differences_zeros(ROWS * taps * WIDTH), *dx = differences_zeros(ROWS * WIDTH);
        struct unfold u = {{.examples = EXAMPLES,
                            .width = WIDTH,
                            .taps = taps,
                            .before = taps / 2,
                            .dilation = dilation,
                            .offset = offset,
                            .x = x,
                            .y = y},
                           dy};
        const struct tr_op_sequence_fold backward = {.examples = EXAMPLES,
                                                     .width = WIDTH,
                                                     .taps = taps,
                                                     .before = taps / 2,
                                                     .dilation = dilation,
                                                     .offset = offset,
                                                     .dy = dy,
                                                     .dx = dx};
        assert_int_equal(ref_sequence_fold(NULL, &backward), TR_OK);
        differences_check("fold", unfold_scalar, &u, DIFFERENCES_LINEAR, x, dx, 0, ROWS * WIDTH);
        differences_release(4, (float *[]){x, dy, y, dx});
    }
}

struct gru {
    struct tr_op_gru_forward forward;
    const float *input; /* what the input adds to the gates */
    float *dy;
};

static double gru_scalar(void *user)
{
    struct gru *g = user;
    memcpy(g->forward.gates, g->input, ROWS * 3 * HIDDEN * sizeof *g->input);
    assert_int_equal(ref_gru_forward(NULL, &g->forward), TR_OK);
    return differences_weigh(ROWS * HIDDEN, g->forward.h, g->dy);
}

void gradients_gru(void)
{
    float *input = differences_numbers(ROWS * 3 * HIDDEN, 1),
          *w = differences_numbers(HIDDEN * 3 * HIDDEN, 2);
    float *b = differences_numbers(3 * HIDDEN, 3), *b_hidden = differences_numbers(3 * HIDDEN, 4);
    float *dy = differences_numbers(ROWS * HIDDEN, 5), *gates = differences_zeros(ROWS * 3 * HIDDEN);
    float *inner = differences_zeros(ROWS * HIDDEN), *h = differences_zeros(ROWS * HIDDEN);
    float *dgates = differences_zeros(ROWS * 3 * HIDDEN), *dhidden = differences_zeros(ROWS * 3 * HIDDEN);
    float *dw = differences_zeros(HIDDEN * 3 * HIDDEN), db[3 * HIDDEN] = {0}, db_hidden[3 * HIDDEN] = {0};
    struct gru g = {{.examples = EXAMPLES,
                     .hidden = HIDDEN,
                     .offset = offset,
                     .w = w,
                     .b = b,
                     .b_hidden = b_hidden,
                     .gates = gates,
                     .inner = inner,
                     .h = h},
                    input,
                    dy};
    gru_scalar(&g);
    const struct tr_op_gru_backward backward = {.examples = EXAMPLES,
                                                .hidden = HIDDEN,
                                                .offset = offset,
                                                .w = w,
                                                .gates = gates,
                                                .inner = inner,
                                                .h = h,
                                                .dy = dy,
                                                .dgates = dgates,
                                                .dhidden = dhidden};
    assert_int_equal(ref_gru_backward(NULL, &backward), TR_OK);
    const struct tr_op_gru_backward_weights weights = {.examples = EXAMPLES,
                                                       .hidden = HIDDEN,
                                                       .offset = offset,
                                                       .h = h,
                                                       .dhidden = dhidden,
                                                       .dw = dw,
                                                       .cut = gradients_cut};
    assert_int_equal(ref_gru_backward_weights(NULL, &weights), TR_OK);
    for (int i = 0; i < ROWS * 3 * HIDDEN; i++) {
        db[i % (3 * HIDDEN)] += dgates[i];
        db_hidden[i % (3 * HIDDEN)] += dhidden[i];
    }
    differences_check("gru, input", gru_scalar, &g, DIFFERENCES_SMOOTH, input, dgates, 0, ROWS * 3 * HIDDEN);
    differences_check("gru, w", gru_scalar, &g, DIFFERENCES_SMOOTH, w, dw, 0, HIDDEN * 3 * HIDDEN);
    differences_check("gru, b", gru_scalar, &g, DIFFERENCES_SMOOTH, b, db, 0, 3 * HIDDEN);
    differences_check("gru, hidden b", gru_scalar, &g, DIFFERENCES_SMOOTH, b_hidden, db_hidden, 0,
                      3 * HIDDEN);
    differences_release(11, (float *[]){input, w, b, b_hidden, dy, gates, inner, h, dgates, dhidden, dw});
}
