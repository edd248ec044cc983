/* What people read about networks: every line, held against the model files, and the sums against what the
 * summary counts; the objects of those that have something to count again, and of checkpoints. */
#include "support/training.h"

#include "base/text/text.h"
#include "train/describe/inspect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char *inspect(const char *path, const char *const *set, int count)
{
    char *text;
    const struct tr_inspect_settings settings = inspect_asked(path, set, count);
    must_train(tr_inspect_model(&settings, &text));
    return text;
}

static void expect_lines(const char *text, const char *lines)
{
    if (!strstr(text, lines)) fail_msg("\"%s\" lacks \"%s\"", text, lines);
}

static char *digest_of(const char *path)
{
    static char digest[80];
    struct tr_summary summary;
    const struct tr_inspect_settings settings = inspect_asked(path, NULL, 0);
    must_train(tr_summary_make(&settings, &summary));
    snprintf(digest, sizeof digest, "%s", summary.job->digest);
    assert_int_equal(strlen(digest), 64);
    tr_summary_release(&summary);
    return digest;
}

static void a_network_of_numbers(void **state)
{
    (void)state;
    char *text = inspect("plain.yaml", NULL, 0), head[512], memory[512], part[6][TR_TEXT_NUMBER_SIZE];
    struct tr_summary summary;
    const struct tr_inspect_settings settings = inspect_asked("plain.yaml", NULL, 0);
    snprintf(head, sizeof head,
             "job         plain\n"
             "file        plain.yaml\n"
             "input       2\n"
             "loss        softmax_cross_entropy\n"
             "optimizer   adam, rate 0.01\n"
             "settings    %s\n\n",
             digest_of("plain.yaml"));
    assert_memory_equal(text, head, strlen(head));
    expect_lines(text, "\n\n"
                       "layer   kind   output  parameters    memory  operations\n"
                       "one     dense  4               12  16 bytes          16\n"
                       "two     dense  4               20  16 bytes          32\n"
                       "add1    add    4                -  16 bytes           4  from two, one\n"
                       "dense3  dense  3               15  12 bytes          24\n\n"
                       "parameters  47 in ");
    /* Backwards: 16 for weights alone, 32 and 24 for weights and input, 4. */
    expect_lines(text, "\nan example  76 operations, ");
    expect_lines(text,
                 " without training\na step      416 operations for 2 examples in 1 microbatch\nmemory  ");
    must_train(tr_summary_make(&settings, &summary));
    snprintf(
        memory, sizeof memory, "\nmemory      %s: parameters %s, gradients %s, optimizer %s, layers %s\n",
        tr_text_from_bytes(summary.parameter_bytes + summary.gradient_bytes + summary.state_bytes +
                               summary.pass_bytes,
                           part[0]),
        tr_text_from_bytes(summary.parameter_bytes, part[1]),
        tr_text_from_bytes(summary.gradient_bytes, part[2]), tr_text_from_bytes(summary.state_bytes, part[3]),
        tr_text_from_bytes(summary.pass_bytes, part[4]));
    expect_lines(text, memory);
    assert_true(summary.state_bytes == 2 * summary.parameter_bytes);
    assert_int_equal(summary.operations, 76);
    assert_int_equal(summary.base_bytes + summary.teacher_bytes + summary.again_operations, 0);
    tr_summary_release(&summary);
    tr_text_free(text);
    static const char *const larger[] = {"layers.one.units=600", "train.microbatches=2",
                                         "layers.two.units=600", "layers.two.frozen=true"};
    text = inspect("plain.yaml", larger, 4);
    expect_lines(text, "two     dense  600        360,600   2.3 KiB       720 k  frozen\n");
    expect_lines(text, "\nparameters  364,203 in 1.4 MiB: 3,603 are trained, 360,600 frozen\n");
    expect_lines(text, " examples in 2 microbatches\n");
    tr_text_free(text);
}

/* What takes no gradient backwards costs nothing there; what is computed again costs once more. */
static void operations_of_a_step(void **state)
{
    (void)state;
    static const char *const first[] = {
        "layers=[{relu: {name: one}}, {dense: {units: 4, name: two}}, {dense: 3}]"};
    static const char *const again[] = {
        "layers=[{dense: {units: 4, name: one}}, {relu: {name: two}}, {dense: 3}]", "train.recompute=[two]"};
    char *text = inspect("plain.yaml", first, 1);
    expect_lines(text, "one     relu   2                -   8 bytes           2\n");
    /* 2, then 16 and its weights, then 24 and both. */
    expect_lines(text, "\nan example  42 operations, ");
    expect_lines(text, "\na step      212 operations for 2 examples in 1 microbatch\n");
    assert_null(strstr(text, "recompute"));
    tr_text_free(text);
    text = inspect("plain.yaml", again, 2);
    expect_lines(text, "two     relu   4                -  16 bytes           4  computed again\n");
    expect_lines(text, "\nrecompute   8 operations of a step are computed again, to save memory\n");
    /* 16, 4 and 24 forwards; 16, 4 and 48 backwards; 4 again; of two examples. */
    expect_lines(text, "\na step      232 operations for 2 examples");
    tr_text_free(text);
    json_t *root = inspect_json("plain.yaml", again, 2);
    expect_number(root, "recomputed_operations", 8);
    expect_number(root, "step_operations", 232);
    expect_flag(json_array_get(json_object_get(root, "layers"), 1), "recomputed", true);
    json_decref(root);
}

