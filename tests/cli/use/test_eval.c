/* trireme eval: its lines and tables for people, and the members for programs, of classes, values and words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/session.h"

static int make(void **state)
{
    if (place_make(state) != 0) return -1;
    write_text("line.csv", "1,2,3\n2,3,5\n3,1,4\n4,4,8\n");
    write_text("line.yaml",
               "name: line\ndata: {train: {csv: {path: line.csv, label: value}}}\nlayers: [{dense: 1}]\n"
               "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\n"
               "train: {batch: 4, steps: 2}\n");
    write_text("tags.tsv", "the dog runs\t0 1 2\na cat sleeps now\t0 1 2 -\nthe cat runs\t0 1 2\n");
    write_text("tags.yaml", "name: tags\ndata: {train: {text: {path: tags.tsv, tags: true, max_tokens: 4}}}\n"
                            "input: {classes: [det, noun, verb]}\nlayers: [{embedding: 8}, {dense: 3}]\n"
                            "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 60}\n");
    expect_exit(0, "train", "tiny.yaml", "--steps", "150", "--quiet");
    expect_exit(0, "train", "line.yaml", "--quiet");
    expect_exit(0, "train", "tags.yaml", "--quiet");
    return 0;
}

/* Without the speed, which is the machine's. */
static void expect_text(struct session *session, int code, const char *before, const char *after)
{
    const char *end = strstr(session->text[0], " examples, ");
    const char *line = end ? strchr(end, '\n') : NULL;
    if (code != 0 || !line || strncmp(session->text[0], before, strlen(before)) != 0 ||
        strcmp(line + 1, after) != 0)
        session_show(session);
    assert_int_equal(code, 0);
    assert_non_null(line);
    assert_memory_equal(session->text[0], before, strlen(before));
    assert_string_equal(line + 1, after);
    session_release(session);
}

static void classes_have_tables(void **state)
{
    (void)state;
    static const char head[] =
        "checkpoint  runs/tiny/checkpoint-00000150 (step 150)\ntest        accuracy 1.0000, loss 0.0";
    static const char outputs[] = "class  precision  recall      f1  support  roc_auc\n"
                                  "0         1.0000  1.0000  1.0000       22   1.0000\n"
                                  "1         1.0000  1.0000  1.0000       21   1.0000\n"
                                  "2         1.0000  1.0000  1.0000       21   1.0000\n";
    static const char confusion[] = "    0   1   2\n0  22   .   .\n1   .  21   .\n2   .   .  21\n";
    struct session session;
    char after[1000];
    for (int asked = 0; asked < 2; asked++) {
        int code = run(&session, "eval", "runs/tiny", asked ? "--confusion" : NULL, NULL);
        const char *metrics =
            strstr(session.text[0], "            precision 1.0000, recall 1.0000, f1 1.0000, roc_auc 1.0000, "
                                    "perplexity 1.0");
        assert_non_null(metrics);
        snprintf(after, sizeof after, "%.*s\n\n%s%s%s", (int)strcspn(metrics, "\n"), metrics, outputs,
                 asked ? "\n" : "", asked ? confusion : "");
        expect_text(&session, code, head, after);
    }
}

static void words_have_a_perplexity(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "eval", "runs/tags", "--set-name", "train", "--confusion", NULL);
    expect_text(
        &session, code,
        "checkpoint  runs/tags/checkpoint-00000060 (step 60)\ntrain       perplexity 1, accuracy 1.0000, "
        "loss 0.0000 "
        "(3 examples, ",
        "\n      det  noun  verb\ndet     3     .     .\nnoun    .     3     .\nverb    .     .     3\n");
}

