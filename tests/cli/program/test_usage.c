/* What a person meets first: help, wrong words, wrong options, the environment, exit codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/program/command_help.h"
#include "cli/program/commands.h"
#include "cli/session.h"

static const char *const commands[] = {"train",       "launch",    "compare",      "eval",      "predict",
                                       "inspect",     "export",    "import",       "report",    "diff",
                                       "devices",     "version",   "help",         "data",      "data list",
                                       "data verify", "data show", "data convert", "data fetch"};
#define COMMANDS (sizeof commands / sizeof commands[0])

static void expect_output(struct session *session, int code, const char *part)
{
    if (code != 0 || !strstr(session->text[0], part) || session->size[1] > 0) session_show(session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session->text[0], part));
    assert_int_equal(session->size[1], 0);
    session_release(session);
}

static void test_no_words_print_the_overview(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, NULL);
    for (size_t i = 0; i < COMMANDS && !strchr(commands[i], ' '); i++)
        assert_non_null(strstr(session.text[0], commands[i]));
    static const char *const codes[] = {
        "0    done",          "1    failed",          "2    wrong",
        "3    interrupted; ", "4    the loss",        "5    a checkpoint",
        "6    a receipt",     "7    no verification", "130  interrupted twice"};
    const char *at = strstr(session.text[0], "Exit codes:\n");
    assert_non_null(at);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        at = strchr(at, '\n');
        assert_non_null(at);
        at += strlen("\n  ");
        if (strncmp(at, codes[i], strlen(codes[i])) != 0) fail_msg("not %s: %s", codes[i], at);
    }
    expect_output(&session, code, "Usage: trireme COMMAND");
}

/* The three ways to ask give the same text, which names the command and never a line beyond 100 columns. */
static void test_help_of_every_command(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMMANDS; i++) {
        struct session asked, given;
        char words[64];
        strcpy(words, commands[i]);
        char *first = strtok(words, " "), *second = strtok(NULL, " ");
        assert_int_equal(second ? run(&asked, "help", first, second, NULL) : run(&asked, "help", first, NULL),
                         0);
        assert_int_equal(
            second ? run(&given, first, second, "--help", NULL) : run(&given, first, "--help", NULL), 0);
        assert_string_equal(asked.text[0], given.text[0]);
        assert_int_equal(strncmp(asked.text[0], "Usage: trireme ", 15), 0);
        assert_int_equal(strncmp(asked.text[0] + 15, commands[i], strlen(commands[i])), 0);
        for (const char *line = asked.text[0]; *line; line += strcspn(line, "\n"), line += *line == '\n')
            assert_true(strcspn(line, "\n") <= 100);
        session_release(&asked);
        session_release(&given);
    }
}

static void test_help_is_asked_for_by_a_letter(void **state)
{
    (void)state;
    static const char *const asks[][2] = {{"-h", NULL}, {"data", "-h"}, {"train", "-h"}};
    static const char *const long_form[][2] = {{"--help", NULL}, {"data", "--help"}, {"train", "--help"}};
    for (int i = 0; i < 3; i++) {
        struct session letter, word;
        int code = run(&letter, asks[i][0], asks[i][1], NULL);
        if (code != 0) session_show(&letter);
        assert_int_equal(code, 0);
        assert_int_equal(run(&word, long_form[i][0], long_form[i][1], NULL), 0);
        assert_true(letter.size[0] > 100);
        assert_string_equal(letter.text[0], word.text[0]);
        session_release(&letter);
        session_release(&word);
    }
}

static void test_version(void **state)
{
    (void)state;
    struct session session;
    expect_output(&session, run(&session, "version", NULL), "trireme ");
    expect_output(&session, run(&session, "--version", NULL), "trireme ");
    expect_output(&session, run(&session, "-V", NULL), "trireme ");
}

/* Names stand in one column, and a name that is too long for it is parted from its summary all the same. */
static void test_lists_of_commands(void **state)
{
    (void)state;
    static const struct cli_command commands_[] = {{.name = "short", .summary = "one"},
                                                   {.name = "fifteen letters", .summary = "two"},
                                                   {.name = "sixteen letters!", .summary = "three"},
                                                   {.name = "more than sixteen", .summary = "four"}};
    static const struct cli_command *const list[] = {&commands_[0], &commands_[1], &commands_[2],
                                                     &commands_[3], NULL};
    struct tr_text text = TR_TEXT_INIT;
    cli_help_add_list(&text, list);
    assert_string_equal(text.bytes, "  short           one\n"
                                    "  fifteen letters two\n"
                                    "  sixteen letters! three\n"
                                    "  more than sixteen four\n");
    tr_text_release(&text);
}