static void networks_of_texts(void **state)
{
    (void)state;
    char *text = inspect("words.yaml", NULL, 0);
    expect_lines(text, "file        words.yaml\ninput       tokens of 4 kinds\nloss  ");
    expect_lines(text, "optimizer   momentum, rate 0.25\n");
    expect_lines(text, "layer       kind       output      parameters     memory  operations\n"
                       "embedding1  embedding  tokens x 7          28   28 bytes           -  a token\n");
    expect_lines(text, "dense1      dense      2                   12    8 bytes          20\n");
    /* The longest text has five tokens: 5 x 480 and 20; backwards weights and input of each. */
    expect_lines(text, "\nan example  2.42 k operations, ");
    expect_lines(text,
                 " without training, with 5 tokens\na step      14.5 k operations for 2 examples in 2 ");
    tr_text_free(text);
    text = inspect("two.yaml", NULL, 0);
    expect_lines(text, "\ninput       short tokens of 4 kinds\n            long tokens of 4 kinds\nloss  ");
    expect_lines(text, "a token, from short\n");
    expect_lines(text, "a token, from embedding2, memory\n");
    expect_lines(text, ", with 3 tokens\n");
    tr_text_free(text);
    text = inspect("parts.yaml", NULL, 0);
    expect_lines(text, "\ninput       left 2\n            right 3\nloss  ");
    expect_lines(text, "from dense2, dense1\n");
    tr_text_free(text);
}

/* Without its data a checkpoint says less; damaged newer ones are named. */
static void checkpoints(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    job_begin(&job, "words.yaml");
    job.settings.out = "run";
    job.settings.steps = 2;
    job_set(&job, "train.checkpoint_every=1");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    char *text = inspect("run", NULL, 0), head[512];
    snprintf(
        head, sizeof head,
        "job         words\ncheckpoint  run/checkpoint-00000002\nsteps done  2\nhash        %s\nwritten by "
        " trireme " TRIREME_VERSION "\ninput  ",
        outcome.hash);
    assert_memory_equal(text, head, strlen(head));
    expect_lines(text, ", with 5 tokens\n");
    tr_text_free(text);
    assert_int_equal(rename("words.tsv", "words.gone"), 0);
    text = inspect("run", NULL, 0);
    expect_lines(text,
                 "\na step      unknown: the data, which say how long sequences get, could not be read\n");
    assert_null(strstr(text, "an example"));
    tr_text_free(text);
    struct tr_inspect_settings settings = inspect_asked("run", NULL, 0);
    settings.json = 1;
    must_train(tr_inspect_model(&settings, &text));
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "checkpoint")), "run/checkpoint-00000002");
    assert_int_equal(json_integer_value(json_object_get(root, "step")), 2);
    assert_string_equal(json_string_value(json_object_get(root, "hash")), outcome.hash);
    assert_string_equal(json_string_value(json_object_get(root, "program")), "trireme " TRIREME_VERSION);
    assert_int_equal(json_integer_value(json_object_get(root, "vocabulary")), 4);
    assert_null(json_object_get(root, "file"));
    assert_null(json_object_get(root, "input"));
    assert_null(json_object_get(root, "tokens"));
    assert_non_null(json_object_get(root, "optimizer_memory"));
    json_decref(root);
    tr_text_free(text);
    assert_int_equal(rename("words.gone", "words.tsv"), 0);
    assert_int_equal(unlink("run/checkpoint-00000002/model.yaml"), 0);
    text = inspect("run", NULL, 0);
    expect_lines(text, "checkpoint  run/checkpoint-00000001\nskipped     ");
    expect_lines(text, "run/checkpoint-00000002/model.yaml");
    expect_lines(text, "\nsteps done  1\n");
    tr_text_free(text);
}

/* Without a length the text ends with its NUL; with one, there. */
static void texts_of_models_have_a_length(void **state)
{
    (void)state;
    static const char model[] = "name: plain\ninput: {shape: [2]}\nlayers: [{dense: 3}]\n"
                                "optimizer: {rule: sgd, rate: 0.5}\ntrain: {batch: 2, steps: 1}\n";
    char longer[sizeof model + 16], *text;
    struct tr_inspect_settings settings = TR_INSPECT_SETTINGS_INIT;
    snprintf(longer, sizeof longer, "%s}}} no YAML", model);
    for (int json = 0; json < 2; json++) {
        settings.json = json;
        settings.model_text = model;
        settings.model_length = 0;
        must_train(tr_inspect_model(&settings, &text));
        assert_non_null(strstr(text, "plain"));
        tr_text_free(text);
        settings.model_text = longer;
        settings.model_length = strlen(model);
        must_train(tr_inspect_model(&settings, &text));
        tr_text_free(text);
        settings.model_length = 0;
        assert_int_not_equal(tr_inspect_model(&settings, &text), TR_OK);
        settings.model_text = NULL;
        settings.path = "missing.yaml";
        assert_int_equal(tr_inspect_model(&settings, &text), TR_ENOTFOUND);
        settings.path = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network_of_numbers),
        cmocka_unit_test(operations_of_a_step),
        cmocka_unit_test(texts_of_models_have_a_length),
        cmocka_unit_test(networks_of_texts),
        cmocka_unit_test(checkpoints),
    };
    return cmocka_run_group_tests(tests, inspect_make, inspect_clean);
}
