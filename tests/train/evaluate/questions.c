#include "train/evaluate/questions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct {
    const char *name, *model;
} models[] = {
    {"numbers", "data: {train: {csv: {path: numbers.csv, label: value, missing: mean, standardize: true}}}\n"
                "layers: [{dense: 1}]\nloss: mean_squared_error\n"},
    {"words", "data: {train: {text: {path: words.tsv}}}\n"
              "layers: [{embedding: 3}, {lstm: 4}, last, {dense: 2}]\n"},
    {"language", "data: {train: {corpus: {path: words.tsv, window: 4}}}\n"
                 "layers: [{embedding: 3}, {lstm: 4}, {dense: 20}]\n"},
    {"pairs",
     "data: {train: {join: {sources: {long: {text: {path: two.csv, layout: table, header: true, unit: "
     "characters, labels: false, text_columns: long}}, short: {text: {path: two.csv, layout: table, "
     "header: true, unit: characters, next: true, text_columns: short}}}}}}\n"
     "layers: [{embedding: {width: 4, from: long, name: memory}}, {embedding: {width: 4, from: "
     "short}}, {cross_attention: {heads: 1, with: memory}}, {dense: 4}]\n"},
};
enum { NUMBERS, TEXTS, LANGUAGE, PAIRS, MODELS };

static void write_model(int i)
{
    char file[64], path[SCRATCH_PATH];
    struct tr_text text = TR_TEXT_INIT;
    tr_text_addf(&text,
                 "name: %s\n%soptimizer: {rule: sgd, rate: 0.01, ema: 0.5}\n"
                 "train: {batch: 2, steps: 2, evaluate_batch: 2}\n",
                 models[i].name, models[i].model);
    snprintf(file, sizeof file, "%s.yaml", models[i].name);
    must_write(scratch_join(path, scratch_place, file), &text);
}

void question_job(struct job *job, int i)
{
    static char path[SCRATCH_PATH];
    char file[64];
    snprintf(file, sizeof file, "%s.yaml", models[i].name);
    job_begin(job, scratch_join(path, scratch_place, file));
    job->settings.set = job->set;
}

int questions_make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("numbers.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,NA,2\n1,1,1\n");
    scratch_write_text("words.tsv", "one two\t0\nthree\t1\ntwo three one\t1\n");
    scratch_write_text("two.csv", "long,short\nabc,ab\nba,b\ncab,a\n");
    for (int i = 0; i < MODELS; i++) {
        struct job job;
        struct outcome outcome;
        char out[SCRATCH_PATH];
        write_model(i);
        question_job(&job, i);
        job.settings.out = scratch_join(out, scratch_place, models[i].name);
        job_outcome(&job, &outcome);
        must_train(outcome.status);
    }
    return 0;
}

tr_status question_create(int i, const char *device, tr_predictor **out)
{
    struct tr_predict_settings settings = TR_PREDICT_SETTINGS_INIT;
    char path[SCRATCH_PATH];
    settings.checkpoint = scratch_join(path, scratch_place, models[i].name);
    settings.threads = 1;
    settings.device = device;
    return tr_predictor_create(&settings, out);
}

tr_predictor *question_load(int i, const char *device)
{
    tr_predictor *predictor;
    must_train(question_create(i, device, &predictor));
    return predictor;
}

static int count_rows(void *user, const struct tr_prediction *prediction)
{
    *(int64_t *)user += prediction->rows;
    return 0;
}

static int count_bytes(void *user, const char *piece, size_t length)
{
    (void)piece;
    *(int64_t *)user += (int64_t)length;
    return 0;
}

/* ---- what is asked of a predictor; each returns its status, and counts what it got ---- */

static tr_status evaluate(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    double loss, accuracy;
    int64_t confusion[20 * 20];
    tr_status status = tr_predictor_open_data(predictor, "train", &source);
    if (status != TR_OK) return status;
    status = tr_predictor_evaluate(predictor, source, &loss, &accuracy, confusion);
    *got = status == TR_OK;
    tr_source_close(&source);
    return status;
}

static tr_status run_ranges(tr_predictor *predictor, int64_t *got)
{
    static const struct tr_example_range ranges[] = {{2, 3}, {0, 3}};
    tr_source *source;
    tr_status status = tr_predictor_open_data(predictor, "train", &source);
    if (status != TR_OK) return status;
    status = tr_predictor_run(predictor, source, ranges, 2, count_rows, got);
    tr_source_close(&source);
    return status;
}