struct mistake {
    const char *arguments[6];
    const char *part; /* of the message */
};

static void test_mistakes_are_named(void **state)
{
    (void)state;
    static const struct mistake mistakes[] = {
        {{"tran"}, "trireme: unknown command \"tran\"; did you mean `trireme train`?"},
        {{"xyzzy"}, "trireme: unknown command \"xyzzy\"; `trireme help` lists them"},
        {{"data", "lst"}, "did you mean `trireme data list`?"},
        {{"data", "--lst"}, "trireme data: unknown option \"--lst\""},
        {{"--threads", "2"}, "options follow the command"},
        {{"train"}, "trireme train: name a model file"},
        {{"train", "tiny.yaml", "--thread", "2"}, "did you mean --threads?"},
        {{"train", "tiny.yaml", "--threads", "two"}, "--threads: \"two\""},
        {{"train", "tiny.yaml", "--threads=-1"}, "--threads"},
        {{"train", "tiny.yaml", "--threads"}, "--threads: needs a value"},
        {{"train", "tiny.yaml", "tiny.yaml"}, "trireme train: "},
        {{"train", "tiny.yaml", "--log", "xml"}, "--log"},
        {{"train", "tiny.yaml", "--device", "tpu"}, "tpu"},
        {{"train", "tiny.yaml", "--isa", "mmx"}, "mmx"},
        {{"train", "tiny.yaml", "--histograms", "2"}, "say where to (`--tensorboard`)"},
        {{"train", "missing.yaml"}, "missing.yaml"},
        {{"train", "tiny.yaml", "--set", "optimizer.rat=1"}, "did you mean \"rate\"?"},
        {{"train", "tiny.yaml", "--set", "rubbish"}, "rubbish"},
        {{"train", "--resume", "nowhere"}, "nowhere"},
        {{"train", "--resume", "runs/x", "--overwrite"}, "--overwrite"},
        {{"eval"}, "trireme eval: "},
        {{"eval", "nowhere"}, "nowhere"},
        /* The wrong kind of thing is a mistake, not bad luck that may pass. */
        {{"eval", "tiny.yaml"}, "\"tiny.yaml\" is not a directory"},
        {{"train", "tiny.yaml", "--out", "images.idx"}, "\"images.idx\" is not a directory"},
        {{"train", "."}, "is a directory"},
        {{"train", "tiny.yaml/x"}, "Not a directory"},
        {{"train", "tiny.yaml", "--trace", "none/x.json"}, "there is no directory \"none\""},
        {{"train", "tiny.yaml", "--tensorboard", "place"}, "is written --tensorboard=place"},
        {{"export", "-o"}, "unknown option -o;"},
        {{"models", "--version"}, "unknown option --version; `trireme --version` prints the version;"},
        {{"models", "-V"}, "unknown option -V; `trireme --version` prints the version;"},
        {{"export", "-xo"}, "unknown option -x in \"-xo\""},
        /* What a terminal would obey. */
        {{"train", "no\033[31mwhere\n\302\233.yaml"}, "\"no?[31mwhere???.yaml\""},
        {{"predict", "nowhere"}, "nowhere"},
        {{"inspect"}, "--layers"},
        {{"inspect", "nowhere.yaml"}, "nowhere.yaml"},
        {{"help", "tran"}, "did you mean `trireme train`?"},
        {{"help", "train", "now"}, "\"now\""},
        {{"data", "show", "mnst"}, "mnist"},
        {{"data", "show", "{idx: {images: nothing.idx}}"}, "nothing.idx"},
        {{"data", "verify", "mnst"}, "mnist"},
        {{"data", "fetch", "mnst"}, "mnist"},
        {{"data", "convert", "mnist"}, "trireme data convert: "},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct session session;
        const char *const *a = mistakes[i].arguments;
        int code = run(&session, a[0], a[1], a[2], a[3], a[4], NULL);
        expect_error(2, mistakes[i].part, &session, code);
        session_release(&session);
    }
}

