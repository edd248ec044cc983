/* Weights of encoders in directories of Hugging Face: each number comes to its place, whatever the file calls
 * it and however many bits it has; what is missing or of another shape is named. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/numbers/half.h"
#include "export/hub/hub.h"
#include "io/safetensors.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { WIDTH = 2, INNER = 3, IDS = 5, PLACES = 3, SKIPPED = 2, TYPES = 2, CLASSES = 4, MOST = 32 };

/* A tensor of a file, and the rows of ours that it becomes. */
struct row {
    const char *theirs, *ours; /* NULL: the end */
    int rank, rows, columns;
    int first; /* of the rows of ours */
};

#define BEGIN(name)                                                                                          \
    {name ".embeddings.word_embeddings.weight", "tokens.weight", 2, IDS, WIDTH, 0},                          \
        {name ".embeddings.LayerNorm.weight", "begun.weight", 1, WIDTH, 1, 0},                               \
        {name ".embeddings.LayerNorm.bias", "begun.bias", 1, WIDTH, 1, 0},
#define BLOCK(query, key, value, out, first, up, down, second)                                               \
    {query ".weight", "attention0.in_proj_weight", 2, WIDTH, WIDTH, 0},                                      \
        {key ".weight", "attention0.in_proj_weight", 2, WIDTH, WIDTH, WIDTH},                                \
        {value ".weight", "attention0.in_proj_weight", 2, WIDTH, WIDTH, 2 * WIDTH},                          \
        {query ".bias", "attention0.in_proj_bias", 1, WIDTH, 1, 0},                                          \
        {key ".bias", "attention0.in_proj_bias", 1, WIDTH, 1, WIDTH},                                        \
        {value ".bias", "attention0.in_proj_bias", 1, WIDTH, 1, 2 * WIDTH},                                  \
        {out ".weight", "attention0.out_proj.weight", 2, WIDTH, WIDTH, 0},                                   \
        {out ".bias", "attention0.out_proj.bias", 1, WIDTH, 1, 0},                                           \
        {first ".weight", "attended0.weight", 1, WIDTH, 1, 0},                                               \
        {first ".bias", "attended0.bias", 1, WIDTH, 1, 0}, {up ".weight", "up0.weight", 2, INNER, WIDTH, 0}, \
        {up ".bias", "up0.bias", 1, INNER, 1, 0}, {down ".weight", "down0.weight", 2, WIDTH, INNER, 0},      \
        {down ".bias", "down0.bias", 1, WIDTH, 1, 0}, {second ".weight", "block0.weight", 1, WIDTH, 1, 0},   \
        {second ".bias", "block0.bias", 1, WIDTH, 1, 0},
#define BERT_BLOCK(layer)                                                                                    \
    BLOCK(layer ".attention.self.query", layer ".attention.self.key", layer ".attention.self.value",         \
          layer ".attention.output.dense", layer ".attention.output.LayerNorm", layer ".intermediate.dense", \
          layer ".output.dense", layer ".output.LayerNorm")
#define DENSE(name, ours, rows)                                                                              \
    {name ".weight", ours ".weight", 2, rows, WIDTH, 0}, {name ".bias", ours ".bias", 1, rows, 1, 0},

static const struct row bert[] = {BEGIN("bert") BERT_BLOCK("bert.encoder.layer.0") DENSE(
    "bert.pooler.dense", "pooled", WIDTH) DENSE("classifier", "classes", CLASSES){0}};
static const struct row distilbert[] = {BEGIN("distilbert") BLOCK(
    "distilbert.transformer.layer.0.attention.q_lin", "distilbert.transformer.layer.0.attention.k_lin",
    "distilbert.transformer.layer.0.attention.v_lin", "distilbert.transformer.layer.0.attention.out_lin",
    "distilbert.transformer.layer.0.sa_layer_norm", "distilbert.transformer.layer.0.ffn.lin1",
    "distilbert.transformer.layer.0.ffn.lin2", "distilbert.transformer.layer.0.output_layer_norm")
                                            DENSE("pre_classifier", "pooled", WIDTH)
                                                DENSE("classifier", "classes", CLASSES){0}};