/* Values have a loss and no accuracy; a set that there is not is told, with one that there is. */
static void values_have_a_loss(void **state)
{
    (void)state;
    static const char head[] = "checkpoint  runs/line/checkpoint-00000002 (step 2)\ntrain       loss ";
    struct session session;
    int code = run(&session, "eval", "runs/line", "--set-name", "train", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_memory_equal(session.text[0], head, sizeof head - 1);
    assert_null(strstr(session.text[0], "accuracy"));
    assert_non_null(strstr(session.text[0], "rmse "));
    assert_null(strstr(session.text[0], "nan"));
    int lines = 0; /* the third is of metrics, and a single output has no table */
    for (const char *at = session.text[0]; (at = strchr(at, '\n')); at++) lines++;
    assert_int_equal(lines, 3);
    session_release(&session);
    code = run(&session, "eval", "runs/line", NULL);
    expect_error(2, "data.test, or give --set-name train", &session, code);
    session_release(&session);
    code = run(&session, "eval", "runs/line", "--set-name", "validation", NULL);
    expect_error(2, "data.validation, or give --set-name train", &session, code);
    session_release(&session);
    code = run(&session, "eval", "runs/line", "--set-name", "train", "--isa", "none", NULL);
    expect_error(2, "none", &session, code);
    session_release(&session);
}

/* Several values have a table; of a class without examples there is nothing to be said but zeros. */
static void what_cannot_be_told_is_a_dash(void **state)
{
    (void)state;
    struct session session;
    write_text("two.csv", "1,2,3,4\n2,3,5,1\n3,1,4,0\n4,4,8,2\n");
    write_text("two.yaml",
               "name: two\ndata: {train: {csv: {path: two.csv, label: value, label_columns: [2, 3]}}}\n"
               "layers: [{dense: 2}]\nloss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\n"
               "train: {batch: 4, steps: 1}\n");
    write_text("three.csv", "1,2,0\n3,1,1\n2,5,2\n");
    write_text("fewer.csv", "1,2,0\n3,1,1\n2,2,0\n");
    write_text("three.yaml", "name: three\n"
                             "data: {train: {csv: three.csv}, test: {csv: {path: fewer.csv, classes: 3}}}\n"
                             "layers: [{dense: 3}]\noptimizer: {rule: sgd, rate: 0.01}\n"
                             "train: {batch: 3, steps: 1}\n");
    expect_exit(0, "train", "two.yaml", "--quiet");
    expect_exit(0, "train", "three.yaml", "--quiet");
    assert_int_equal(run(&session, "eval", "runs/two", "--set-name", "train", NULL), 0);
    assert_non_null(strstr(session.text[0], "\n\noutput "));
    assert_non_null(strstr(session.text[0], "\n1 "));
    session_release(&session);
    assert_int_equal(run(&session, "eval", "runs/three", NULL), 0);
    const char *last = strstr(session.text[0], "\n2   ");
    if (!last) session_show(&session);
    assert_non_null(last);
    assert_non_null(strstr(last, " 0        -\n"));
    assert_null(strstr(session.text[0], "nan"));
    session_release(&session);
}

/* A file without an ending or a folder is one if it is there; what is said of a set that cannot be had. */
static void data_are_found_or_explained(void **state)
{
    (void)state;
    struct session session;
    write_text("line-check", "5,1,6\n");
    write_text("checked.yaml", "name: checked\n"
                               "data: {train: {csv: {path: line.csv, label: value}},\n"
                               "  validation: {csv: {path: line-check, label: value}}}\n"
                               "layers: [{dense: 1}]\nloss: mean_squared_error\n"
                               "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 4, steps: 1}\n");
    expect_exit(0, "train", "checked.yaml", "--quiet");
    assert_int_equal(run(&session, "eval", "runs/line", "--data", "line-check", NULL), 0);
    assert_non_null(strstr(session.text[0], "\ndata        loss "));
    assert_non_null(strstr(session.text[0], "(1 example, "));
    session_release(&session);
    int code = run(&session, "eval", "runs/checked", NULL);
    expect_error(2, "data.test, or give --set-name validation", &session, code);
    session_release(&session);
    assert_int_equal(remove("line-check"), 0);
    code = run(&session, "eval", "runs/line", "--data", "line-check", NULL);
    expect_error(2, "data format \"line-check\" is none of", &session, code);
    session_release(&session);
    code = run(&session, "eval", "runs/checked", "--set-name", "validation", "--no-data-cache", NULL);
    assert_null(strstr(session.text[1], "or give --set-name"));
    expect_error(2, "line-check", &session, code);
    session_release(&session);
}

/* The object of `eval --json`; release with json_decref(). */
static json_t *object_of(const char *run_name, const char *option)
{
    struct session session;
    int code = run(&session, "eval", run_name, "--json", "--set-name", "train", option, NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    json_t *object = json_loads(session.text[0], 0, NULL);
    assert_non_null(object);
    session_release(&session);
    return object;
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number \"%s\"", key);
    return json_number_value(value);
}

static void programs_have_members(void **state)
{
    (void)state;
    json_t *tiny = object_of("runs/tiny", "--confusion"), *line = object_of("runs/line", NULL),
           *tags = object_of("runs/tags", NULL);
    assert_string_equal(json_string_value(json_object_get(tiny, "checkpoint")),
                        "runs/tiny/checkpoint-00000150");
    assert_string_equal(json_string_value(json_object_get(tiny, "name")), "tiny");
    assert_string_equal(json_string_value(json_object_get(tiny, "set")), "train");
    assert_int_equal(strspn(json_string_value(json_object_get(tiny, "hash")), "0123456789abcdef"), 64);
    assert_true(number_of(tiny, "step") == 150 && number_of(tiny, "examples") == 64 &&
                number_of(tiny, "accuracy") == 1);
    assert_true(number_of(tiny, "loss") > 0 && number_of(tiny, "loss") < 0.1 &&
                number_of(tiny, "seconds") > 0);
    assert_true(number_of(json_object_get(tiny, "metrics"), "f1") == 1);
    const json_t *support = json_object_get(json_object_get(tiny, "outputs"), "support"),
                 *confusion = json_object_get(tiny, "confusion");
    assert_true(json_array_size(support) == 3 && json_integer_value(json_array_get(support, 0)) == 22);
    assert_int_equal(json_array_size(confusion), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(json_array_size(json_array_get(confusion, i)), 3);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(json_integer_value(json_array_get(json_array_get(confusion, i), k)), i != k ? 0
                                                                                                  : i    ? 21
                                                                                                      : 22);
    }
    assert_null(json_object_get(tiny, "perplexity"));
    const double rmse = number_of(json_object_get(line, "metrics"), "rmse");
    assert_true(fabs(rmse * rmse - number_of(line, "loss")) < 1e-5);
    assert_null(json_object_get(line, "accuracy"));
    assert_null(json_object_get(line, "confusion"));
    assert_float_equal(number_of(tags, "perplexity"), exp(number_of(tags, "loss")), 1e-6);
    assert_true(number_of(tags, "accuracy") == 1);
    json_decref(tiny);
    json_decref(line);
    json_decref(tags);
}

/* A table of up to 100 classes is printed; more are for programs. */
static void wide_tables_are_refused(void **state)
{
    (void)state;
    struct session session;
    for (int classes = 100; classes <= 101; classes++) {
        char rows[2000] = "", model[400];
        for (int i = 0; i < classes; i++)
            snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%d,%d\n", i, i);
        write_text("many.csv", rows);
        snprintf(model, sizeof model,
                 "name: many\ndata: {train: {csv: {path: many.csv}}}\nlayers: [{dense: %d}]\n"
                 "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 50, steps: 1}\n",
                 classes);
        write_text("many.yaml", model);
        expect_exit(0, "train", "many.yaml", "--quiet", "--overwrite");
        int code = run(&session, "eval", "runs/many", "--set-name", "train", "--confusion", NULL);
        if (classes == 100) {
            assert_int_equal(code, 0);
            assert_non_null(strstr(session.text[0], "  99\n"));
        } else {
            expect_error(2, "--confusion: a table of 101 classes is too wide (at most 100); add --json",
                         &session, code);
        }
        session_release(&session);
        expect_exit(0, "eval", "runs/many", "--set-name", "train", "--confusion", "--json");
        /* So it is with the metrics of each class. */
        code = run(&session, "eval", "runs/many", "--set-name", "train", NULL);
        assert_int_equal(code, 0);
        assert_int_equal(strstr(session.text[0], "\nclass  precision") != NULL, classes == 100);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_have_tables),         cmocka_unit_test(words_have_a_perplexity),
        cmocka_unit_test(values_have_a_loss),          cmocka_unit_test(programs_have_members),
        cmocka_unit_test(wide_tables_are_refused),     cmocka_unit_test(what_cannot_be_told_is_a_dash),
        cmocka_unit_test(data_are_found_or_explained),
    };
    return cmocka_run_group_tests(tests, make, place_remove);
}
