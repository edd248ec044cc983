/* trireme generate: its options are those of the library, the prompt stands in front, and a terminal sees no
 * control characters while a pipe gets them. And trireme predict of a network that writes texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/pairs.h"
#include "cli/session.h"
#include "trireme/predict.h"

enum { PAIRS = 6 };
static const char *const pairs[PAIRS][2] = {{"abc", "ca"}, {"bca", "ab"}, {"cab", "bc"},
                                            {"aab", "ba"}, {"bbc", "cb"}, {"acb", "ba"}};

/* Two networks: one that writes letters of two bytes and control characters, too; and one that writes one
   text from another. */
static int make(void **state)
{
    if (place_make(state) != 0) return -1;
    write_text("odd.txt",
               "ab\303\244\033b\303\274aa\303\244\303\244b\033\303\274 ab\303\244\033a\303\274b\n");
    write_text("odd.yaml",
               "name: odd\ndata: {train: {corpus: {path: odd.txt, unit: characters, window: 4}}}\n"
               "layers: [{embedding: 4}, {dense: 9}]\n"
               "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 4}\n");
    char table[256] = "long,short\n";
    for (int i = 0; i < PAIRS; i++)
        snprintf(table + strlen(table), sizeof table - strlen(table), "%s,%s\n", pairs[i][0], pairs[i][1]);
    write_text("pairs.csv", table);
    write_text("pairs.yaml", "name: pairs\n" PAIRS_DATA "layers:\n"
                             "  - embedding: {width: 4, from: long}\n"
                             "  - position: {length: 9, name: memory}\n"
                             "  - embedding: {width: 4, from: short}\n"
                             "  - position: {length: 6, name: words}\n"
                             "  - cross_attention: {heads: 1, with: memory}\n"
                             "  - add: {with: words}\n"
                             "  - dense: {units: 5}\n"
                             "optimizer: {rule: adam, rate: 0.05}\ntrain: {batch: 6, steps: 60}\n");
    expect_exit(0, "train", "odd.yaml", "--quiet");
    expect_exit(0, "train", "pairs.yaml", "--quiet");
    return 0;
}

struct text {
    char bytes[4096];
    size_t length;
};

static int keep(void *user, const char *piece, size_t length)
{
    struct text *text = user;
    assert_true(text->length + length < sizeof text->bytes);
    memcpy(text->bytes + text->length, piece, length);
    text->bytes[text->length += length] = '\0';
    return 0;
}

/* What the library generates, after `before` and with a line feed at the end. */
static const char *generated(const char *path, const char *before,
                             const struct tr_generate_settings *settings)
{
    static struct text text;
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    text.length = 0;
    predict.checkpoint = path;
    keep(&text, before, strlen(before));
    assert_int_equal(tr_predictor_create(&predict, &predictor), TR_OK);
    assert_int_equal(tr_predictor_generate(predictor, settings, keep, &text), TR_OK);
    tr_predictor_destroy(&predictor);
    keep(&text, "\n", 1);
    return text.bytes;
}

static void expect_text(const char *expected, struct session *session, int code)
{
    if (code != 0 || strcmp(session->text[0], expected) != 0) session_show(session);
    assert_int_equal(code, 0);
    assert_string_equal(session->text[0], expected);
    session_release(session);
}

#define SETTINGS(...)                                                                                        \
    (&(const struct tr_generate_settings){.size = sizeof(struct tr_generate_settings), __VA_ARGS__})

static void options_are_those_of_the_library(void **state)
{
    static const char run_name[] = "runs/odd";
    struct session session;
    (void)state;
    expect_text(generated(run_name, "", SETTINGS(.tokens = 500, .temperature = 1, .seed = 1)), &session,
                run(&session, "generate", run_name, NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 1, .temperature = 1, .seed = 1)), &session,
                run(&session, "generate", run_name, "--tokens", "1", NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 0)), &session,
                run(&session, "generate", run_name, "-n", "90", "--seed", "0", NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 0, .seed = 1)), &session,
                run(&session, "generate", run_name, "-n", "90", "--temperature", "0", NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 0.5, .seed = 1)), &session,
                run(&session, "generate", run_name, "-n", "90", "--temperature", "0.5", NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 1, .top_k = 2)),
                &session, run(&session, "generate", run_name, "-n", "90", "--top-k", "2", NULL));
    expect_text(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 1, .context = 1)),
                &session, run(&session, "generate", run_name, "-n", "90", "--context", "1", NULL));
    /* The options make a difference. */
    const char *text = generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 1));
    char first[512];
    snprintf(first, sizeof first, "%s", text);
    assert_string_not_equal(generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 0)),
                            first);
    assert_string_not_equal(
        generated(run_name, "", SETTINGS(.tokens = 90, .temperature = 1, .seed = 1, .top_k = 2)), first);
}

static void the_prompt_stands_in_front(void **state)
{
    static const char run_name[] = "runs/odd", prompt[] = "b\303\244";
    const struct tr_generate_settings *settings =
        SETTINGS(.prompt = prompt, .tokens = 40, .temperature = 1, .seed = 1);
    struct session session;
    (void)state;
    expect_text(generated(run_name, prompt, settings), &session,
                run(&session, "generate", run_name, "-n", "40", "--prompt", prompt, NULL));
    expect_text(generated(run_name, "", settings), &session,
                run(&session, "generate", run_name, "-n", "40", "--prompt", prompt, "--no-echo", NULL));
    int code = run(&session, "generate", run_name, "--prompt", "xyz", NULL);
    expect_error(2, "x", &session, code);
    session_release(&session);
    code = run(&session, "generate", run_name, "--source", "ab", NULL);
    expect_error(2, "source", &session, code);
    session_release(&session);
}

