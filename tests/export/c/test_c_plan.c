/* What a file of C says of its memory: as many floats as the values that are needed at the same time have,
 * counted by hand; and networks whose values or parameters it cannot count. */
#include "export/c/network.h"

#include "base/fail.h"
#include "base/files/file.h"
#include "scratch.h"
#include "support/networks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

/* The text of the file of a network whose parameters are zeros. */
static void write_network(const struct network *network, struct tr_file_content *out)
{
    static const float parameters[4096];
    const struct tr_c_settings settings = {"net", "net.c", "a test", NULL};
    char path[SCRATCH_PATH];
    struct tr_model *model;
    struct tr_trace *trace;
    struct tr_file_writer writer;
    must(network_build(network->text, network->input, network->vocabulary, &model));
    assert_true(model->arena_floats <= (int64_t)(sizeof parameters / sizeof parameters[0]));
    must(tr_trace_create(model, parameters, NULL, &trace));
    must(tr_file_begin(NULL, scratch_join(path, scratch_place, "net.c"), TR_FILE_REPLACE, 0, &writer));
    must(tr_c_write(trace, &settings, &writer));
    must(tr_file_finish(&writer, false));
    tr_trace_destroy(&trace);
    tr_model_destroy(&model);
    must(tr_file_read(path, 1 << 20, out));
}

/* Fails unless the file defines NET_`name` so. */
static void expect_defined(const struct tr_file_content *content, const char *name, const char *value,
                           const char *network)
{
    char definition[64], found[64];
    snprintf(definition, sizeof definition, "#define NET_%s ", name);
    const char *at = strstr(content->data, definition);
    if (!at) fail_msg("%s: no %s", network, name);
    at += strlen(definition);
    size_t length = strcspn(at, "\n");
    const char *comment = strstr(at, " /*");
    if (comment && (size_t)(comment - at) < length) length = (size_t)(comment - at);
    snprintf(found, sizeof found, "%.*s", (int)length, at);
    if (strcmp(found, value) != 0) fail_msg("%s: %s is %s, not %s", network, name, found, value);
}

