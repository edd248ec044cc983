/* Models and data that ship with the program, by their names; what is said of a model file that is missing;
 * and what becomes of both without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/fail.h"
#include "cli/program/missing_model.h"
#include "cli/program/shipped.h"
#include "refuse.h"
#include "scratch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make(void **state)
{
    return scratch_place_make(state) != 0 || chdir(scratch_place) != 0 ? -1 : 0;
}

static int drop(void **state)
{
    return chdir("/") != 0 ? -1 : scratch_place_remove(state);
}

/* In a build folder: those of the sources. */
static const char *sources(void)
{
    static char path[PATH_MAX];
    assert_non_null(realpath(TRIREME_SOURCE_DIR, path));
    return path;
}

static void models_are_listed(void **state)
{
    char *directory, expected[PATH_MAX];
    struct tr_file_names names, all;
    (void)state;
    assert_int_equal(cli_shipped_models(&directory, &names), TR_OK);
    snprintf(expected, sizeof expected, "%.4000s/models", sources());
    assert_string_equal(directory, expected);
    assert_int_equal(tr_file_list(NULL, directory, &all), TR_OK);
    int64_t models = 0;
    for (int64_t i = 0; i < all.count; i++) {
        const char *end = strstr(all.name[i], ".yaml");
        models += end && end > all.name[i] && end[5] == '\0';
    }
    assert_int_equal(names.count, models);
    assert_true(models > 5);
    bool quick = false;
    for (int64_t i = 0; i < names.count; i++) {
        assert_null(strchr(names.name[i], '.'));
        if (i > 0) assert_true(strcmp(names.name[i - 1], names.name[i]) < 0);
        quick = quick || strcmp(names.name[i], "mnist-quick") == 0;
    }
    assert_true(quick);
    tr_file_names_free(&all);
    tr_file_names_free(&names);
    tr_free(directory);
}

/* Becomes the path of a model that ships, or stays, or is refused. */
static tr_status find(const char *name, char **path)
{
    *path = name ? tr_strdup(name) : NULL;
    return cli_shipped_find_model(path);
}

static void names_become_paths(void **state)
{
    static const char *const others[] = {"",    "./mnist-quick", "mnist-quick.yaml", "mnist-quick.",
                                         "a/b", "mine"};
    char *path, expected[PATH_MAX];
    (void)state;
    assert_int_equal(find("mnist-quick", &path), TR_OK);
    snprintf(expected, sizeof expected, "%.4000s/models/mnist-quick.yaml", sources());
    assert_string_equal(path, expected);
    tr_free(path);
    scratch_write_text("mine", "a file");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(find(others[i], &path), TR_OK);
        assert_string_equal(path, others[i]);
        tr_free(path);
    }
    assert_int_equal(find(NULL, &path), TR_OK);
    assert_null(path);
    assert_int_equal(find("mnist-quik", &path), TR_ENOTFOUND);
    assert_string_equal(path, "mnist-quik");
    assert_string_equal(
        tr_error_message(),
        "there is no file \"mnist-quik\" here, and no model of that name ships with Trireme (did you "
        "mean mnist-quick?); `trireme models` lists those that do");
    tr_free(path);
    assert_int_equal(find("zebra", &path), TR_ENOTFOUND);
    assert_string_equal(
        tr_error_message(),
        "there is no file \"zebra\" here, and no model of that name ships with Trireme; `trireme "
        "models` lists those that do");
    tr_free(path);
    /* A file here comes first. */
    scratch_write_text("mnist-quick", "mine");
    assert_int_equal(find("mnist-quick", &path), TR_OK);
    assert_string_equal(path, "mnist-quick");
    tr_free(path);
    assert_int_equal(tr_file_remove(NULL, "mnist-quick"), TR_OK);
}

static void expect_data(const char *directory, const char *set, const char *expected)
{
    char *found;
    assert_int_equal(cli_shipped_find_data(directory, set, &found), TR_OK);
    assert_string_equal(found, expected);
    tr_free(found);
}

static void data_are_found(void **state)
{
    char shipped[PATH_MAX];
    (void)state;
    snprintf(shipped, sizeof shipped, "%.4000s/data", sources());
    expect_data("data", "penguins", shipped);
    expect_data("other", "penguins", "other"); /* whoever says where means it */
    expect_data("data", "none", "data");
    expect_data("data", "README.md", "data"); /* no directory */
    assert_int_equal(tr_file_make_directory(NULL, "data"), TR_OK);
    expect_data("data", "penguins", shipped);
    assert_int_equal(tr_file_make_directory(NULL, "data/penguins"), TR_OK);
    expect_data("data", "penguins", "data"); /* which is here */
    assert_int_equal(tr_file_remove(NULL, "data"), TR_OK);
}

/* ---- model files that are none ---- */

static void expect_judged(const char *path, tr_status status, const char *message)
{
    tr_status got = cli_model_check(path);
    if (got != status || (message && strcmp(tr_error_message(), message) != 0))
        fail_msg("%s: status %d, \"%s\"", path, (int)got, got ? tr_error_message() : "");
}