/* Of 500 tokens some are control characters, which a terminal shows as '?', and letters stay whole. */
static void terminals_are_spared(void **state)
{
    struct session session;
    char expected[4096] = "";
    size_t length = 0;
    (void)state;
    const char *raw = generated("runs/odd", "", SETTINGS(.tokens = 500, .temperature = 1, .seed = 1));
    assert_non_null(strchr(raw, '\033'));
    for (; *raw; raw++) {
        if (*raw == '\n') expected[length++] = '\r'; /* as terminals do */
        expected[length++] = *raw;
        if (*raw == '\033') expected[length - 1] = '?';
    }
    int code = run_with(&session, (struct setup){.columns = 80}, "generate", "runs/odd", NULL);
    expect_text(expected, &session, code);
}

/* A text from another one is the likeliest unless a temperature is given. */
static void other_texts_are_sources(void **state)
{
    static const char run_name[] = "runs/pairs";
    struct session session;
    (void)state;
    expect_text(
        generated(run_name, "", SETTINGS(.source = "abc", .tokens = 500, .temperature = 0, .seed = 1)),
        &session, run(&session, "generate", run_name, "--source", "abc", NULL));
    expect_text(
        generated(run_name, "", SETTINGS(.source = "bbc", .tokens = 5, .temperature = 9, .seed = 3)),
        &session,
        run(&session, "generate", run_name, "--source", "bbc", "-T", "9", "-s", "3", "-n", "5", NULL));
    int code = run(&session, "generate", run_name, NULL);
    expect_error(2, "source", &session, code);
    session_release(&session);
}

/* What the library makes of the texts, each in this form: of the number, the text, what is written of it, and
   what is right. */
static const char *translated(const char *const *text, int count, const int *number, const char *form)
{
    static char out[1024];
    struct tr_predict_settings predict = TR_PREDICT_SETTINGS_INIT;
    tr_predictor *predictor;
    predict.checkpoint = "runs/pairs";
    out[0] = '\0';
    assert_int_equal(tr_predictor_create(&predict, &predictor), TR_OK);
    for (int i = 0; i < count; i++) {
        char *written, digits[16];
        assert_int_equal(tr_predictor_translate(predictor, text[i], &written), TR_OK);
        snprintf(digits, sizeof digits, "%d", number[i]);
        for (const char *at = form; *at; at++) {
            const char *part = *at == '#'   ? digits
                               : *at == '<' ? text[i]
                               : *at == '>' ? written
                               : *at == '!' ? pairs[number[i]][1]
                                            : NULL;
            size_t length = strlen(out);
            snprintf(out + length, sizeof out - length, "%.*s", part ? 64 : 1, part ? part : at);
        }
        tr_text_free(written);
    }
    tr_predictor_destroy(&predictor);
    return out;
}

static void predictions_are_texts(void **state)
{
    static const char *const lines[] = {"bca", "abcz", "cab"}, *const chosen[] = {"bbc", "acb", "bca"};
    static const int numbers[] = {0, 1, 2}, examples[] = {4, 5, 1};
    const struct setup input = {.input = "bca\nabcz\ncab\n"};
    struct session session;
    (void)state;
    expect_text(translated(lines, 3, numbers, ">\n"), &session,
                run_with(&session, input, "predict", "runs/pairs", NULL));
    expect_text(translated(lines, 3, numbers, "{\"example\":#,\"input\":\"<\",\"text\":\">\"}\n"), &session,
                run_with(&session, input, "predict", "runs/pairs", "--json", NULL));
    expect_text(translated(lines, 2, numbers, "{\"example\":#,\"input\":\"<\",\"text\":\">\"}\n"), &session,
                run(&session, "predict", "runs/pairs", "-x", "bca", "-x", "abcz", "--json", NULL));
    int code = run_with(&session, (struct setup){.input = ""}, "predict", "runs/pairs", NULL);
    expect_error(2, "nothing to predict: standard input has no lines; give --text LINE, --set-name", &session,
                 code);
    session_release(&session);
    /* Examples of a set have a right answer, too. */
    expect_text(translated(chosen, 3, examples, "train[#]: >\n"), &session,
                run(&session, "predict", "runs/pairs", "--set-name", "train", "--index", "4-,1", NULL));
    expect_text(
        translated(chosen, 3, examples,
                   "{\"example\":#,\"input\":\"train[#]\",\"text\":\">\",\"label\":\"!\"}\n"),
        &session,
        run(&session, "predict", "runs/pairs", "--set-name", "train", "--index", "4-,1", "--json", NULL));
}

/* Nobody waits for text without end that nobody reads. */
static void readers_may_leave(void **state)
{
    static const char *const arguments[] = {"generate", "runs/odd", "-n", "1000000000", NULL};
    struct session session;
    (void)state;
    session_start(&session, &(struct setup){.arguments = arguments, .closed_output = true});
    const int code = session_end(&session);
    expect_error(1, "standard output: Broken pipe", &session, code);
    session_release(&session);
    /* Nor are texts without end written of others. */
    static const char *const endless[] = {
        "-c", "yes abc | head -n 9000000 | \"$0\" predict runs/pairs --no-data-cache | head -n 1",
        TRIREME_PROGRAM, NULL};
    session_start(&session, &(struct setup){.program = "/bin/sh", .arguments = endless});
    assert_int_equal(session_end(&session), 0);
    assert_string_equal(strchr(session.text[0], '\n'), "\n");
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_those_of_the_library),
        cmocka_unit_test(the_prompt_stands_in_front),
        cmocka_unit_test(terminals_are_spared),
        cmocka_unit_test(other_texts_are_sources),
        cmocka_unit_test(predictions_are_texts),
        cmocka_unit_test(readers_may_leave),
    };
    return cmocka_run_group_tests(tests, make, place_remove);
}
