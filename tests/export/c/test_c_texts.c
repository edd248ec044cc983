/* C files of networks that go on with texts: what compilers make of them writes, token for token, the texts
 * of the trainer, beyond the tokens that the network tells apart, for all kinds of tokens. */
#include "base/alloc.h"
#include "export/c/program.h"
#include "support/training.h"
#include "trireme/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

typedef int32_t next_token(const char **text);
typedef int32_t all_tokens(const char *text, int32_t *tokens);
typedef int32_t text_of_token(int32_t token, char *bytes);
typedef int take_token(void *user, int32_t token);
typedef int32_t generate_text(const int32_t *prompt, int32_t length, int32_t count, float temperature,
                              int32_t top_k, uint64_t seed, take_token *take, void *user, float *workspace);

#define TOKENS    70
#define ROOM      4096
#define WORKSPACE (1 << 20)

struct text {
    char bytes[ROOM];
    size_t length;
    text_of_token *text_of; /* of the program */
    int left;               /* tokens until it is ended */
};

static int hear(void *user, const char *piece, size_t length)
{
    struct text *text = user;
    assert_true(text->length + length < ROOM);
    memcpy(text->bytes + text->length, piece, length);
    text->length += length;
    return 0;
}

static int take(void *user, int32_t token)
{
    struct text *text = user;
    char piece[512];
    hear(text, piece, (size_t)text->text_of(token, piece));
    return --text->left == 0;
}

/* How a text is drawn. */
static const struct way {
    float temperature;
    int32_t top_k;
    uint64_t seed;
} ways[] = {
    {0, 0, 1}, {1, 0, 1}, {0.7f, 0, 0x123456789abcdef}, {2, 3, 5}, {1, 1, 7},
};

struct program {
    void *object;
    next_token *next; /* NULL with subwords, which are found all at once */
    all_tokens *all;
    text_of_token *text_of;
    generate_text *generate;
    float *workspace;
};

static void open_program(const char *compiler, const char *path, bool subwords, struct program *program)
{
    program->object = program_open(compiler, path);
    program->next = subwords ? NULL : (next_token *)program_function(program->object, "net_token");
    program->all = subwords ? (all_tokens *)program_function(program->object, "net_tokens") : NULL;
    program->text_of = (text_of_token *)program_function(program->object, "net_text");
    program->generate = (generate_text *)program_function(program->object, "net_generate");
    program->workspace = tr_alloc(WORKSPACE, sizeof *program->workspace);
    assert_non_null(program->workspace);
    memset(program->workspace, 0xff, WORKSPACE * sizeof *program->workspace);
}

static void close_program(struct program *program)
{
    tr_free(program->workspace);
    program_close(program->object);
}

/* The tokens of a text. */
static int32_t read_text(const struct program *program, const char *text, int32_t *tokens)
{
    int32_t count = 0;
    if (program->all) return program->all(text, tokens);
    while ((tokens[count] = program->next(&text)) >= 0) {
        assert_true(tokens[count] > 0); /* it is known */
        count++;
    }
    return count;
}

static void compare(tr_predictor *predictor, const struct program *program, const char *what,
                    const char *prompt, const struct way *way)
{
    struct tr_generate_settings settings = TR_GENERATE_SETTINGS_INIT;
    struct text expected = {.left = 0}, got = {.text_of = program->text_of, .left = TOKENS};
    int32_t tokens[256];
    settings.prompt = prompt;
    settings.tokens = TOKENS;
    settings.temperature = (double)way->temperature;
    settings.top_k = way->top_k;
    settings.seed = way->seed;
    must_train(tr_predictor_generate(predictor, &settings, hear, &expected));
    int32_t length = read_text(program, prompt, tokens);
    if (program->all)
        assert_true(4 * length < 3 * (int32_t)strlen(prompt)); /* many tokens have several bytes */
    int32_t count = program->generate(tokens, length, TOKENS + 5, way->temperature, way->top_k, way->seed,
                                      take, &got, program->workspace);
    assert_int_equal(count, TOKENS); /* `take` ended it */
    if (got.length != expected.length || memcmp(got.bytes, expected.bytes, got.length) != 0)
        fail_msg("%s, temperature %g, seed %d: the program writes\n%.*s\nand the trainer\n%.*s", what,
                 (double)way->temperature, (int)way->seed, (int)got.length, got.bytes, (int)expected.length,
                 expected.bytes);
}

static const char attending[] =
    "layers=[{embedding: {width: 12, name: words}}, {position: {length: 12, name: "
    "x}}, layer_norm, {attention: {heads: 3, causal: true}}, {add: x}, "
    "{unembedding: words}]";

