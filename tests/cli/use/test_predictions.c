/* The forms of predictions, on numbers of the test's own: several losses, labels that there are not, NaN,
 * pixels, words beyond those that are read, texts; and which form a file's name asks for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "cli/use/predictions.h"

#include <math.h>
#include <stdio.h>

static const char *const animals[] = {"cat", "big, \"old\" dog", "owl"}, *const sizes[] = {"height", "a,b"};

static struct tr_predict_info of_classes(void)
{
    return (struct tr_predict_info){
        .checkpoint = "runs/x", .outputs = 3, .classification = true, .class_names = animals, .heads = 1};
}

static struct tr_predict_info of_values(int32_t outputs, const char *const *names)
{
    return (struct tr_predict_info){
        .checkpoint = "runs/x", .outputs = outputs, .heads = 1, .targets = outputs, .target_names = names};
}

/* What a form makes of some predictions, from its first byte on; free with tr_free(). */
static char *text_of(const struct cli_prediction_format *format, struct cli_predictions *predictions,
                     const struct cli_prediction *prediction, int count)
{
    char *text;
    predictions->format = format;
    if (format->begin) assert_int_equal(format->begin(predictions), TR_OK);
    for (int i = 0; i < count; i++) assert_int_equal(format->add(predictions, &prediction[i]), TR_OK);
    assert_int_equal(tr_text_finish(&predictions->text, &text), TR_OK);
    return text;
}

static void expect(const struct cli_prediction_format *format, struct cli_predictions *predictions,
                   const struct cli_prediction *prediction, int count, const char *expected)
{
    char *text = text_of(format, predictions, prediction, count);
    assert_string_equal(text, expected);
    tr_free(text);
}

static void classes_in_every_form(void **state)
{
    (void)state;
    static const float output[3][3] = {{0.25F, 0.5F, 0.25F}, {NAN, 0.125F, 0.875F}, {NAN, NAN, NAN}};
    static const int32_t label[3] = {1, 0, TR_NO_LABEL};
    const struct tr_predict_info info = of_classes();
    struct cli_predictions predictions = {
        .info = &info, .top = 2, .labels = true, .head = {{.outputs = 3, .classification = true}}};
    struct cli_prediction some[3];
    for (int i = 0; i < 3; i++)
        some[i] = (struct cli_prediction){
            .example = 7 + i, .input = "test[7]", .rows = 1, .output = output[i], .labels = &label[i]};
    expect(&cli_predictions_csv, &predictions, some, 2,
           "example,class,probability,label,p_cat,\"p_big, \"\"old\"\" dog\",p_owl\n"
           "7,\"big, \"\"old\"\" dog\",0.5,\"big, \"\"old\"\" dog\",0.25,0.5,0.25\n"
           "8,owl,0.875,cat,nan,0.125,0.875\n");
    expect(&cli_predictions_jsonl, &predictions, some, 1,
           "{\"example\":7,\"input\":\"test[7]\",\"class\":1,\"name\":\"big, \\\"old\\\" "
           "dog\",\"probability\":0.5,\"label\":1,\"label_name\":\"big, \\\"old\\\" "
           "dog\",\"output\":[0.25,0.5,0.25]}\n");
    expect(&cli_predictions_text, &predictions, some, 3,
           "test[7]: big, \"old\" dog 50.00 %, cat 25.00 %\n"
           "test[7]: owl 87.50 %, big, \"old\" dog 12.50 %  (in truth cat)\n"
           "test[7]: nan\n");
    /* All equal ones come, by number, and no more than there are. */
    static const float even[3] = {0.25F, 0.25F, 0.25F};
    some[0].output = even;
    some[0].labels = NULL;
    predictions.top = 9;
    expect(&cli_predictions_text, &predictions, some, 1,
           "test[7]: cat 25.00 %, big, \"old\" dog 25.00 %, owl 25.00 %\n");
    expect(&cli_predictions_jsonl, &predictions, some, 1,
           "{\"example\":7,\"input\":\"test[7]\",\"class\":0,\"name\":\"cat\",\"probability\":0.25,"
           "\"output\":[0.25,0.25,0.25]}\n");
    /* Where examples may have a label, one without has none. */
    some[2].output = even;
    expect(&cli_predictions_csv, &predictions, &some[2], 1,
           "example,class,probability,label,p_cat,\"p_big, \"\"old\"\" dog\",p_owl\n"
           "9,cat,0.25,,0.25,0.25,0.25\n");
    expect(&cli_predictions_csv, &predictions, some, 1,
           "example,class,probability,label,p_cat,\"p_big, \"\"old\"\" dog\",p_owl\n"
           "7,cat,0.25,,0.25,0.25,0.25\n");
    expect(&cli_predictions_json, &predictions, &some[2], 1,
           "{\"example\":9,\"input\":\"test[7]\",\"class\":0,\"name\":\"cat\",\"probability\":0.25,"
           "\"output\":[0.25,0.25,0.25]}\n");
    predictions.labels = false;
    predictions.named = true;
    some[0].input = "a\nb";
    expect(&cli_predictions_csv, &predictions, some, 1,
           "example,input,class,probability,p_cat,\"p_big, \"\"old\"\" dog\",p_owl\n"
           "7,\"a\nb\",cat,0.25,0.25,0.25,0.25\n");
}

