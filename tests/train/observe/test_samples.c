/* Sentences for TensorBoard: whatever signs they have, Markdown shows them as they are. */
#include "support/event_files.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static int make(void **state)
{
    scratch_place_make(state);
    scratch_write_text("words.tsv", "a*b <c> x|y\tgood!\nplain [text]\tso_so\n");
    scratch_write_text("words.yaml", "name: words\ndata: {train: {text: {path: words.tsv}}}\n"
                                     "layers: [{embedding: 3}, last, {dense: 2}]\n"
                                     "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 2, steps: 1}\n");
    return 0;
}

static void expect_row(const char *table, const char *row)
{
    if (!strstr(table, row)) fail_msg("\"%s\" lacks \"%s\"", table, row);
}

static void signs_are_shown_literally(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    struct event_file file;
    char model[SCRATCH_PATH], board[SCRATCH_PATH], table[1024];
    job_begin(&job, scratch_join(model, scratch_place, "words.yaml"));
    job.settings.tensorboard = scratch_join(board, scratch_place, "board");
    job_outcome(&job, &outcome);
    must_train(outcome.status);
    event_file_of(board, 0, 1, &file);
    const char *const when[] = {"samples before training", "samples after training"};
    for (int i = 0; i < 2; i++) {
        const Tensorboard__Summary__Value *value = event_file_find(&file, when[i], i);
        assert_non_null(value);
        ProtobufCBinaryData text = value->tensor->string_val[0];
        snprintf(table, sizeof table, "%.*s", (int)text.len, (const char *)text.data);
        static const char head[] = "| sentence | label | prediction |\n|---|---|---|\n| ";
        assert_memory_equal(table, head, sizeof head - 1);
        expect_row(table, "\n| a\\*b &#60;c&#62; x&#124;y  | good\\! | ");
        expect_row(table, "\n| plain \\[text\\]  | so\\_so | ");
        int lines = 0;
        for (const char *at = table; *at; at++) lines += *at == '\n';
        assert_int_equal(lines, 4);
    }
    event_file_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signs_are_shown_literally)};
    return cmocka_run_group_tests(tests, make, scratch_place_remove);
}