static void missing_models_are_explained(void **state)
{
    (void)state;
    scratch_write_text("good.yaml", "a model");
    scratch_write_text("old.yml", "a model");
    scratch_write_text("notes.txt", "no model");
    assert_int_equal(tr_file_make_directory(NULL, "folder"), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, "run"), TR_OK);
    assert_int_equal(tr_file_make_directory(NULL, "checkpoint"), TR_OK);
    scratch_write_text("run/journal.jsonl", "");
    scratch_write_text("checkpoint/manifest.json", "");
    assert_true(cli_is_run("run") && cli_is_run("checkpoint"));
    assert_false(cli_is_run("folder") || cli_is_run("good.yaml") || cli_is_run("absent"));
    assert_true(cli_model_lacks_suffix("good") && cli_model_lacks_suffix("old"));
    assert_true(cli_model_lacks_suffix("good.yml") && cli_model_lacks_suffix("./old.yaml"));
    assert_false(cli_model_lacks_suffix("goo") || cli_model_lacks_suffix("notes") ||
                 cli_model_lacks_suffix(""));
    expect_judged("good.yaml", TR_OK, NULL);
    expect_judged("notes.txt", TR_OK, NULL);
    expect_judged("good.yaml/below", TR_OK, NULL); /* as the system says it */
    expect_judged("good", TR_ENOTFOUND, "there is no file \"good\"; did you mean \"good.yaml\"?");
    expect_judged("./old.yaml", TR_ENOTFOUND, "there is no file \"./old.yaml\"; did you mean \"./old.yml\"?");
    expect_judged("god.yml", TR_ENOTFOUND, "there is no file \"god.yml\"; did you mean \"good.yaml\"?");
    expect_judged("../absent/god.yml", TR_ENOTFOUND, NULL);
    expect_judged(
        "note.txt", TR_ENOTFOUND,
        "there is no file \"note.txt\"; check the path, or take a model that ships (`trireme models`)");
    expect_judged(
        "here/mnist-quick.yaml", TR_ENOTFOUND,
        "there is no file \"here/mnist-quick.yaml\" here; a model of that name ships: write mnist-quick "
        "alone");
    expect_judged(
        "mnist-quick.yml", TR_ENOTFOUND,
        "there is no file \"mnist-quick.yml\" here; a model of that name ships: write mnist-quick alone");
    expect_judged("mnist-quick.yaml.yaml", TR_ENOTFOUND, NULL);
    expect_judged(
        ".yaml", TR_ENOTFOUND,
        "there is no file \".yaml\"; check the path, or take a model that ships (`trireme models`)");
    expect_judged("folder", TR_EINVAL,
                  "\"folder\" is a directory; a model file is wanted, or the name of one that ships");
    static const char *const runs[] = {"run", "checkpoint"};
    for (int i = 0; i < 2; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "\"%s\" is a directory of checkpoints, not a model file: `trireme train --resume %s` goes "
                 "on with "
                 "that run",
                 runs[i], runs[i]);
        expect_judged(runs[i], TR_EINVAL, text);
    }
}

/* ---- without memory ---- */

static tr_status list_models(void)
{
    char *directory;
    struct tr_file_names names;
    tr_status status = cli_shipped_models(&directory, &names);
    if (status != TR_OK) {
        assert_null(directory);
        assert_int_equal(names.count, 0);
        return status;
    }
    tr_file_names_free(&names);
    tr_free(directory);
    return TR_OK;
}

static tr_status find_directory(void)
{
    char *directory;
    tr_status status = cli_shipped_directory(&directory);
    if (status != TR_OK) assert_null(directory);
    tr_free(directory);
    return status;
}

static tr_status find_data_in(const char *where)
{
    char *directory;
    tr_status status = cli_shipped_find_data(where, "penguins", &directory);
    if (status != TR_OK) assert_null(directory);
    tr_free(directory);
    return status;
}

static tr_status find_data(void)
{
    return find_data_in("elsewhere");
}

/* Those that ship are not taken for missing. */
static tr_status find_shipped_data(void)
{
    return find_data_in("data");
}

static void failing_memory_is_told(void **state)
{
    static tr_status (*const functions[])(void) = {find_directory, list_models, find_data, find_shipped_data};
    (void)state;
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++)
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            tr_status status = functions[f]();
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM)) fail_msg("function %zu, allocation %d", f, (int)at);
            assert_int_equal(tr_alloc_live(), live);
        }
    /* A name stays what it was; a message may have less to say. */
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        char *path = tr_strdup("mnist-quick");
        refuse_begin(at);
        tr_status status = cli_shipped_find_model(&path);
        done = refuse_end();
        assert_non_null(path);
        if (status != TR_OK) assert_string_equal(path, "mnist-quick");
        assert_true(status == TR_OK || status == TR_ENOMEM);
        tr_free(path);
        refuse_begin(at);
        assert_int_equal(cli_model_check("absent.yaml"), TR_ENOTFOUND);
        done = refuse_end() && done;
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_listed),      cmocka_unit_test(names_become_paths),
        cmocka_unit_test(data_are_found),         cmocka_unit_test(missing_models_are_explained),
        cmocka_unit_test(failing_memory_is_told),
    };
    return cmocka_run_group_tests_name("cli.shipped", tests, make, drop);
}