static const struct row roberta[] = {BEGIN("roberta") BERT_BLOCK("roberta.encoder.layer.0") DENSE(
    "classifier.dense", "pooled", WIDTH) DENSE("classifier.out_proj", "classes", CLASSES){0}};
static const struct row tagging[] = {BEGIN("bert") BERT_BLOCK("bert.encoder.layer.0")
                                         DENSE("classifier", "classes", CLASSES){0}};

/* ---- files ---- */

static struct tr_hub_config config_of(enum tr_hub_kind kind)
{
    return (struct tr_hub_config){.kind = kind,
                                  .width = WIDTH,
                                  .inner = INNER,
                                  .layers = 1,
                                  .heads = 1,
                                  .kv_heads = 1,
                                  .head_size = WIDTH,
                                  .context = PLACES,
                                  .vocabulary = IDS,
                                  .classes = CLASSES,
                                  .types = kind == TR_HUB_DISTILBERT ? 0 : TYPES,
                                  .skipped = kind == TR_HUB_ROBERTA ? SKIPPED : 0,
                                  .bias = true};
}

/* Number k of tensor t, which 16 bits of both kinds hold. */
static float number_of(int t, int k)
{
    return (float)(t * 4 + k % 4);
}

/* The tensors of a file: those of a list, and the tables of places and kinds of texts. */
struct given {
    struct tr_stored_tensor tensor[MOST];
    char name[MOST][80];
    uint32_t bits[MOST][16];
    int count;
};

static void give(struct given *given, const char *name, enum tr_dtype dtype, int rank, int rows, int columns)
{
    const int t = given->count++;
    for (int k = 0; k < rows * columns; k++) {
        const float value = number_of(t, k);
        const uint16_t half = tr_half_from_float(value);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint16_t brain = (uint16_t)(bits >> 16);
        if (dtype == TR_DTYPE_F32)
            given->bits[t][k] = bits;
        else
            memcpy((uint16_t *)(void *)given->bits[t] + k, dtype == TR_DTYPE_F16 ? &half : &brain, 2);
    }
    snprintf(given->name[t], sizeof given->name[t], "%s", name);
    given->tensor[t] =
        (struct tr_stored_tensor){given->name[t], dtype, rank, {rows, columns}, given->bits[t]};
}

/* All of a network. `without`: so many characters at the beginning of names are left out. */
static void give_all(struct given *given, const struct tr_hub_config *config, const struct row *row,
                     const char *name, size_t without, enum tr_dtype dtype)
{
    char full[80];
    *given = (struct given){0};
    for (; row->theirs; row++) {
        const bool prefixed = strncmp(row->theirs, name, strlen(name)) == 0;
        give(given, row->theirs + (prefixed ? without : 0), dtype, row->rank, row->rows, row->columns);
    }
    snprintf(full, sizeof full, "%s.embeddings.position_embeddings.weight", name);
    give(given, full + without, dtype, 2, PLACES + (int)config->skipped, WIDTH);
    snprintf(full, sizeof full, "%s.embeddings.token_type_embeddings.weight", name);
    if (config->types > 0) give(given, full + without, dtype, 2, TYPES, WIDTH);
}

static void put(const struct given *given)
{
    assert_int_equal(
        tr_safetensors_replace(NULL, scratch_in("model.safetensors"), given->tensor, given->count, NULL, 0),
        TR_OK);
}

/* ---- what becomes of them ---- */

static void *bytes;
static size_t size;

static tr_status read(const struct tr_hub_config *config, bool partial)
{
    bytes = NULL;
    return tr_hub_weights(config, scratch_place, partial, &bytes, &size);
}

