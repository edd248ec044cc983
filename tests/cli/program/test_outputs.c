/* Files that commands are told to write: they are there at the end, and a command that cannot write one says
 * which and fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/session.h"

enum { WORDS = 14 };

/* FILE stands for the file, whose name ends as the last word says. */
static const struct {
    const char *words[WORDS], *ending, *begins;
} cases[] = {
    {{"plan", "tiny.yaml", "--workers", "1", "--seconds", "0", "--json", "FILE"}, ".json", "{"},
    {{"plan", "tiny.yaml", "--workers", "1", "--seconds", "0", "--page", "FILE"}, ".html", "<!DOCTYPE html>"},
    {{"plan", "tiny.yaml", "--workers", "1", "--seconds", "0", "--picture", "FILE"}, ".svg", "<svg"},
    {{"compare", "tiny.yaml", "--strategies", "allreduce", "--workers", "1", "--steps", "2", "--json",
      "FILE"},
     ".json",
     "{"},
    {{"compare", "tiny.yaml", "--strategies", "allreduce", "--workers", "1", "--steps", "2", "--csv", "FILE"},
     ".csv",
     "strategy,"},
    {{"report", "run", "--out", "FILE"}, ".html", "<!DOCTYPE html>"},
    {{"receipt", "run", "--output", "FILE"}, ".json", "{"},
    {{"predict", "run", "--set-name", "train", "--output", "FILE"}, ".csv", "example,"},
    {{"predict", "run", "--set-name", "train", "--output", "FILE"}, ".npy", "\x93NUMPY"},
    {{"predict", "run", "--set-name", "train", "--output", "FILE"}, ".jsonl", "{"},
    {{"export", "run", "--onnx", "FILE"}, ".onnx", "\x08\x08"},
    {{"export", "run", "--torch", "FILE"}, ".py", "\"\"\""},
    {{"export", "run", "--c", "FILE"}, ".c", "/*"},
    {{"export", "run", "--npz", "FILE"}, ".npz", "PK"},
    {{"export", "run", "--safetensors", "FILE"}, ".safetensors", ""},
    {{"train", "tiny.yaml", "--out", "other", "--overwrite", "--trace", "FILE"}, ".json", "{"},
    {{"data", "tokenizer", "words.txt", "--tokens", "260", "--out", "FILE"}, ".json", "{"},
};

static int set_up(void **state)
{
    if (place_make(state) != 0) return -1;
    write_text("words.txt", "a word and a word and one more word\n");
    expect_exit(0, "train", "tiny.yaml", "--out", "run", "--receipt");
    return 0;
}

static int run_case(struct session *session, size_t i, const char *path)
{
    const char *word[WORDS];
    for (int k = 0; k < WORDS; k++)
        word[k] = cases[i].words[k] && strcmp(cases[i].words[k], "FILE") == 0 ? path : cases[i].words[k];
    return run(session, word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7], word[8],
               word[9], word[10], word[11], word[12], word[13], NULL);
}

static void files_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        char path[32], head[32] = "";
        snprintf(path, sizeof path, "written_%zu%s", i, cases[i].ending);
        int code = run_case(&session, i, path);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        session_release(&session);
        FILE *file = fopen(path, "rb");
        if (!file) fail_msg("case %zu, %s: no file", i, cases[i].words[0]);
        const size_t length = fread(head, 1, sizeof head - 1, file);
        fclose(file);
        if (length < strlen(cases[i].begins) || memcmp(head, cases[i].begins, strlen(cases[i].begins)) != 0)
            fail_msg("case %zu, %s: begins with %s", i, cases[i].words[0], head);
    }
}

static void files_that_cannot_be_written_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        char path[32];
        snprintf(path, sizeof path, "words.txt/file_%zu%s", i, cases[i].ending);
        int code = run_case(&session, i, path);
        if ((code != 1 && code != 2) || !strstr(session.text[1], path)) session_show(&session);
        assert_true(code == 1 || code == 2);
        assert_non_null(strstr(session.text[1], path));
        session_release(&session);
    }
}

/* Nothing more can be written, as on a full disk: the command does not say that all is well. */
static void files_that_end_early_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char script[] = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
        const char *word[WORDS + 4] = {"-c", script, TRIREME_PROGRAM};
        struct setup setup = {.program = "/bin/sh", .arguments = word};
        struct session session;
        char path[32];
        /* These write other files first. */
        if (strcmp(cases[i].words[0], "train") == 0 || strcmp(cases[i].words[0], "compare") == 0) continue;
        snprintf(path, sizeof path, "full_%zu%s", i, cases[i].ending);
        for (int k = 0; k < WORDS && cases[i].words[k]; k++)
            word[3 + k] = strcmp(cases[i].words[k], "FILE") == 0 ? path : cases[i].words[k];
        session_start(&session, &setup);
        int code = session_end(&session);
        if (code != 1 || !strstr(session.text[1], path)) session_show(&session);
        assert_int_equal(code, 1);
        assert_non_null(strstr(session.text[1], path));
        assert_int_equal(access(path, F_OK), -1);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_written),
        cmocka_unit_test(files_that_cannot_be_written_are_named),
        cmocka_unit_test(files_that_end_early_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, place_remove);
}