static void workspaces_hold_what_is_needed_at_once(void **state)
{
    static const struct {
        struct network network;
        const char *floats;
    } cases[] = {
        {{"nothing", "4", 0, "layers: [{dense: 3}]"}, "1"},
        /* Both parts, and what they become. */
        {{"columns", "4", 0,
          "layers: [{dense: {units: 3, name: a}}, {dense: {units: 2, from: input, name: b}}, "
          "{concat: {from: [a, b]}}, {dense: 2}]"},
         "10"},
        {{"channels", "2x2x1", 0,
          "layers: [{conv: {filters: 3, kernel: 1, name: a}}, {conv: {filters: 2, kernel: 1, from: input, "
          "name: b}}, {concat: {from: [a, b]}}, {dense: 2}]"},
         "40"},
        /* A token's vector 3, gates 16, and from token to token the state and the output, 4 each. */
        {{"lstm", "tokens", 7, "layers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]"}, "27"},
        /* Gates 12, and as many sums of the recurrence. */
        {{"gru", "tokens", 7, "layers: [{embedding: 3}, {gru: 4}, last, {dense: 2}]"}, "31"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content content;
        write_network(&cases[i].network, &content);
        expect_defined(&content, "WORKSPACE", cases[i].floats, cases[i].network.name);
        tr_file_content_free(&content);
    }
}

/* As many tokens as the shortest table has places, and at least 512; for layers that need no memory of
 * earlier tokens any number. */
static void texts_may_be_as_long_as_the_positions(void **state)
{
    static const struct {
        struct network network;
        const char *tokens;
    } cases[] = {
        {{"none", "tokens", 7, "layers: [{embedding: 2}, {attention: {heads: 1, causal: true}}, last]"},
         "512"},
        {{"few", "tokens", 7,
          "layers: [{embedding: 2}, {position: 3}, {attention: {heads: 1, causal: true}}, last]"},
         "512"},
        {{"513", "tokens", 7,
          "layers: [{embedding: 2}, {position: 513}, {attention: {heads: 1, causal: true}}, last]"},
         "513"},
        {{"two tables", "tokens", 7,
          "layers: [{embedding: 2}, {position: 601}, {position: 600}, {position: 602}, {attention: {heads: "
          "1, "
          "causal: true}}, last]"},
         "600"},
        {{"any", "tokens", 7, "layers: [{embedding: 2}, {position: 513}, last]"}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content content;
        write_network(&cases[i].network, &content);
        if (cases[i].tokens)
            expect_defined(&content, "TOKENS", cases[i].tokens, cases[i].network.name);
        else
            assert_null(strstr(content.data, "NET_TOKENS"));
        tr_file_content_free(&content);
    }
}

/* What goes in and what comes out, for who calls the function. */
static void comments_say_what_goes_in_and_out(void **state)
{
    static const struct {
        struct network network;
        const char *text[4];
    } cases[] = {
        {{"classes", "4", 0, "layers: [{dense: 3}]"},
         {"#define NET_INPUTS    4\n#define NET_OUTPUTS   3\n",
          "   `input` [NET_INPUTS]: numbers as in the data.\n   `output` [NET_OUTPUTS]: a score for each "
          "class; "
          "the greatest is the answer.\n",
          "/* Turns scores [NET_OUTPUTS] into probabilities [NET_OUTPUTS]: the probabilities of 3 classes.\n "
          "  "
          "They may be the same memory. */\n"}},
        {{"questions", "2x3x1", 0, "layers: [{dense: 3}]\nloss: binary_cross_entropy"},
         {"an image, height 2, width 3, channels 1 (which lie together), pixels from 0 to 255.\n",
          "[NET_OUTPUTS]: a score for each question; above 0 the answer is yes.\n",
          ": the probability of yes for each of 3 questions.\n"}},
        {{"values", "4", 0, "layers: [{dense: 3}]\nloss: mean_squared_error"}, {"[NET_OUTPUTS]: values.\n"}},
        {{"both", "4", 0,
          "layers: [{dense: 5}]\nloss: [{kind: binary_cross_entropy, outputs: 3}, {kind: huber, outputs: "
          "2}]"},
         {"[NET_OUTPUTS]: the outputs of all losses, in their order.\n",
          ": the probability of yes for each of 3 questions,\n   then 2 values as they are.\n",
          "    net_sigmoid_of(3, scores + 0, probabilities + 0);\n    net_copy(2, scores + 3, probabilities "
          "+ "
          "3);\n}\n"}},
        {{"texts", "tokens", 7, "layers: [{embedding: 2}, last]"},
         {"   `tokens` [length]: numbers of words, 0 to 6; 0 is the unknown word. `length` may be 0.\n",
          "   `workspace` [NET_WORKSPACE]: overwritten. The three do not overlap.\n   Returns `length`. */\n",
          "int32_t net_predict(const int32_t *tokens, int32_t length, float *output, float *workspace);\n"}},
        {{"tokens", "tokens", 7,
          "layers: [{embedding: {width: 4, name: words}}, {attention: {heads: 1, causal: true}}, "
          "{unembedding: "
          "words}]"},
         {"   `output` [length * NET_OUTPUTS]: for each token, a score for each class;",
          "\n   Returns how many tokens were read: `length`, or NET_TOKENS of a longer text. */\n",
          "/* Predicts for token number `t` of a text (from 0, below NET_TOKENS), whose tokens before",
          "#if NET_TOKENS < 1 || NET_WORKSPACE > 0x7fffffff\n#error \"NET_TOKENS is out of "
          "range\"\n#endif\n"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content content;
        write_network(&cases[i].network, &content);
        for (int k = 0; k < 4 && cases[i].text[k]; k++)
            if (!strstr(content.data, cases[i].text[k]))
                fail_msg("%s: no\n%s\nin\n%.6000s", cases[i].network.name, cases[i].text[k], content.data);
        if (strcmp(cases[i].network.name, "values") == 0)
            assert_null(strstr(content.data, "net_probabilities"));
        tr_file_content_free(&content);
    }
}

/* ---- too large ---- */

static tr_status plan(const char *layers, const char *input, int64_t vocabulary)
{
    static const struct tr_c_settings settings = {"net", "net.c", "a test", NULL};
    static const float parameters[1]; /* only their places count */
    struct tr_model *model;
    struct tr_trace *trace;
    struct tr_c_network network;
    must(network_build(layers, input, vocabulary, &model));
    must(tr_trace_create(model, parameters, NULL, &trace));
    const tr_status status = tr_c_network_plan(trace, &settings, &network);
    tr_c_network_release(&network);
    tr_trace_destroy(&trace);
    tr_model_destroy(&model);
    return status;
}

static void indices_have_32_bits(void **state)
{
    (void)state;
    must(plan("layers: [{embedding: 1}, last, {dense: 2}]", "tokens", INT32_MAX));
    assert_int_equal(plan("layers: [{embedding: {width: 2, name: words}}, last]", "tokens", 1 << 30),
                     TR_EUNSUPPORTED);
    assert_string_equal(
        tr_error_message(),
        "parameter \"words.weights\" has 2147483648 values; files of C take at most 2147483647");
    assert_int_equal(
        plan("layers: [{embedding: 64}, {position: 16777216}, {attention: {heads: 2, name: sees}}, last]",
             "tokens", 7),
        TR_EUNSUPPORTED);
    assert_string_equal(
        tr_error_message(),
        "the output of layer \"sees\" has 3221225472 values; files of C take at most 2147483647");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workspaces_hold_what_is_needed_at_once),
        cmocka_unit_test(texts_may_be_as_long_as_the_positions),
        cmocka_unit_test(comments_say_what_goes_in_and_out),
        cmocka_unit_test(indices_have_32_bits),
    };
    return cmocka_run_group_tests_name("export.c_plan", tests, scratch_place_make, scratch_place_remove);
}
