/* Targets that read texts of people and of programs: model files, settings, JSON, command lines, notes. */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "base/options/config.h"
#include "base/text/json.h"
#include "base/options/option.h"
#include "data/tables/csv_values.h"
#include "job/file/override.h"
#include "cli/launch/launched.h"
#include "nn/model.h"
#include "optim/optimizer.h"
#include "strategy/strategy.h"

#include <math.h>
#include <string.h>

/* ---- YAML ---- */

/* What was read can be written, and what was written reads as the same. */
static void check_tree(const tr_config *root)
{
    char *written = NULL, *again = NULL;
    tr_config *copy = NULL;
    FUZZ_DEMAND(tr_config_dump(root, &written) == TR_OK);
    FUZZ_DEMAND(tr_config_parse(written, strlen(written), "written", &copy) == TR_OK);
    FUZZ_DEMAND(tr_config_dump(copy, &again) == TR_OK);
    FUZZ_DEMAND(strcmp(written, again) == 0);
    tr_free(written);
    tr_free(again);
    tr_config_destroy(&copy);
    struct tr_text json = TR_TEXT_INIT;
    tr_config_json(root, &json);
    FUZZ_DEMAND(!json.failed);
    tr_text_release(&json);
}

void fuzz_config(const uint8_t *data, size_t size)
{
    tr_config *root = NULL;
    int64_t live = tr_alloc_live();
    if (tr_config_parse((const char *)data, size, "fuzz", &root) == TR_OK) check_tree(root);
    tr_config_destroy(&root);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

static const char set_tree[] =
    "name: n\ndata: {train: {idx: {images: a, labels: b}}}\ninput: {scale: 1}\n"
    "layers:\n  - conv: {filters: 3, kernel: 5, name: first}\n  - relu\n  - dense: 4\n  - dense: {units: 2}\n"
    "loss: softmax_cross_entropy\noptimizer: {rule: adam, rate: 1e-3}\nlist: [1, [2, 3], {a: b}]\n";

/* Each line is an assignment; those that begin with a bang name a strategy. One that is refused leaves the
 * tree as it was. */
void fuzz_set(const uint8_t *data, size_t size)
{
    tr_config *root;
    int64_t live = tr_alloc_live();
    char *text = fuzz_string((struct fuzz_input){data, size}), *rest = text, *line;
    FUZZ_DEMAND(tr_config_parse(set_tree, sizeof set_tree - 1, "fuzz", &root) == TR_OK);
    while ((line = strsep(&rest, "\n"))) {
        char *before = NULL, *after = NULL;
        struct tr_job_settings settings = {.strategy = line + 1};
        FUZZ_DEMAND(tr_config_dump(root, &before) == TR_OK);
        tr_status status = *line == '!' ? tr_job_override(root, &settings) : tr_config_set(root, line);
        FUZZ_DEMAND(tr_config_dump(root, &after) == TR_OK);
        if (status != TR_OK && *line != '!') FUZZ_DEMAND(strcmp(before, after) == 0);
        tr_free(before);
        tr_free(after);
    }
    check_tree(root);
    tr_config_destroy(&root);
    free(text);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* The sections of a model file that are read without its data. */
void fuzz_network(const uint8_t *data, size_t size)
{
    static const struct tr_model_input inputs[] = {
        {.shape = {.rank = 3, .size = {12, 10, 3}}},
        {.shape = {.rank = 1, .size = {7}}},
        {.shape = {.sequence = true}, .vocabulary = 50},
    };
    struct fuzz_input input = {data, size};
    const struct tr_model_input *chosen = &inputs[fuzz_choice(&input, 3)];
    struct tr_model *model = NULL;
    struct tr_optimizer optimizer;
    const char *name;
    bool asynchronous;
    tr_config *root = NULL;
    int64_t live = tr_alloc_live();
    if (tr_config_parse((const char *)input.data, input.size, "fuzz", &root) == TR_OK) {
        if (tr_model_build(root, chosen, &model) == TR_OK) {
            FUZZ_DEMAND(model->layer_count >= 1 && model->arena_floats >= model->parameter_total);
            for (int i = 0; i < model->parameter_count; i++)
                FUZZ_DEMAND(model->parameters[i].offset % 16 == 0 && model->parameters[i].count > 0);
        }
        tr_model_destroy(&model);
        if (tr_optimizer_read(tr_config_get(root, "optimizer"), 100, &optimizer) == TR_OK)
            for (int64_t step = 0; step < 200; step += 33) tr_schedule_factor(&optimizer.schedule, step);
        tr_strategy_peek(tr_config_get(root, "strategy"), &name, &asynchronous);
    }
    tr_config_destroy(&root);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- JSON ---- */

static void walk_json(const struct tr_json_value *value, int depth)
{
    FUZZ_DEMAND(depth <= 64);
    tr_json_kind_name(value->kind);
    if (value->kind != TR_JSON_ARRAY && value->kind != TR_JSON_OBJECT) return;
    int64_t count = 0;
    for (const struct tr_json_value *at = value->first; at; at = at->next, count++) {
        if (value->kind == TR_JSON_OBJECT) FUZZ_DEMAND(tr_json_find(value, at->key) == at);
        walk_json(at, depth + 1);
    }
    FUZZ_DEMAND(count == value->count);
}

void fuzz_json(const uint8_t *data, size_t size)
{
    tr_json *document = NULL;
    int64_t live = tr_alloc_live();
    if (tr_json_parse((const char *)data, size, "fuzz", &document) == TR_OK)
        walk_json(tr_json_root(document), 1);
    tr_json_destroy(&document);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- command lines ---- */

struct sample {
    bool flag;
    int32_t small;
    int64_t large;
    double real;
    char *text;
    int choice;
    struct tr_string_list words;
    struct tr_int_list numbers;
};
static const struct tr_choice choices[] = {
    {.name = "one", .value = 1}, {.name = "two", .value = 2}, {.name = NULL}};
#define AT(field) offsetof(struct sample, field)
static const struct tr_option sample_options[] = {
    {"file", TR_OPTION_STRING, AT(text), "x", 0, 0, NULL, "a file", .flags = TR_OPTION_POSITIONAL},
    {"flag", TR_OPTION_BOOL, AT(flag), "false", 0, 0, NULL, "yes or no"},
    {"small_number", TR_OPTION_INT32, AT(small), "3", -5, 9, NULL, "a small number"},
    {"large", TR_OPTION_INT64, AT(large), "0", 0, 1e15, NULL, "a large number"},
    {"real", TR_OPTION_DOUBLE, AT(real), "0.5", -1, 1, NULL, "any number"},
    {"choice", TR_OPTION_CHOICE, AT(choice), "one", 0, 0, choices, "one of these"},
    {"words", TR_OPTION_STRING_LIST, AT(words), "", 0, 0, NULL, "words"},
    {"numbers", TR_OPTION_INT_LIST, AT(numbers), "", 0, 100, NULL, "numbers"},
};
#undef AT

/* Each line is a word of a command line. */
void fuzz_options(const uint8_t *data, size_t size)
{
    enum { WORDS = 32 };
    struct sample sample = {0};
    const char *words[WORDS];
    int count = 0;
    int32_t options = TR_OPTION_COUNT(sample_options);
    int64_t live = tr_alloc_live();
    char *text = fuzz_string((struct fuzz_input){data, size}), *rest = text, *line;
    while (count < WORDS && (line = strsep(&rest, "\n"))) words[count++] = line;
    FUZZ_DEMAND(tr_options_defaults(sample_options, options, &sample) == TR_OK);
    if (tr_options_arguments(sample_options, options, count, words, &sample) == TR_OK) {
        char *json = NULL;
        tr_config *tree = NULL;
        FUZZ_DEMAND(sample.small >= -5 && sample.small <= 9 && sample.real >= -1 && sample.real <= 1);
        /* What was read, written as JSON, is YAML that means the same. */
        FUZZ_DEMAND(tr_options_dump(sample_options, options, &sample, &json) == TR_OK);
        if (tr_config_parse(json, strlen(json), "dump", &tree) == TR_OK) {
            struct sample copy = {0};
            char *again = NULL;
            FUZZ_DEMAND(tr_options_defaults(sample_options, options, &copy) == TR_OK);
            FUZZ_DEMAND(tr_options_read(sample_options, options, tree, "", &copy) == TR_OK);
            FUZZ_DEMAND(tr_options_dump(sample_options, options, &copy, &again) == TR_OK);
            FUZZ_DEMAND(strcmp(json, again) == 0);
            tr_options_release(sample_options, options, &copy);
            tr_free(again);
        }
        tr_config_destroy(&tree);
        tr_free(json);
    }
    tr_options_release(sample_options, options, &sample);
    free(text);
    FUZZ_DEMAND(tr_alloc_live() == live);
}

/* ---- notes of processes to their launcher ---- */

void fuzz_notes(const uint8_t *data, size_t size)
{
    struct cli_note note;
    char *text = fuzz_string((struct fuzz_input){data, size}), *rest = text, *line;
    while ((line = strsep(&rest, "\n")))
        if (cli_note_read(line, "token", &note)) FUZZ_DEMAND((unsigned)note.kind < CLI_NOTE_KINDS);
    free(text);
}

/* ---- numbers of examples ---- */

/* Lines of so many numbers as the first byte says. What is read is a number or missing, and a line that names
 * columns is none of numbers. */
void fuzz_values(const uint8_t *data, size_t size)
{
    enum { MOST = 8 };
    struct fuzz_input input = {data, size};
    int32_t count = 1 + (int32_t)fuzz_choice(&input, MOST);
    struct tr_lines lines = tr_lines_of("fuzz", (const char *)input.data, input.size);
    int64_t live = tr_alloc_live();
    while (tr_lines_next(&lines)) {
        float values[MOST];
        char separator = tr_csv_guess(lines.line, lines.length);
        bool names = tr_csv_is_names(&lines, separator, NULL);
        if (tr_csv_values(&lines, separator, count, NULL, values) != TR_OK) continue;
        FUZZ_DEMAND(!names);
        for (int32_t i = 0; i < count; i++) FUZZ_DEMAND(!isinf(values[i]));
    }
    FUZZ_DEMAND(tr_alloc_live() == live);
}