static void values_and_their_names(void **state)
{
    (void)state;
    static const float output[2] = {1.5F, -2}, target[2] = {3, 4.5F};
    struct tr_predict_info info = of_values(2, sizes);
    struct cli_predictions predictions = {.info = &info, .top = 3, .values = true, .head = {{.outputs = 2}}};
    const struct cli_prediction one = {
        .example = 0, .input = "test[0]", .rows = 1, .output = output, .targets = target};
    expect(&cli_predictions_csv, &predictions, &one, 1,
           "example,label_height,\"label_a,b\",height,\"a,b\"\n0,3,4.5,1.5,-2\n");
    expect(&cli_predictions_text, &predictions, &one, 1,
           "test[0]: 1.5000 -2.0000  (in truth 3.0000 4.5000)\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":0,\"input\":\"test[0]\",\"label\":[3,4.5],\"output\":[1.5,-2]}\n");
    info.target_names = NULL;
    expect(&cli_predictions_csv, &predictions, &one, 1,
           "example,label_0,label_1,output_0,output_1\n0,3,4.5,1.5,-2\n");
    info = of_values(1, NULL);
    predictions.head[0].outputs = 1;
    expect(&cli_predictions_csv, &predictions, &one, 1, "example,label,output\n0,3,1.5\n");
    predictions.values = false;
    expect(&cli_predictions_csv, &predictions, &one, 1, "example,output\n0,1.5\n");
}

/* A loss of three classes, and one of two values. */
static void several_losses(void **state)
{
    (void)state;
    static const char *const names[] = {"kind", "height", "width"};
    static const float output[5] = {0.125F, 0.125F, 0.75F, 5, -6}, target[3] = {2, 8, 9};
    const struct tr_predict_info info = {
        .outputs = 5, .heads = 2, .targets = 3, .target_names = names, .class_names = animals};
    struct cli_predictions predictions = {.info = &info, .top = 2, .values = true};
    predictions.head[0] =
        (struct tr_predict_head){.loss = "softmax_cross_entropy", .outputs = 3, .classification = true};
    predictions.head[1] = (struct tr_predict_head){.loss = "mean_squared_error", .outputs = 2};
    const struct cli_prediction one = {
        .example = 1, .input = "train[1]", .rows = 1, .output = output, .targets = target};
    expect(
        &cli_predictions_csv, &predictions, &one, 1,
        "example,class_1,probability_1,label_kind,label_height,label_width,p_1_0,p_1_1,p_1_2,height,width\n"
        "1,2,0.75,2,8,9,0.125,0.125,0.75,5,-6\n");
    expect(&cli_predictions_text, &predictions, &one, 1,
           "train[1]: 2 75.00 %, 0 12.50 %; 5.0000 -6.0000  (in truth 2.0000 8.0000 9.0000)\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":1,\"input\":\"train[1]\",\"label\":[2,8,9],\"output\":[0.125,0.125,0.75,5,-6],"
           "\"heads\":[{\"loss\":\"softmax_cross_entropy\",\"class\":2,\"probability\":0.75,"
           "\"output\":[0.125,0.125,0.75]},{\"loss\":\"mean_squared_error\",\"output\":[5,-6]}]}\n");
}

