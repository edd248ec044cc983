/* The tables of a profile: sums, shares and rates of layers, causes of each process, and the process that the
 * others waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/printed.h"
#include "cli/train/profile.h"

/* 4 s of 10 s, at 3 of 8 GFLOP/s; and 6 s. */
static struct tr_profile_layer layers[] = {
    {"conv1", 40, 1, 3, 4e9, 8e9, 256, 2048},
    {"relu1", 20, 4.5, 1.5, 0, 0, 0, 4096},
};
static struct tr_profile_rank ranks[] = {
    {.seconds = {1, 2, 0.5, 0.25, 3, 0.125, 0, 0, 0.125}, .awaited = 0.5},
    {.seconds = {2, 4, 1, 0.5, 0.5, 0, 0, 0, 1}, .awaited = 3},
    {.seconds = {2, 4, 1, 0.5, 1.5, 0, 0, 0, 0}, .awaited = 1},
};

static char *text_of(const struct tr_train_profile *profile)
{
    struct tr_text text = TR_TEXT_INIT;
    char *out;
    cli_profile_text(profile, &text);
    assert_int_equal(tr_text_finish(&text, &out), TR_OK);
    return out;
}

/* The words of the line that begins with `head`, one blank between them. */
static const char *line_of(const char *text, const char *head)
{
    static char line[512];
    size_t length = 0;
    const char *at = strncmp(text, head, strlen(head)) == 0 ? text : NULL;
    for (const char *next = text; !at && (next = strchr(next, '\n')) != NULL;)
        if (strncmp(++next, head, strlen(head)) == 0) at = next;
    if (!at) fail_msg("no line \"%s\" in\n%s", head, text);
    for (; *at && *at != '\n' && length + 1 < sizeof line; at++)
        if (*at != ' ' || (length > 0 && line[length - 1] != ' ')) line[length++] = *at;
    line[length] = '\0';
    return line;
}

static void layers_have_shares_and_rates(void **state)
{
    (void)state;
    struct tr_train_profile profile = {
        .peak = 8e9, .layer_count = 2, .ranks = 1, .layers = layers, .rank = ranks};
    char *text = text_of(&profile);
    assert_string_equal(line_of(text, "layer"),
                        "layer calls forward s backward s % of layers GFLOP/s % of peak "
                        "parameters output");
    assert_string_equal(line_of(text, "conv1"), "conv1 40 1.000 3.000 40.0 3.0 38 1.0 KiB 2.0 KiB");
    assert_string_equal(line_of(text, "relu1"), "relu1 20 4.500 1.500 60.0 - - 0 bytes 4.0 KiB");
    assert_string_equal(line_of(text, "peak"), "peak 8.0 GFLOP/s for each process, as measured at the end");
    assert_null(strstr(text, "waiting took"));
    tr_free(text);
    profile.layer_count = 1;
    text = text_of(&profile);
    assert_string_equal(line_of(text, "conv1"), "conv1 40 1.000 3.000 100.0 3.0 38 1.0 KiB 2.0 KiB");
    assert_null(strstr(text, "relu1"));
    tr_free(text);
    profile.layer_count = 2;
    profile.peak = 0; /* unknown */
    text = text_of(&profile);
    assert_string_equal(line_of(text, "conv1"), "conv1 40 1.000 3.000 40.0 3.0 - 1.0 KiB 2.0 KiB");
    assert_null(strstr(text, "peak 0"));
    tr_free(text);
    static struct tr_profile_layer fast = {"fast", 1, 0.25, 0.25, 1e9, 1e9, 256, 2048};
    profile.peak = 16e9;
    profile.layer_count = 1;
    profile.layers = &fast;
    text = text_of(&profile);
    assert_string_equal(line_of(text, "fast"), "fast 1 0.250 0.250 100.0 4.0 25 1.0 KiB 2.0 KiB");
    tr_free(text);
    fast.forward_seconds = fast.backward_seconds = 0; /* too fast for the clock */
    text = text_of(&profile);
    assert_string_equal(line_of(text, "fast"), "fast 1 0.000 0.000 - - - 1.0 KiB 2.0 KiB");
    tr_free(text);
}

