/* Models and data that ship with the program are found by name from any directory, behind what is here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "cli/session.h"

static void expect_output(const char *part, const struct session *session, int code)
{
    if (code != 0 || !strstr(session->text[0], part)) session_show(session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session->text[0], part));
}

static void every_model_has_a_line(void **state)
{
    (void)state;
    struct session session;
    struct tr_file_names names;
    int code = run(&session, "models", NULL), lines = 0;
    expect_output("\nmnist-quick ", &session, code);
    expect_output("(Vaswani et al. 2017), a block of each, 64 wide\n", &session, code); /* one sentence */
    assert_int_equal(tr_file_list(NULL, TRIREME_SOURCE_DIR "/models", &names), TR_OK);
    for (int64_t i = 0; i < names.count; i++) {
        char line[256];
        int length = (int)strlen(names.name[i]) - (int)strlen(".yaml");
        snprintf(line, sizeof line, "%.*s ", length, names.name[i]);
        const char *found = strstr(session.text[0], line);
        if (!found) fail_msg("%s is not listed", line);
        assert_true(strcspn(found + strlen(line) + strspn(found + strlen(line), " "), "\n") > 20);
    }
    for (const char *at = session.text[0]; *at && *at != '\n'; at = strchr(at, '\n') + 1) lines++;
    assert_int_equal(lines, names.count);
    tr_file_names_free(&names);
    session_release(&session);
    code = run(&session, "models", "--json", NULL);
    expect_output("{\"name\":\"mnist-cnn\",\"path\":\"" TRIREME_SOURCE_DIR
                  "/models/mnist-cnn.yaml\",\"about\":\"Two "
                  "convolutions",
                  &session, code);
    session_release(&session);
}

/* docs/reference/models.md has a row for each of them, and no others. */
static void every_model_is_in_the_readme(void **state)
{
    (void)state;
    struct tr_file_content readme;
    struct tr_file_names names;
    int64_t rows = 0;
    assert_int_equal(tr_file_read(TRIREME_SOURCE_DIR "/docs/reference/models.md", 1 << 20, &readme), TR_OK);
    assert_int_equal(tr_file_list(NULL, TRIREME_SOURCE_DIR "/models", &names), TR_OK);
    for (int64_t i = 0; i < names.count; i++) {
        char row[256];
        snprintf(row, sizeof row, "\n| `%.*s` | ", (int)(strlen(names.name[i]) - strlen(".yaml")),
                 names.name[i]);
        if (!strstr(readme.data, row)) fail_msg("%s has no row in docs/reference/models.md", names.name[i]);
    }
    const char *table = strstr(readme.data, "\n| file | network |");
    assert_non_null(table);
    for (const char *at = strstr(table, "\n| `"); at && at[1] == '|'; at = strchr(at + 1, '\n')) rows++;
    assert_int_equal(rows, names.count);
    tr_file_names_free(&names);
    tr_file_content_free(&readme);
}

static void names_stand_for_files(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "inspect", "mnist-quick", NULL);
    expect_output("models/mnist-quick.yaml", &session, code);
    session_release(&session);
    code = run(&session, "train", "sst2-lstm", "--steps", "1", "-t", "1", NULL);
    expect_output("6,920 examples", &session, code);
    session_release(&session);
    code = run(&session, "train", "mnist-qick", NULL);
    expect_error(2, "did you mean mnist-quick?", &session, code);
    session_release(&session);
    /* What looks like a path is one. */
    code = run(&session, "train", "./mnist-quick", NULL);
    expect_error(2, "there is no file \"./mnist-quick\" here; a model of that name ships", &session, code);
    session_release(&session);
    code = run(&session, "train", "mnist-quick.yaml", NULL);
    expect_error(
        2, "there is no file \"mnist-quick.yaml\" here; a model of that name ships: write mnist-quick alone",
        &session, code);
    session_release(&session);
    code = run(&session, "train", "--help", NULL);
    expect_output("(`trireme models`); a file", &session, code);
    session_release(&session);
}

static void what_is_here_comes_first(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(link("tiny.yaml", "mnist-quick"), 0);
    int code = run(&session, "inspect", "mnist-quick", NULL);
    expect_output("job         tiny", &session, code);
    session_release(&session);
    assert_int_equal(unlink("mnist-quick"), 0);

    code = run(&session, "data", "show", "sst2", "--count", "1", NULL);
    expect_output("6,920 examples", &session, code);
    session_release(&session);
    code = run(&session, "data", "verify", "mnist", NULL);
    expect_output(TRIREME_SOURCE_DIR "/data/mnist/", &session, code);
    session_release(&session);
    assert_int_equal(mkdir("data", 0700), 0);
    assert_int_equal(mkdir("data/sst2", 0700), 0);
    code = run(&session, "data", "show", "sst2", NULL);
    expect_error(2, "data/sst2/train.tsv", &session, code);
    assert_null(strstr(session.text[1], TRIREME_SOURCE_DIR));
    session_release(&session);
    code = run(&session, "data", "verify", "mnist", "--dir", "elsewhere", NULL);
    assert_int_equal(code, 2);
    session_release(&session);
}

/* Files of models are those of this ending; what is before it is a name, if there is any. In a folder that
   looks like one in which the program was built. */
