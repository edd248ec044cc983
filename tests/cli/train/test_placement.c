/* train --placement and --profile: who computes which part, before the run, and where its time went, after
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/session.h"

/* The cells of line `number` of a text, which two blanks part, with "|" between them; in static storage. */
static const char *cells_of(const char *text, int number)
{
    static char cells[512];
    size_t length = 0;
    for (; number > 0; number--) {
        text = strchr(text, '\n');
        assert_non_null(text);
        text++;
    }
    for (text += strspn(text, " "); *text && *text != '\n' && length + 1 < sizeof cells;) {
        if (text[0] == ' ' && text[1] == ' ') {
            text += strspn(text, " ");
            cells[length++] = '|';
        } else {
            cells[length++] = *text++;
        }
    }
    cells[length] = '\0';
    return cells;
}

/* Cells of a line from the first that matters: without rank and host, and without the kind of processor. */
static void expect_row(const char *text, int rank, const char *role, const char *work, const char *figures)
{
    char begin[64];
    const char *cells = cells_of(text, 2 + rank);
    snprintf(begin, sizeof begin, "%d|", rank);
    assert_memory_equal(cells, begin, strlen(begin));
    const char *second = strchr(cells + strlen(begin), '|');
    if (!second || strncmp(second + 1, role, strlen(role)) != 0 || !strstr(second, work) ||
        !strstr(second, figures))
        fail_msg("rank %d is no %s of %s with %s: %s", rank, role, work, figures, cells);
}

static const char heads[] =
    "rank|host|role|computes on|microbatches|layers|memory|parameters|updates|held on";

static void one_process_has_all(void **state)
{
    (void)state;
    struct session session;
    int code =
        run(&session, "train", "tiny.yaml", "--out", "one", "--steps", "1", "--quiet", "--placement", NULL);
    assert_int_equal(code, 0);
    assert_int_equal(strncmp(session.text[0], "allreduce strategy, 1 process\n", 30), 0);
    assert_string_equal(cells_of(session.text[0], 1), heads);
    expect_row(session.text[0], 0, "worker|cpu (", "|0 to 2|dense1 to dense2|", "|323|");
    session_release(&session);
    /* Among lines of JSON it has no place. */
    code = run(&session, "train", "tiny.yaml", "--out", "two", "--steps", "1", "--quiet", "--placement",
               "--log", "json", NULL);
    assert_int_equal(code, 0);
    assert_int_equal(session.text[0][0], '{');
    assert_int_equal(strncmp(session.text[1], "allreduce strategy, 1 process\n", 30), 0);
    session_release(&session);
}

static void several_have_parts(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "launch", "-n", "3", "train", "tiny.yaml", "-o", "served", "--steps", "1",
                   "--quiet", "--placement", "--strategy", "parameter-server,mode=sync", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_int_equal(strncmp(session.text[0], "parameter-server strategy, 3 processes\n", 39), 0);
    expect_row(session.text[0], 0, "worker|cpu (", "|0 to 1|dense1 to dense2|", "|323|0|cpu (");
    expect_row(session.text[0], 1, "worker|cpu (", "|2|dense1 to dense2|", "|323|0|cpu (");
    expect_row(session.text[0], 2, "server|nothing|", "|none|none|", "|323|");
    session_release(&session);
    /* A named cut: one that is chosen follows measured times, which differ from run to run. */
    code = run(&session, "launch", "-n", "2", "train", "tiny.yaml", "-o", "stages", "--steps", "1", "--quiet",
               "--placement", "--strategy", "pipeline,cut=dense2", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    expect_row(session.text[0], 0, "stage|cpu (", "|0 to 2|dense1 to dropout1|", "|296|");
    expect_row(session.text[0], 1, "stage|cpu (", "|0 to 2|dense2|", "|27|");
    session_release(&session);
}

/* The object of an event among lines of JSON; release with json_decref(). */
static json_t *event_of(const char *text, const char *name)
{
    json_t *found = NULL;
    for (const char *line = text; *line && !found; line = strchr(line, '\n') + 1) {
        json_t *object = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        if (!object) fail_msg("no JSON: %s", line);
        if (strcmp(json_string_value(json_object_get(object, "event")), name) == 0)
            found = json_incref(object);
        json_decref(object);
    }
    if (!found) fail_msg("no event \"%s\"", name);
    return found;
}

/* Of each layer the calls, and of the first one the operations of the product: 2 * 36 * 8 of an example. */
static void profiles_are_told(void **state)
{
    (void)state;
    static const char *const names[] = {"dense1", "dropout1", "dense2"};
    static const int parameters[] = {8 * 37, 0, 3 * 9};
    static const char *const causes[] = {"forward", "backward",   "update",     "communication", "waiting",
                                         "input",   "evaluation", "checkpoint", "other",         "awaited"};
    struct session session;
    int code = run(&session, "train", "tiny.yaml", "--out", "told", "--steps", "5", "--quiet", "--profile",
                   "--log", "json", "-t", "1", NULL);
    assert_int_equal(code, 0);
    json_t *profile = event_of(session.text[0], "profile"), *layers = json_object_get(profile, "layers"),
           *ranks = json_object_get(profile, "ranks");
    assert_true(json_number_value(json_object_get(profile, "peak")) > 0);
    assert_int_equal(json_array_size(layers), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *layer = json_array_get(layers, i);
        assert_string_equal(json_string_value(json_object_get(layer, "name")), names[i]);
        assert_true(json_integer_value(json_object_get(layer, "calls")) >= 5);
        assert_int_equal(json_integer_value(json_object_get(layer, "parameters")), parameters[i]);
        assert_true(json_number_value(json_object_get(layer, "forward_seconds")) > 0);
        assert_true(json_number_value(json_object_get(layer, "backward_seconds")) > 0);
        assert_true(json_number_value(json_object_get(layer, "backward_operations")) > 0);
        assert_true(json_integer_value(json_object_get(layer, "output_bytes")) > 0);
    }
    assert_float_equal(json_number_value(json_object_get(json_array_get(layers, 0), "forward_operations")),
                       5 * 10 * 2 * 36 * 8, 0);
    assert_int_equal(json_array_size(ranks), 1);
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        assert_true(json_is_number(json_object_get(json_array_get(ranks, 0), causes[i])));
    assert_true(json_number_value(json_object_get(json_array_get(ranks, 0), "forward")) > 0);
    json_decref(profile);
    session_release(&session);
    /* For people it follows the summary; without being asked for there is none. */
    code = run(&session, "train", "tiny.yaml", "--out", "people", "--steps", "5", "--profile", NULL);
    assert_int_equal(code, 0);
    const char *layer = strstr(session.text[0], "\nlayer ");
    assert_non_null(layer);
    assert_true(strstr(session.text[0], "\nhash ") < layer);
    session_release(&session);
    code =
        run(&session, "train", "tiny.yaml", "--out", "quiet", "--steps", "5", "--profile", "--quiet", NULL);
    assert_int_equal(code, 0);
    assert_int_equal(session.size[0], 0);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", "--out", "plain", "--steps", "5", NULL);
    assert_int_equal(code, 0);
    assert_null(strstr(session.text[0], "\nlayer "));
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process_has_all),
        cmocka_unit_test(several_have_parts),
        cmocka_unit_test(profiles_are_told),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