static tr_status open_table(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    float output[3];
    tr_status status = tr_predictor_open_file(predictor, scratch_in("numbers.csv"), &source);
    if (status != TR_OK) return status;
    status = tr_predictor_source(predictor, source, 1, 3, output);
    *got = tr_source_info(source)->count;
    tr_source_close(&source);
    return status;
}

static tr_status open_lines(tr_predictor *predictor, int64_t *got)
{
    tr_source *source;
    float output[6];
    tr_status status = tr_predictor_open_file(predictor, scratch_in("words.tsv"), &source);
    if (status != TR_OK) return status;
    status = tr_predictor_source(predictor, source, 0, 3, output);
    *got = tr_source_info(source)->count;
    tr_source_close(&source);
    return status;
}

static tr_status generate(tr_predictor *predictor, int64_t *got)
{
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    settings.prompt = "one ";
    settings.tokens = 6;
    return tr_predictor_generate(predictor, &settings, count_bytes, got);
}

static tr_status name_word(tr_predictor *predictor, int64_t *got)
{
    char *word;
    const tr_status status = tr_predictor_word(predictor, 1, &word);
    if (status != TR_OK) return status;
    *got = (int64_t)strlen(word);
    tr_text_free(word);
    return status;
}

static tr_status ask_numbers(tr_predictor *predictor, int64_t *got)
{
    static const float example[] = {1, 2};
    float answer;
    const tr_status status = tr_predictor_floats(predictor, example, &answer);
    *got = status == TR_OK;
    return status;
}

static tr_status ask_text(tr_predictor *predictor, int64_t *got)
{
    float answer[2];
    const tr_status status = tr_predictor_text(predictor, "three one", answer);
    *got = status == TR_OK;
    return status;
}

static tr_status ask_batch(tr_predictor *predictor, int64_t *got)
{
    static const float numbers[] = {1, 2, -1, 0.5F, 2, 2};
    struct tr_examples examples = TR_EXAMPLES_INIT;
    examples.count = 3;
    examples.floats = numbers;
    return tr_predictor_batch(predictor, &examples, count_rows, got);
}

static tr_status ask_tokens(tr_predictor *predictor, int64_t *got)
{
    static const int32_t tokens[] = {1, 2, 3};
    static const int64_t offsets[] = {0, 1, 3};
    struct tr_examples examples = TR_EXAMPLES_INIT;
    examples.count = 2;
    examples.tokens = tokens;
    examples.offsets = offsets;
    return tr_predictor_batch(predictor, &examples, count_rows, got);
}

static tr_status translate(tr_predictor *predictor, int64_t *got)
{
    char *text = NULL;
    const tr_status status = tr_predictor_translate(predictor, "bac", &text);
    assert_int_equal(text != NULL, status == TR_OK);
    if (status != TR_OK) return status;
    *got = (int64_t)strlen(text);
    tr_text_free(text);
    return status;
}

static tr_status translate_example(tr_predictor *predictor, int64_t *got)
{
    char *text = NULL, *truth = NULL;
    tr_source *source;
    tr_status status = tr_predictor_open_data(predictor, "train", &source);
    if (status != TR_OK) return status;
    status = tr_predictor_translate_example(predictor, source, 1, &text, &truth);
    assert_true((text != NULL) == (status == TR_OK) && (truth != NULL) == (status == TR_OK));
    *got = status == TR_OK ? (int64_t)strlen(text) : 0;
    tr_text_free(text);
    tr_text_free(truth);
    tr_source_close(&source);
    return status;
}

const struct question questions[] = {
    {"evaluate numbers", NUMBERS, evaluate, 1},
    {"evaluate texts", TEXTS, evaluate, 1},
    {"evaluate language", LANGUAGE, evaluate, 1},
    {"numbers in ranges", NUMBERS, run_ranges, 4},
    {"texts in ranges", TEXTS, run_ranges, 4},
    {"a table", NUMBERS, open_table, 4},
    {"lines", TEXTS, open_lines, 3},
    {"generate", LANGUAGE, generate, -1},
    {"word", TEXTS, name_word, 3},
    {"one row", NUMBERS, ask_numbers, 1},
    {"one text", TEXTS, ask_text, 1},
    {"some rows", NUMBERS, ask_batch, 3},
    {"some texts", TEXTS, ask_tokens, 2},
    {"translation", PAIRS, translate, -1},
    {"translated example", PAIRS, translate_example, -1},
};
const int question_count = sizeof questions / sizeof questions[0];