/* Two classes of 2 x 3 pixels, one of which has no label. */
static void pixels(void **state)
{
    (void)state;
    static const char *const names[] = {"dark", "light"};
    static const float output[6][2] = {{1, 0}, {0, 1}, {1, 0}, {1, 0}, {0.5F, 0.5F}, {0, 1}};
    static const int32_t labels[6] = {0, 1, 1, 0, TR_NO_LABEL, 1}, unknown[6] = {-1, -1, -1, -1, -1, -1};
    const struct tr_predict_info info = {.checkpoint = "runs/x",
                                         .outputs = 2,
                                         .classification = true,
                                         .class_names = names,
                                         .heads = 1,
                                         .pixel_height = 2,
                                         .pixel_width = 3};
    struct cli_predictions predictions = {
        .info = &info, .top = 2, .labels = true, .head = {{.outputs = 2, .classification = true}}};
    struct cli_prediction one = {
        .example = 3, .input = "x.png", .rows = 6, .output = output[0], .labels = labels};
    expect(&cli_predictions_text, &predictions, &one, 1,
           "x.png: dark 66.67 %, light 33.33 % of 3 x 2 pixels  (80.00 % right)\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":3,\"input\":\"x.png\",\"height\":2,\"width\":3,\"classes\":[\"dark\",\"light\"],"
           "\"pixels\":[4,2],\"accuracy\":0.8}\n");
    expect(&cli_predictions_csv, &predictions, &one, 1,
           "example,row,column,class,probability,label,p_dark,p_light\n"
           "3,0,0,dark,1,dark,1,0\n3,0,1,light,1,light,0,1\n3,0,2,dark,1,light,1,0\n"
           "3,1,0,dark,1,dark,1,0\n3,1,1,dark,0.5,,0.5,0.5\n3,1,2,light,1,light,0,1\n");
    one.labels = unknown;
    expect(&cli_predictions_text, &predictions, &one, 1,
           "x.png: dark 66.67 %, light 33.33 % of 3 x 2 pixels\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":3,\"input\":\"x.png\",\"height\":2,\"width\":3,\"classes\":[\"dark\",\"light\"],"
           "\"pixels\":[4,2]}\n");
    int64_t count[2];
    double right;
    cli_predictions_count(&predictions, &one, count, &right);
    assert_true(count[0] == 4 && count[1] == 2 && isnan(right));
    /* The classes of an array, as integers, behind a header for so many examples. */
    predictions.expected = 1;
    char *array = text_of(&cli_predictions_npy, &predictions, &one, 1);
    static const int32_t classes[6] = {0, 1, 0, 0, 0, 1};
    assert_non_null(strstr(array + 10, "'<i4'"));
    assert_non_null(strstr(array + 10, "(1, 2, 3)"));
    assert_memory_equal(strchr(array + 10, '\n') + 1, classes, sizeof classes);
    tr_free(array);
    assert_int_equal(cli_predictions_conll.check(&predictions), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "the network of \"runs/x\" answers for pixels; take .csv"));
}

/* A text of four words of which three are read; one of these has no tag in truth. */
static void tags(void **state)
{
    (void)state;
    static const char *const names[] = {"det", "noun"}, *const words[] = {"the", "a\tb\n", "c\rd", "end"};
    static const float output[3][2] = {{0.75F, 0.25F}, {0, 1}, {1, 0}};
    static const int32_t labels[3] = {1, 0, TR_NO_LABEL};
    const struct tr_predict_info info = {.outputs = 2, .class_names = names, .heads = 1, .of_tokens = true};
    struct cli_predictions predictions = {
        .info = &info, .labels = true, .head = {{.outputs = 2, .classification = true}}};
    struct cli_prediction one = {.example = 4,
                                 .input = "train[4]",
                                 .rows = 3,
                                 .output = output[0],
                                 .labels = labels,
                                 .word = words,
                                 .words = 4};
    assert_int_equal(cli_predictions_conll.check(&predictions), TR_OK);
    expect(&cli_predictions_conll, &predictions, &one, 1,
           "the\tnoun\tdet\na\\tb\\n\tdet\tnoun\nc\\rd\t-\tdet\nend\t-\t-\n\n");
    expect(&cli_predictions_text, &predictions, &one, 1,
           "train[4]: the/det (in truth noun) a\tb\n/noun (in truth det) c\rd/det end/-\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":4,\"input\":\"train[4]\",\"words\":[\"the\",\"a\\tb\\n\",\"c\\rd\",\"end\"],"
           "\"tags\":[\"det\",\"noun\",\"det\"],\"probabilities\":[0.75,1,1],"
           "\"labels\":[\"noun\",\"det\",\"-\"]}\n");
    predictions.labels = false;
    predictions.named = true;
    one.labels = NULL;
    one.rows = 1;
    expect(&cli_predictions_conll, &predictions, &one, 1, "the\tdet\na\\tb\\n\t-\nc\\rd\t-\nend\t-\n\n");
    expect(&cli_predictions_text, &predictions, &one, 1, "the/det a\tb\n/- c\rd/- end/-\n");
    expect(&cli_predictions_csv, &predictions, &one, 1,
           "example,token,word,class,probability,p_det,p_noun\n4,0,the,det,0.75,0.75,0.25\n");
}

