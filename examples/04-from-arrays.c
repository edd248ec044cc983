/* Trains on arrays of the program's own, without a file: a model as text, examples in memory.
 *
 *     04-from-arrays
 *
 * The network learns whether a point lies within a ring.
 */
#include <trireme/trireme.h>

#include <stdio.h>

#define POINTS 4000

static float point[POINTS][2];
static int32_t inside[POINTS];

static const char model[] =
    "name: ring\n"
    "layers: [{dense: {units: 24, activation: tanh}}, {dense: {units: 24, activation: tanh}}, {dense: 2}]\n"
    "loss: softmax_cross_entropy\n"
    "optimizer: {rule: adam, rate: 0.02}\n"
    "train: {batch: 100, epochs: 40}\n";

/* Points that look random and are the same everywhere. */
static void make_points(void)
{
    uint32_t state = 1;
    for (int i = 0; i < POINTS; i++) {
        for (int k = 0; k < 2; k++) {
            state = state * 1664525u + 1013904223u;
            point[i][k] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
        const float square = point[i][0] * point[i][0] + point[i][1] * point[i][1];
        inside[i] = square > 0.2f && square < 0.7f;
    }
}

static tr_status train(const tr_source *points)
{
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    struct tr_named_source data;
    struct tr_train_event found = TR_TRAIN_EVENT_INIT;
    tr_trainer *trainer = NULL;
    char hash[65];
    data.name = "train";
    data.source = points;
    settings.model_text = model;
    settings.data = &data;
    settings.data_count = 1;
    tr_status status = tr_trainer_create(&settings, &trainer);
    if (status == TR_OK) status = tr_trainer_run(trainer, NULL, NULL);
    if (status == TR_OK) status = tr_trainer_evaluate(trainer, "train", &found);
    if (status == TR_OK) status = tr_trainer_hash(trainer, hash);
    if (status == TR_OK) printf("accuracy %.3f\nhash %s\n", found.accuracy, hash);
    tr_trainer_destroy(&trainer);
    return status;
}

int main(void)
{
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    tr_source *points = NULL;
    make_points();
    arrays.features.data = point;
    arrays.features.type = TR_ARRAY_FLOAT32;
    arrays.features.dimensions = 2;
    arrays.features.shape[0] = POINTS;
    arrays.features.shape[1] = 2;
    arrays.labels.data = inside;
    arrays.labels.type = TR_ARRAY_INT32;
    arrays.labels.dimensions = 1;
    arrays.labels.shape[0] = POINTS;
    tr_status status = tr_source_from_arrays(&arrays, &points);
    if (status == TR_OK) status = train(points);
    if (status != TR_OK) fprintf(stderr, "%s: %s\n", tr_status_name(status), tr_error_message());
    tr_source_close(&points);
    return status == TR_OK ? 0 : 1;
}