static void read_ours(tr_safetensors *file, const char *name, int rank, int columns, float out[64])
{
    const struct tr_safetensors_entry *entry = tr_safetensors_find(file, name);
    if (!entry) fail_msg("there is no %s", name);
    assert_int_equal(entry->tensor.dtype, TR_DTYPE_F32);
    assert_int_equal(entry->tensor.rank, rank);
    if (rank == 2) assert_int_equal(entry->tensor.shape[1], columns);
    assert_true(entry->bytes <= 64 * sizeof *out);
    assert_int_equal(tr_safetensors_read(file, entry, out, NULL), TR_OK);
}

static void expect_numbers(const struct tr_hub_config *config, const struct row *row)
{
    tr_safetensors *file;
    float values[64];
    int t = 0;
    if (read(config, false) != TR_OK) fail_msg("%s", tr_error_message());
    assert_int_equal(tr_safetensors_open_memory("ours", bytes, size, &file), TR_OK);
    for (; row->theirs; row++, t++) {
        read_ours(file, row->ours, row->rank, row->columns, values);
        for (int k = 0; k < row->rows * row->columns; k++)
            if (values[row->first * row->columns + k] != number_of(t, k))
                fail_msg("%s: %g at %d", row->ours, (double)values[row->first * row->columns + k], k);
    }
    /* Places begin behind the skipped ones; each has the vector of the first kind of texts, too. */
    read_ours(file, "places.weight", 2, WIDTH, values);
    for (int k = 0; k < PLACES * WIDTH; k++) {
        const float first = config->types > 0 ? number_of(t + 1, k % WIDTH) : 0;
        assert_true(values[k] == number_of(t, (int)config->skipped * WIDTH + k) + first);
    }
    /* Queries, keys and values are one tensor: two of theirs for a weight and two for a bias are not ours. */
    assert_int_equal(tr_safetensors_count(file), t + 1 - 4);
    tr_safetensors_close(&file);
    tr_free(bytes);
}

static void every_number_comes_to_its_place(void **state)
{
    static const struct {
        enum tr_hub_kind kind;
        const char *name;
        const struct row *row;
        bool tags;
    } cases[] = {
        {TR_HUB_BERT, "bert", bert, false},
        {TR_HUB_DISTILBERT, "distilbert", distilbert, false},
        {TR_HUB_ROBERTA, "roberta", roberta, false},
        {TR_HUB_BERT, "bert", tagging, true},
    };
    static const enum tr_dtype dtypes[] = {TR_DTYPE_F32, TR_DTYPE_F16, TR_DTYPE_BF16};
    static struct given given;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t d = 0; d < 3; d++)
            for (int without = 0; without < 2; without++) {
                struct tr_hub_config config = config_of(cases[i].kind);
                config.tags = cases[i].tags;
                give_all(&given, &config, cases[i].row, cases[i].name,
                         without ? strlen(cases[i].name) + 1 : 0, dtypes[d]);
                put(&given);
                expect_numbers(&config, cases[i].row);
            }
}

/* A network that makes no classes is read with `partial` alone, and lacks these. */
static void classes_may_be_missing(void **state)
{
    static struct given given;
    (void)state;
    struct tr_hub_config config = config_of(TR_HUB_BERT);
    tr_safetensors *file;
    config.begins = true;
    give_all(&given, &config, bert, "bert", 0, TR_DTYPE_F32);
    for (int i = 0; i < given.count; i++)
        if (strcmp(given.name[i], "classifier.weight") == 0 || strcmp(given.name[i], "classifier.bias") == 0)
            given.tensor[i].name = given.name[i][11] == 'w' ? "other.weight" : "other.bias";
    put(&given);
    assert_int_equal(read(&config, false), TR_EMISMATCH);
    assert_null(bytes);
    assert_non_null(strstr(tr_error_message(), "model.safetensors\" has no tensor \"classifier.weight\": the "
                                               "network makes no classes; set `partial`"));
    assert_int_equal(read(&config, true), TR_OK);
    assert_int_equal(tr_safetensors_open_memory("ours", bytes, size, &file), TR_OK);
    assert_null(tr_safetensors_find(file, "classes.weight"));
    assert_null(tr_safetensors_find(file, "classes.bias"));
    assert_non_null(tr_safetensors_find(file, "pooled.weight"));
    tr_safetensors_close(&file);
    tr_free(bytes);
    config.begins = false; /* a network with classes has them */
    assert_int_equal(read(&config, true), TR_EMISMATCH);
    assert_non_null(
        strstr(tr_error_message(), "no tensor \"classifier.weight\", which config.json asks for"));
}