static void processes_have_causes(void **state)
{
    (void)state;
    struct tr_train_profile profile = {
        .peak = 8e9, .layer_count = 2, .ranks = 3, .layers = layers, .rank = ranks};
    char *text = text_of(&profile);
    assert_string_equal(line_of(text, "seconds"),
                        "seconds forward backward update communication waiting input "
                        "evaluation checkpoint other in all");
    assert_string_equal(line_of(text, "rank 0"),
                        "rank 0 1.000 2.000 0.500 0.250 3.000 0.125 - - 0.125 7.000");
    assert_string_equal(line_of(text, "rank 1"), "rank 1 2.000 4.000 1.000 0.500 0.500 - - - 1.000 9.000");
    /* 5 of 25 seconds. */
    assert_string_equal(line_of(text, "waiting took"),
                        "waiting took 20.0 %, most of it for rank 1 (3.000 s)");
    assert_string_equal(strstr(text, " (3.000 s)"), " (3.000 s)\n"); /* the last line */
    tr_free(text);
    profile.ranks = 2; /* 3.5 of 16 seconds */
    text = text_of(&profile);
    assert_string_equal(line_of(text, "waiting took"),
                        "waiting took 21.9 %, most of it for rank 1 (3.000 s)");
    assert_null(strstr(text, "rank 2"));
    tr_free(text);
    profile.ranks = 3;
    static const struct tr_profile_rank none;
    for (int r = 0; r < 3; r++) ranks[r].awaited = none.awaited;
    text = text_of(&profile);
    assert_string_equal(line_of(text, "waiting took"), "waiting took 20.0 %");
    tr_free(text);
    static struct tr_profile_rank idle[2];
    profile.ranks = 2;
    profile.rank = idle;
    text = text_of(&profile);
    assert_string_equal(line_of(text, "rank 1"), "rank 1 - - - - - - - - - 0.000");
    assert_null(strstr(text, "waiting took"));
    tr_free(text);
}

static void programs_get_all_figures(void **state)
{
    static struct tr_profile_layer some[] = {{"conv1", 40, 1, 3, 4e9, 8e9, 256, 2048},
                                             {"relu1", 20, 4.5, 1.5, 0, 5, 7, 4096}};
    static struct tr_profile_rank two[] = {
        {.seconds = {1, 2, 0.5, 0.25, 3, 0.125, 7, 8, 0.75}, .awaited = 0.5},
        {.seconds = {2, 4, 1, 6, 1.5, 0, 9, 10, 11}, .awaited = 12},
    };
    const struct tr_train_profile profile = {
        .peak = 8e9, .layer_count = 1, .ranks = 1, .layers = some, .rank = two};
    struct tr_train_profile more = profile;
    (void)state;
    printed_begin();
    cli_profile_json(&profile);
    assert_string_equal(
        printed_end(),
        "{\"event\":\"profile\",\"peak\":8e+09,\"layers\":[{\"name\":\"conv1\",\"calls\":40,"
        "\"forward_seconds\":1,\"backward_seconds\":3,\"forward_operations\":4e+09,"
        "\"backward_operations\":8e+09,\"parameters\":256,\"output_bytes\":2048}],\"ranks\":[{"
        "\"forward\":1,\"backward\":2,\"update\":0.5,\"communication\":0.25,\"waiting\":3,\"input\":0.125,"
        "\"evaluation\":7,\"checkpoint\":8,\"other\":0.75,\"awaited\":0.5}]}\n");
    more.layer_count = more.ranks = 2;
    printed_begin();
    cli_profile_json(&more);
    const char *text = printed_end();
    assert_non_null(strstr(text, "},{\"name\":\"relu1\",\"calls\":20,\"forward_seconds\":4.5,"
                                 "\"backward_seconds\":1.5,\"forward_operations\":0,"
                                 "\"backward_operations\":5,\"parameters\":7,\"output_bytes\":4096}]"));
    assert_non_null(strstr(text, "\"checkpoint\":10,\"other\":11,\"awaited\":12}]}\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_shares_and_rates),
        cmocka_unit_test(processes_have_causes),
        cmocka_unit_test(programs_get_all_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