/* The library speaks of settings, the program of its flags, also of those that are on by default. */
static void test_settings_are_named_as_flags(void **state)
{
    (void)state;
    struct session session;
    int code = run(&session, "train", "tiny.yaml", "--out", "never", "--set", "layers.0.units=1000000",
                   "--set", "layers.2.dense=1000000", NULL);
    expect_error(1, "or give `--no-memory-check`\n", &session, code);
    session_release(&session);
    code = run(&session, "train", "tiny.yaml", "--out", "never", "--histograms", "2", NULL);
    expect_error(2, "(`--tensorboard`)", &session, code);
    session_release(&session);
}

/* Where the environment decides, and that the command line overrides it. */
static void test_environment_gives_defaults(void **state)
{
    (void)state;
    struct session session;
    const char *const one[] = {"TRIREME_THREADS=1", "TRIREME_ISA=plain", NULL};
    struct setup setup = {.environment = one};
    assert_int_equal(run_with(&session, setup, "train", "tiny.yaml", "--out", "env", "--steps", "1", NULL),
                     0);
    assert_non_null(strstr(session.text[0], "cpu (plain, 1 thread)"));
    session_release(&session);
    assert_int_equal(
        run_with(&session, setup, "train", "tiny.yaml", "--out", "env2", "--steps", "1", "-t", "2", NULL), 0);
    assert_non_null(strstr(session.text[0], "cpu (plain, 2 threads)"));
    session_release(&session);
    const char *const wrong[] = {"TRIREME_THREADS=many", NULL};
    setup.environment = wrong;
    int code = run_with(&session, setup, "train", "tiny.yaml", "--out", "env3", NULL);
    expect_error(2, "TRIREME_THREADS", &session, code);
    session_release(&session);
}

/* A day that is none would be another one tomorrow. */
static void test_days_of_the_manual(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        int code;
    } cases[] = {{"SOURCE_DATE_EPOCH=0", 0},
                 {"SOURCE_DATE_EPOCH=", 0},
                 {"SOURCE_DATE_EPOCH=today", 2},
                 {"SOURCE_DATE_EPOCH=9223372036854775807", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const environment[] = {cases[i].given, NULL};
        struct session session;
        int code =
            run_with(&session, (struct setup){.environment = environment}, "help", "--man", "pages", NULL);
        assert_int_equal(code, cases[i].code);
        if (code != 0) expect_error(2, "which is no time", &session, code);
        session_release(&session);
    }
}

/* Whatever cannot be written is an error, for every command. */
static void test_output_that_cannot_be_written(void **state)
{
    (void)state;
    static const char *const words[][3] = {{"help"},
                                           {"version"},
                                           {"devices"},
                                           {"inspect", "--layers"},
                                           {"inspect", "--manual"},
                                           {"data", "list"},
                                           {"inspect", "tiny.yaml"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct setup setups[] = {{.output = "/dev/full"}, {.closed_output = true}, {.no_output = true}};
        for (int s = 0; s < 3; s++) {
            struct session session;
            int code = run_with(&session, setups[s], words[i][0], words[i][1], words[i][2], NULL);
            expect_error(1, "standard output: ", &session, code);
            session_release(&session);
        }
    }
}

/* ---- option tables ---- */

static void expect_distinct(const struct cli_command *command)
{
    for (int32_t i = 0; i < command->option_count; i++)
        for (int32_t k = 0; k < i; k++) {
            const struct tr_option *a = &command->options[i], *b = &command->options[k];
            if (strcmp(a->key, b->key) == 0 || (a->letter && a->letter == b->letter))
                fail_msg("%s: --%s and --%s have one key, or the letter '%c' both", command->name, a->key,
                         b->key, a->letter);
        }
}

static void test_no_two_options_are_one(void **state)
{
    (void)state;
    for (int i = 0; cli_commands[i]; i++) {
        const struct cli_command *const *children = cli_commands[i]->children;
        expect_distinct(cli_commands[i]);
        for (int k = 0; children && children[k]; k++) expect_distinct(children[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_words_print_the_overview),
        cmocka_unit_test(test_help_of_every_command),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_help_is_asked_for_by_a_letter),
        cmocka_unit_test(test_lists_of_commands),
        cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_settings_are_named_as_flags),
        cmocka_unit_test(test_environment_gives_defaults),
        cmocka_unit_test(test_days_of_the_manual),
        cmocka_unit_test(test_output_that_cannot_be_written),
        cmocka_unit_test(test_no_two_options_are_one),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
