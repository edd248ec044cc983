#include "cli/use/animals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const char *kind_of(int row)
{
    return row % 3 == 0 ? "cat" : row % 3 == 1 ? "big, \"old\" dog" : "owl";
}

static void write_animals(void)
{
    char text[64 * ROWS], *at = text + sprintf(text, "height;weight;kind\n");
    for (int i = 0; i < ROWS; i++) {
        char height[8];
        sprintf(height, i % 10 == 4 ? "NA" : "%d", i % 3 * 4);
        at += sprintf(at, "%s;%d;%s\n", height, 1 + i % 3 * 3, kind_of(i));
    }
    write_text("animals.csv", text);
}

static const char animals[] =
    "name: animals\n"
    "data:\n"
    "  train: {csv: {path: animals.csv, label_columns: kind, missing: mean, standardize: true}}\n"
    "  test: {csv: {path: animals.csv, label_columns: kind, missing: mean, standardize: true}}\n"
    "layers: [{dense: 3}]\noptimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 30, steps: 60}\n";

struct tr_file_content content_of(const char *path)
{
    struct tr_file_content content;
    if (tr_file_read(path, 1 << 24, &content) != TR_OK) fail_msg("%s", tr_error_message());
    return content;
}

void expect_content(const char *path, const char *expected)
{
    struct tr_file_content content = content_of(path);
    assert_string_equal(content.data, expected);
    tr_file_content_free(&content);
}

char *next_line(char **at)
{
    char *line = strsep(at, "\n");
    assert_non_null(line);
    return line;
}

void expect_output(struct session *session, int code, const char *part)
{
    if (code != 0 || !strstr(session->text[0], part)) session_show(session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session->text[0], part));
    session_release(session);
}

void expect_refusal(const char *part, const char *const arguments[])
{
    struct session session;
    session_start(&session, &(struct setup){.arguments = arguments});
    int code = session_end(&session);
    expect_error(2, part, &session, code);
    session_release(&session);
}

int animals_make(void **state)
{
    if (place_make(state) != 0) return -1;
    write_animals();
    write_text("animals.yaml", animals);
    expect_exit(0, "train", "animals.yaml");
    return 0;
}
