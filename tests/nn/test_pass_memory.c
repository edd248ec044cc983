/* The memory of a pass is what its tensors need that live at one time, and little more: their lifetimes are
 * stated here once more, for small networks of several widths.
 */
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Rows of one number for all examples take a line of the cache. */
enum { EXAMPLES = 16, ROW = EXAMPLES * 4, TENSORS = 16 };

/* A tensor with a row of this width for each example, which lives in [first, last]. Layer i of n runs at i,
   the loss at n, and layer i backward at 2n - i; the input is there from -1 on. */
enum width { ONE, INPUT, FIRST, SECOND };
struct tensor {
    enum width of;
    int first, last;
};

struct lifetimes {
    const char *layers; /* with the widths, in the order of the enumeration */
    struct tensor training[TENSORS], inference[TENSORS];
};

#define NONE                                                                                                 \
    {                                                                                                        \
        0, 1, 0                                                                                              \
    }

static const struct lifetimes networks_of[] = {
    {"[{dense: %1$d}, {dense: %2$d}]",
     {{INPUT, -1, 4}, /* to the gradient of the weights */
      {FIRST, 0, 3},
      {SECOND, 1, 2},
      {SECOND, 2, 3}, /* gradients of the outputs */
      {FIRST, 3, 4},
      {ONE, -1, 5}, /* labels */
      {ONE, 2, 5},  /* loss and correctness of each row */
      {ONE, 2, 5},
      NONE},
     {{INPUT, -1, 0}, {FIRST, 0, 1}, {SECOND, 1, 2}, {ONE, -1, 2}, {ONE, 2, 2}, {ONE, 2, 2}, NONE}},
    /* A tanh needs its output, and not its input. */
    {"[{dense: %1$d}, tanh, {dense: %2$d}]",
     {{INPUT, -1, 6},
      {FIRST, 0, 1},
      {FIRST, 1, 5},
      {SECOND, 2, 3},
      {SECOND, 3, 4},
      {FIRST, 4, 5},
      {FIRST, 5, 6},
      {ONE, -1, 7},
      {ONE, 3, 7},
      {ONE, 3, 7},
      NONE},
     {{INPUT, -1, 0},
      {FIRST, 0, 1},
      {FIRST, 1, 2},
      {SECOND, 2, 3},
      {ONE, -1, 3},
      {ONE, 3, 3},
      {ONE, 3, 3},
      NONE}},
    /* Two layers take an output; their parts of its gradient wait for each other. */
    {"[{dense: {units: %1$d, name: a}}, {dense: %1$d}, {add: a}, {dense: %2$d}]",
     {{INPUT, -1, 8},
      {FIRST, 0, 7},
      {FIRST, 1, 2},
      {FIRST, 2, 5},
      {SECOND, 3, 4},
      {SECOND, 4, 5},
      {FIRST, 5, 6},
      {FIRST, 6, 7},
      {FIRST, 6, 8},
      {FIRST, 6, 8},
      {FIRST, 7, 8},
      {ONE, -1, 9},
      {ONE, 4, 9},
      {ONE, 4, 9},
      NONE},
     {{INPUT, -1, 0},
      {FIRST, 0, 2},
      {FIRST, 1, 2},
      {FIRST, 2, 3},
      {SECOND, 3, 4},
      {ONE, -1, 4},
      {ONE, 4, 4},
      {ONE, 4, 4},
      NONE}},
    /* What lies within a fusion has no memory, and the gradient of what goes into it takes the place of that
       behind it. */
    {"[{dense: %1$d}, batch_norm, relu, {dense: %2$d}]",
     {{INPUT, -1, 8},
      {FIRST, 0, 7},
      {FIRST, 2, 7},
      {SECOND, 3, 4},
      {SECOND, 4, 5},
      {FIRST, 5, 8},
      {ONE, -1, 9},
      {ONE, 4, 9},
      {ONE, 4, 9},
      NONE},
     {{INPUT, -1, 0},
      {FIRST, 0, 1},
      {FIRST, 1, 2},
      {FIRST, 2, 3},
      {SECOND, 3, 4},
      {ONE, -1, 4},
      {ONE, 4, 4},
      {ONE, 4, 4},
      NONE}},
};

/* The most bytes that live at one time. */
static size_t peak_of(const struct tensor *tensors, const int width[4])
{
    size_t most = 0;
    for (int event = -1; event < TENSORS; event++) {
        size_t bytes = 0;
        for (const struct tensor *at = tensors; at->first <= at->last; at++)
            if (at->first <= event && event <= at->last) bytes += (size_t)(ROW * width[at->of]);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void tensors_live_as_long_as_they_are_needed(void **state)
{
    /* Tensors of 64 numbers beside ones of 1 to 3, whose places may leave gaps. */
    static const int widths[][4] = {
        {1, 64, 2, 3}, {1, 2, 64, 3}, {1, 2, 3, 64}, {1, 64, 64, 2}, {1, 64, 2, 64}};
    (void)state;
    for (size_t n = 0; n < sizeof networks_of / sizeof networks_of[0]; n++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (int training = 0; training < 2; training++) {
                const struct lifetimes *own = &networks_of[n];
                const int *width = widths[w];
                char layers[160], text[192], input[16];
                struct tr_model *model;
                size_t bytes;
                snprintf(layers, sizeof layers, own->layers, width[FIRST], width[SECOND]);
                snprintf(text, sizeof text, "layers: %s\n", layers);
                snprintf(input, sizeof input, "%d", width[INPUT]);
                must(network_build(text, input, 0, &model));
                const struct tr_pass_limits limits = {
                    .examples = EXAMPLES, .microbatches = 1, .training = training};
                must(tr_pass_memory(NULL, model, &limits, &bytes));
                const size_t peak = peak_of(training ? own->training : own->inference, width);
                if (bytes < peak || bytes > peak + 16 * ROW)
                    fail_msg("%s of %s, %s: %zu bytes, should be %zu", layers, input,
                             training ? "training" : "inference", bytes, peak);
                tr_model_destroy(&model);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tensors_live_as_long_as_they_are_needed)};
    return cmocka_run_group_tests_name("nn.pass_memory", tests, NULL, NULL);
}
