/* Convolution, normalization, dropout, products and Adam, on numbers that follow from a seed. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/rng.h"
#include "trireme/arrays.h"
#include "trireme/train.h"
#include "verify/burn_in.h"

#include <string.h>

/* Changes with tr_numerics_version(), as all hashes do. */
const char burn_in_hash[TR_SHA256_TEXT] = "2e3f7319832378c46750254a72709a9d6d74b06a0acbb6dcd37d94bfb9fb580d";

#define EXAMPLES 96
#define SIDE     14
#define CLASSES  5

static const char job[] =
    "name: burn-in\n"
    "seed: 11\n"
    "layers:\n"
    "  - conv: {filters: 16, kernel: 3, padding: same, activation: relu}\n"
    "  - batch_norm\n"
    "  - max_pool: 2\n"
    "  - flatten\n"
    "  - dense: {units: 96, activation: tanh}\n"
    "  - dropout: 0.2\n"
    "  - dense: 5\n"
    "loss: softmax_cross_entropy\n"
    "optimizer: {rule: adam, rate: 3e-3, ema: 0.9}\n"
    "train: {batch: 32, microbatches: 4, steps: 24, log_every: 0, checkpoint_seconds: 0}\n";

struct examples {
    uint8_t images[EXAMPLES][SIDE][SIDE];
    int32_t labels[EXAMPLES];
};

static void release(void *examples)
{
    tr_free(examples);
}

tr_status burn_in_data(tr_source **out)
{
    struct examples *examples = tr_alloc(1, sizeof *examples);
    struct tr_arrays arrays = TR_ARRAYS_INIT;
    const tr_rng_key key = tr_rng_key_make(11, TR_RNG_BURN_IN);
    *out = NULL;
    if (!examples) return TR_ENOMEM;
    uint8_t *pixel = &examples->images[0][0][0];
    for (uint32_t i = 0; i < sizeof examples->images; i++) {
        uint32_t words[4];
        tr_rng_philox(key, i, 0, 0, 0, words);
        pixel[i] = (uint8_t)words[0];
    }
    for (uint32_t i = 0; i < EXAMPLES; i++) examples->labels[i] = (int32_t)(i % CLASSES);
    arrays.features = (struct tr_array){pixel, TR_ARRAY_UINT8, 3, {EXAMPLES, SIDE, SIDE}, {0}};
    arrays.labels = (struct tr_array){examples->labels, TR_ARRAY_INT32, 1, {EXAMPLES}, {0}};
    arrays.release = release;
    arrays.user = examples;
    return tr_source_from_arrays(&arrays, out);
}

tr_status burn_in_run(const tr_source *data, const char *device, const char *program_cache,
                      char hash[TR_SHA256_TEXT])
{
    const struct tr_named_source named = {"train", data};
    struct tr_train_settings settings = TR_TRAIN_SETTINGS_INIT;
    tr_trainer *trainer;
    settings.model_text = job;
    settings.device = device;
    settings.threads = 1;
    settings.journal = "";
    settings.program_cache = program_cache;
    settings.no_memory_check = true;
    settings.data = &named;
    settings.data_count = 1;
    TR_TRY(tr_trainer_create(&settings, &trainer));
    tr_status status = tr_trainer_run(trainer, NULL, NULL);
    if (status == TR_OK) status = tr_trainer_hash(trainer, hash);
    tr_trainer_destroy(&trainer);
    return status;
}