static void texts_of_texts(void **state)
{
    (void)state;
    const struct tr_predict_info info = {
        .checkpoint = "runs/x", .of_tokens = true, .two_texts = true, .heads = 1, .outputs = 9};
    struct cli_predictions predictions = {.info = &info};
    struct cli_prediction one = {
        .example = 2, .input = "test[2]", .rows = 1, .written = "ein, Hund", .truth = "der Hund"};
    expect(&cli_predictions_csv, &predictions, &one, 1, "example,text,label\n2,\"ein, Hund\",der Hund\n");
    expect(&cli_predictions_text, &predictions, &one, 1, "test[2]: ein, Hund  (in truth der Hund)\n");
    expect(&cli_predictions_json, &predictions, &one, 1,
           "{\"example\":2,\"input\":\"test[2]\",\"text\":\"ein, Hund\",\"label\":\"der Hund\"}\n");
    one.truth = "ein, Hund";
    expect(&cli_predictions_text, &predictions, &one, 1, "test[2]: ein, Hund\n");
    one.truth = NULL;
    predictions.named = true;
    one.input = "a dog";
    expect(&cli_predictions_csv, &predictions, &one, 1, "example,input,text\n2,a dog,\"ein, Hund\"\n");
    expect(&cli_predictions_text, &predictions, &one, 1, "ein, Hund\n");
    assert_int_equal(cli_predictions_npy.check(&predictions), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "--output: the network of \"runs/x\" writes texts"));
    assert_int_equal(cli_predictions_conll.check(&predictions), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "answers for whole examples"));
}

static void too_many_losses_are_refused(void **state)
{
    (void)state;
    const struct tr_predict_info info = {.checkpoint = "runs/x", .heads = CLI_PREDICTION_HEADS + 1};
    struct cli_predictions predictions = {.info = &info, .format = &cli_predictions_text};
    assert_int_equal(cli_predictions_begin(&predictions, NULL), TR_EUNSUPPORTED);
    char message[64];
    snprintf(message, sizeof message, "has %d losses; at most %d", CLI_PREDICTION_HEADS + 1,
             CLI_PREDICTION_HEADS);
    assert_non_null(strstr(tr_error_message(), message));
}

static void endings_choose_the_form(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const struct cli_prediction_format *format; /* NULL: none */
    } cases[] = {
        {"a.csv", &cli_predictions_csv},
        {"d.npy/x.csv", &cli_predictions_csv},
        {"a.npy", &cli_predictions_npy},
        {"a.jsonl", &cli_predictions_jsonl},
        {"a.conll", &cli_predictions_conll},
        {".csv", NULL},
        {"a.json", NULL},
        {"csv", NULL},
        {"a.csv.gz", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct cli_prediction_format *format;
        tr_status status = cli_predictions_format(cases[i].path, &format);
        assert_int_equal(status, cases[i].format ? TR_OK : TR_EINVAL);
        if (cases[i].format)
            assert_ptr_equal(format, cases[i].format);
        else
            assert_non_null(strstr(tr_error_message(), "does not end in .csv, .npy, .jsonl or .conll"));
    }
}

static void classes_without_names_are_numbers(void **state)
{
    (void)state;
    struct tr_predict_info info = of_classes();
    const struct cli_predictions predictions = {.info = &info};
    char buffer[16];
    assert_string_equal(cli_predictions_class(&predictions, 2, buffer), "owl");
    assert_string_equal(cli_predictions_class(&predictions, 3, buffer), "3"); /* of other data */
    assert_string_equal(cli_predictions_class(&predictions, -1, buffer), "-1");
    info.class_names = NULL;
    assert_string_equal(cli_predictions_class(&predictions, 0, buffer), "0");
    static const float first[3] = {NAN, 0.5F, 0.5F};
    assert_int_equal(cli_predictions_best(first, 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_in_every_form),
        cmocka_unit_test(values_and_their_names),
        cmocka_unit_test(several_losses),
        cmocka_unit_test(pixels),
        cmocka_unit_test(tags),
        cmocka_unit_test(texts_of_texts),
        cmocka_unit_test(too_many_losses_are_refused),
        cmocka_unit_test(endings_choose_the_form),
        cmocka_unit_test(classes_without_names_are_numbers),
    };
    return cmocka_run_group_tests_name("cli.predictions", tests, NULL, NULL);
}