/* ---- refused ---- */

static void expect_refused(const struct given *given, tr_status status, const char *message)
{
    const struct tr_hub_config config = config_of(TR_HUB_ROBERTA);
    put(given);
    if (read(&config, false) != status || !strstr(tr_error_message(), message))
        fail_msg("\"%s\" is not in \"%s\"", message, tr_error_message());
    assert_null(bytes);
}

static struct tr_stored_tensor *tensor_of(struct given *given, const char *end)
{
    for (int i = 0; i < given->count; i++) {
        const char *name = given->tensor[i].name;
        if (strlen(name) >= strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0)
            return &given->tensor[i];
    }
    fail_msg("there is no %s", end);
    return NULL;
}

static void other_tensors_are_refused(void **state)
{
    static struct given whole, given;
    (void)state;
    const struct tr_hub_config config = config_of(TR_HUB_ROBERTA);
    give_all(&whole, &config, roberta, "roberta", 0, TR_DTYPE_F32);
    given = whole, tensor_of(&given, "self.key.weight")->name = "x";
    expect_refused(&given, TR_EMISMATCH,
                   "has no tensor \"roberta.encoder.layer.0.attention.self.key.weight\", which config.json");
    given = whole, tensor_of(&given, "self.key.bias")->dtype = TR_DTYPE_I32;
    expect_refused(
        &given, TR_EUNSUPPORTED,
        "tensor \"roberta.encoder.layer.0.attention.self.key.bias\" is I32[2]; F32, F16 and BF16 are");
    given = whole, tensor_of(&given, "word_embeddings.weight")->shape[0] = IDS - 1;
    expect_refused(&given, TR_EMISMATCH, "is F32[4,2]; by config.json it has 5 rows of 2");
    given = whole, tensor_of(&given, "word_embeddings.weight")->shape[1] = 1;
    expect_refused(&given, TR_EMISMATCH, "is F32[5,1]; by config.json it has 5 rows of 2");
    given = whole, tensor_of(&given, "word_embeddings.weight")->rank = 1;
    expect_refused(&given, TR_EMISMATCH, "is F32[5]; by config.json it has 5 rows of 2");
    given = whole, tensor_of(&given, "position_embeddings.weight")->shape[0] = PLACES;
    expect_refused(&given, TR_EMISMATCH, "is F32[3,2]; by config.json it has 5 rows of 2");
    given = whole, tensor_of(&given, "token_type_embeddings.weight")->shape[0] = 1;
    expect_refused(&given, TR_EMISMATCH, "is F32[1,2]; by config.json it has 2 rows of 2");
    given = whole, tensor_of(&given, "token_type_embeddings.weight")->name = "x";
    expect_refused(&given, TR_EMISMATCH, "has no tensor \"roberta.embeddings.token_type_embeddings.weight\"");
}

static void lack_of_memory_is_told(void **state)
{
    static struct given given;
    (void)state;
    const struct tr_hub_config config = config_of(TR_HUB_ROBERTA);
    give_all(&given, &config, roberta, "roberta", 0, TR_DTYPE_BF16);
    put(&given);
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = read(&config, false);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(bytes);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_comes_to_its_place),
        cmocka_unit_test(classes_may_be_missing),
        cmocka_unit_test(other_tensors_are_refused),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, scratch_place_make, scratch_place_remove);
}