static const struct {
    const char *name, *prompt;
    const char *set[4];
} cases[] = {
    {"characters, attention and LSTM", "the first", {NULL}},
    {"a prompt longer than the context", "the film is one of the best", {attending}},
    {"bytes",
     "a\tb \xc3\xa9",
     {"data.train.corpus.unit=bytes", "data.validation.corpus.unit=bytes", "data.test.corpus.unit=bytes",
      attending}},
    {"words",
     " The film  is",
     {"data.train.corpus.unit=words", "data.train.corpus.lower_case=true",
      "data.validation.corpus.unit=words", attending}},
    {"rotary positions",
     "it is",
     {"layers=[{embedding: {width: 12, name: words}}, {attention: {heads: 3, causal: true, rotary: 50}}, "
      "{add: words}, rms_norm, {dense: 80}]"}},
    {"subwords",
     "the film is  one of\n <|x|>the best, it's",
     {"data.train.corpus.unit=bpe", "data.train.corpus.tokenizer=tokenizer.json", attending}},
    {"subwords of whole pieces, without merges",
     "the film is  one of\n <|x|>the best, it's",
     {"data.train.corpus.unit=bpe", "data.train.corpus.tokenizer=whole.json", attending}},
    {"no end of the context", "it is", {"layers=[{embedding: 12}, {gru: 9}, {lstm: 9}, {dense: 70}]"}},
};

static void export_program(const char *run, const char *path)
{
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    settings.checkpoint = run;
    settings.name = "net";
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, "c", path));
    tr_exporter_destroy(&exporter);
}

/* The number that the file defines for NET_`name`. */
static long defined(const char *path, const char *name)
{
    struct tr_file_content content;
    char definition[64];
    must_train(tr_file_read(path, 64 << 20, &content));
    snprintf(definition, sizeof definition, "#define NET_%s ", name);
    const char *at = strstr(content.data, definition);
    if (!at) fail_msg("%s: no %s", path, definition);
    const long number = strtol(at + strlen(definition), NULL, 10);
    tr_file_content_free(&content);
    return number;
}

/* Who asks for the text of a token gives room for NET_TEXT bytes. */
static void expect_room(const struct program *program, const char *path, const char *what)
{
    const long room = defined(path, "TEXT"), tokens = defined(path, "VOCABULARY");
    int32_t longest = 0;
    char bytes[512];
    for (int32_t i = 0; i < tokens; i++) {
        const int32_t length = program->text_of(i, bytes);
        if (length > longest) longest = length;
    }
    if (longest < 1 || longest > room)
        fail_msg("%s: a text has %d bytes, the file says %ld at most", what, (int)longest, room);
}

/* Of the training text, where the jobs look for it. */
static void train_tokenizer(void)
{
    static const char *const special[] = {"<|x|>"};
    struct tr_tokenizer_settings settings = TR_TOKENIZER_SETTINGS_INIT;
    char from[SCRATCH_PATH], to[SCRATCH_PATH];
    const char *const paths[] = {scratch_join(from, family_place, "train.tsv")};
    tr_tokenizer *tokenizer;
    settings.tokens = 400;
    settings.special = special;
    settings.special_count = 1;
    settings.paths = paths;
    settings.path_count = 1;
    must_train(tr_tokenizer_train(&settings, &tokenizer));
    must_train(tr_tokenizer_save(tokenizer, scratch_join(to, family_place, "tokenizer.json")));
    tr_tokenizer_destroy(&tokenizer);
    /* The same tokens, of which those of several bytes stand for whole pieces alone. */
    struct tr_file_content content;
    must_train(tr_file_read(to, 1 << 20, &content));
    char *ignores = strstr(content.data, "\"ignore_merges\": false"),
         *merges = strstr(content.data, "\"merges\": [");
    assert_non_null(ignores);
    assert_non_null(merges);
    memcpy(ignores, "\"ignore_merges\":  true", 22);
    const char *end = strstr(merges, "\n]");
    assert_non_null(end);
    char *whole = tr_format("%.*s%s", (int)(merges + 11 - content.data), content.data, end);
    assert_non_null(whole);
    must_train(
        tr_file_write_atomic(NULL, scratch_join(to, family_place, "whole.json"), whole, strlen(whole)));
    tr_free(whole);
    tr_file_content_free(&content);
}

static void test_texts_are_those_of_the_trainer(void **state)
{
    (void)state;
    train_tokenizer();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job job;
        struct outcome outcome;
        struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
        tr_predictor *predictor;
        char run[SCRATCH_PATH], path[SCRATCH_PATH], model[SCRATCH_PATH], name[16];
        snprintf(name, sizeof name, "run%d", (int)i);
        scratch_join(run, family_place, name);
        snprintf(name, sizeof name, "net%d.c", (int)i);
        scratch_join(path, family_place, name);
        job_begin(&job, scratch_join(model, family_place, "language.yaml"));
        for (int k = 0; k < 4 && cases[i].set[k]; k++) job_set(&job, cases[i].set[k]);
        job_set(&job, "train.steps=12");
        job_set(&job, "train.evaluate_every=0");
        job.settings.out = run;
        job_outcome(&job, &outcome);
        if (outcome.status != TR_OK) fail_msg("%s: %s", cases[i].name, outcome.message);
        export_program(run, path);
        predict.checkpoint = run;
        predict.threads = 1;
        must_train(tr_predictor_create(&predict, &predictor));
        for (const char *const *compiler = program_compilers(); *compiler; compiler++) {
            struct program program;
            open_program(*compiler, path, strncmp(cases[i].name, "subwords", 8) == 0, &program);
            expect_room(&program, path, cases[i].name);
            for (size_t k = 0; k < sizeof ways / sizeof ways[0]; k++)
                compare(predictor, &program, cases[i].name, cases[i].prompt, &ways[k]);
            close_program(&program);
        }
        tr_predictor_destroy(&predictor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts_are_those_of_the_trainer),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