static void other_files_are_no_models(void **state)
{
    static const char *const files[] = {"b.yaml", "a.b.yaml",  "a.yaml", ".yaml",
                                        "c.yml",  "d.yaml.gz", "yaml"};
    struct session session;
    char path[64];
    (void)state;
    assert_int_equal(mkdir("built", 0700) | mkdir("built/cli", 0700) | mkdir("built/sources", 0700) |
                         mkdir("built/sources/models", 0700),
                     0);
    write_text("built/CMakeCache.txt", "");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "built/sources/models/%s", files[i]);
        write_text(path, "# A model. More of it.\n");
    }
    const char *const copy[] = {TRIREME_PROGRAM, "built/cli/trireme", NULL}, *const list[] = {"models", NULL};
    session_start(&session, &(struct setup){.program = "cp", .arguments = copy});
    assert_int_equal(session_end(&session), 0);
    session_release(&session);
    session_start(&session, &(struct setup){.program = "built/cli/trireme", .arguments = list});
    int code = session_end(&session);
    expect_output("a    A model\na.b  A model\nb    A model\n\nin ", &session, code);
    assert_ptr_equal(strstr(session.text[0], "a    A model"), session.text[0]);
    session_release(&session);
}

/* Runs a copy of the program. */
static int run_copy(struct session *session, const char *const *arguments)
{
    session_start(session, &(struct setup){.program = "moved/bin/trireme", .arguments = arguments});
    return session_end(session);
}

/* An installation that was moved has its models beside the program, or else where it was to be; a program
   without any says so. */
static void a_moved_program_looks_beside_itself(void **state)
{
    static const char *const list[] = {"models", NULL}, *const train[] = {"train", "mnist-quick", NULL};
    const char *const copy[] = {TRIREME_PROGRAM, "moved/bin/trireme", NULL};
    const char *const folders[] = {"-p", "moved/bin/" TRIREME_SHIPPED_BELOW "/models", NULL};
    struct session session;
    (void)state;
    assert_int_equal(mkdir("moved", 0700) | mkdir("moved/bin", 0700), 0);
    session_start(&session, &(struct setup){.program = "cp", .arguments = copy});
    assert_int_equal(session_end(&session), 0);
    session_release(&session);
    if (access(TRIREME_SHIPPED, F_OK) != 0) { /* or it is installed here */
        int code = run_copy(&session, list);
        expect_error(2,
                     "there is no directory \"" TRIREME_SHIPPED
                     "\", in which this program has its models and data; "
                     "install them, too (package trireme-data)",
                     &session, code);
        session_release(&session);
        code = run_copy(&session, train);
        expect_error(2, "there is no file \"mnist-quick\"; check the path, or take a model that ships",
                     &session, code);
        session_release(&session);
    }
    session_start(&session, &(struct setup){.program = "mkdir", .arguments = folders});
    assert_int_equal(session_end(&session), 0);
    session_release(&session);
    write_text("moved/bin/" TRIREME_SHIPPED_BELOW "/models/mine.yaml", "# My own. Really.\n");
    assert_int_equal(run_copy(&session, list), 0);
    assert_non_null(strstr(session.text[0], "mine "));
    assert_null(strstr(session.text[0], "mnist"));
    session_release(&session);
}

/* Of the comment at the top of a file the first sentence is told, without its full stop. */
static void models_are_told_in_a_sentence(void **state)
{
    static const struct {
        const char *name, *text, *line;
    } models[] = {
        {"a", "# It goes on\n#   in two lines. More.\n", "a  It goes on in two lines\n"},
        {"b", "# It ends here.\n# This is another one.\n", "b  It ends here\n"},
        {"c", "# It has 1. and 2. and so on. Then more", "c  It has 1. and 2. and so on\n"},
        {"d", "#No line feed", "d  No line feed\n"},
        {"e", "name: e\n# No comment at the top.\n", "e\n"},
        {"f", "# Comment\n\n# and another\n", "f  Comment\n"},
        {"g", "", "g\n"},
        {"h", "#\n# After an empty line\n", "h  After an empty line\n"},
        {"i", "# An end. \n# Not said\n", "i  An end\n"},
    };
    struct session session;
    char path[64], expected[512] = "", about[64];
    (void)state;
    assert_int_equal(mkdir("told", 0700) | mkdir("told/cli", 0700) | mkdir("told/sources", 0700) |
                         mkdir("told/sources/models", 0700),
                     0);
    write_text("told/CMakeCache.txt", "");
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        snprintf(path, sizeof path, "told/sources/models/%s.yaml", models[i].name);
        write_text(path, models[i].text);
        strcat(expected, models[i].line);
    }
    strcat(expected, "\nin ");
    const char *const copy[] = {TRIREME_PROGRAM, "told/cli/trireme", NULL}, *const list[] = {"models", NULL},
                      *const json[] = {"models", "--json", NULL};
    session_start(&session, &(struct setup){.program = "cp", .arguments = copy});
    assert_int_equal(session_end(&session), 0);
    session_release(&session);
    session_start(&session, &(struct setup){.program = "told/cli/trireme", .arguments = list});
    int code = session_end(&session);
    expect_output(expected, &session, code);
    session_release(&session);
    session_start(&session, &(struct setup){.program = "told/cli/trireme", .arguments = json});
    code = session_end(&session);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const char *line = models[i].line;
        snprintf(about, sizeof about, "\"about\":\"%.*s\"}\n", (int)strlen(line) - (line[1] == ' ' ? 4 : 2),
                 line + (line[1] == ' ' ? 3 : 1));
        expect_output(about, &session, code);
    }
    session_release(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_a_line),
        cmocka_unit_test(every_model_is_in_the_readme),
        cmocka_unit_test(names_stand_for_files),
        cmocka_unit_test(other_files_are_no_models),
        cmocka_unit_test(what_is_here_comes_first),
        cmocka_unit_test(a_moved_program_looks_beside_itself),
        cmocka_unit_test(models_are_told_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
