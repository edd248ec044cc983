/* Answers requests as they come, one batch after the other: trains a small network on numbers in memory,
 * takes a predictor straight from the trainer, without a file, and asks it again and again. What the answers
 * are written to is made once.
 *
 *     05-predict-in-a-loop [REQUESTS]
 */
#include <trireme/trireme.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS   1024
#define TOGETHER 64

static float x[POINTS][1], y[POINTS][1];

static const char model[] = "name: sine\n"
                            "layers: [{dense: {units: 32, activation: tanh}}, {dense: 1}]\n"
                            "loss: mean_squared_error\n"
                            "optimizer: {rule: adam, rate: 0.01}\n"
                            "train: {batch: 64, epochs: 150}\n";

static void make_points(void)
{
    int i;
    for (i = 0; i < POINTS; i++) {
        x[i][0] = (float)i / (POINTS / 6.0f) - 3.0f;
        y[i][0] = (float)sin((double)x[i][0]);
    }
}

static struct tr_array array_of(const float *numbers)
{
    struct tr_array array;
    memset(&array, 0, sizeof array);
    array.data = numbers;
    array.type = TR_ARRAY_FLOAT32;
    array.dimensions = 2;
    array.shape[0] = POINTS;
    array.shape[1] = 1;
    return array;
}

static tr_status learn(tr_predictor **predictor)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct tr_predict_settings answering = TR_PREDICT_SETTINGS_INIT;
    struct tr_named_source data;
    tr_source *points = NULL;
    tr_trainer *trainer = NULL;
    tr_status status;
    arrays.features = array_of(&x[0][0]);
    arrays.labels = array_of(&y[0][0]);
    status = tr_source_from_arrays(&arrays, &points);
    data.name = "train";
    data.source = points;
    settings.model_text = model;
    settings.data = &data;
    settings.data_count = 1;
    if (status == TR_OK) status = tr_trainer_create(&settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    if (status == TR_OK) status = tr_trainer_predictor(trainer, &answering, predictor);
    tr_trainer_destroy(&trainer); /* the predictor goes its own way */
    tr_source_close(&points);
    return status;
}

/* Where answers go. */
struct answers {
    float value[TOGETHER];
};

static int take(void *user, const struct tr_prediction *prediction)
{
    struct answers *answers = (struct answers *)user;
    int64_t i;
    for (i = 0; i < prediction->count; i++) answers->value[prediction->first + i] = prediction->output[i];
    return 0;
}

/* One request: some numbers in, as many out. */
static tr_status answer(tr_predictor *predictor, int request, double *worst)
{
    struct tr_examples examples = TR_EXAMPLES_INIT;
    struct answers answers;
    float asked[TOGETHER];
    int i;
    tr_status status;
    for (i = 0; i < TOGETHER; i++) asked[i] = (float)((request * 37 + i * 11) % 500) / 100.0f - 2.5f;
    examples.count = TOGETHER;
    examples.floats = asked;
    status = tr_predictor_batch(predictor, &examples, take, &answers);
    for (i = 0; status == TR_OK && i < TOGETHER; i++) {
        const double error = fabs((double)answers.value[i] - sin((double)asked[i]));
        if (error > *worst) *worst = error;
    }
    return status;
}

int main(int argc, char **argv)
{
    const int requests = argc > 1 ? atoi(argv[1]) : 200;
    tr_predictor *predictor = NULL;
    double worst = 0;
    int i;
    tr_status status;
    make_points();
    status = learn(&predictor);
    for (i = 0; status == TR_OK && i < requests; i++) status = answer(predictor, i, &worst);
    if (status == TR_OK) printf("%d requests, farthest from the sine: %.3f\n", requests, worst);
    if (status != TR_OK) fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
    tr_predictor_destroy(&predictor);
    return status == TR_OK && worst < 0.2 ? 0 : 1;
}
