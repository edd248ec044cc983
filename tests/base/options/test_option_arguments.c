/* Command lines, the environment, and --help. */
#include "base/options/help.h"

#include "base/alloc.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

struct command {
    char *model, *out;
    struct tr_string_list rest, set;
    bool quiet, progress, help;
    int32_t threads;
    struct tr_int_list sizes;
    int32_t crop[2];
    int log;
    float rate;
};

static const struct tr_choice formats[] = {{"text", 0, NULL}, {"json", 1, NULL}, {0}};

#define FIELD(name) offsetof(struct command, name)
static const struct tr_option table[] = {
    {.key = "model",
     .type = TR_OPTION_STRING,
     .offset = FIELD(model),
     .flags = TR_OPTION_POSITIONAL,
     .help = "model file in YAML"},
    {.key = "rest",
     .type = TR_OPTION_STRING_LIST,
     .offset = FIELD(rest),
     .fallback = "",
     .value_name = "FILE",
     .flags = TR_OPTION_POSITIONAL,
     .help = "more files"},
    {.key = "out_dir",
     .type = TR_OPTION_STRING,
     .offset = FIELD(out),
     .fallback = "runs",
     .letter = 'o',
     .value_name = "DIR",
     .help = "where results go",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "set",
     .type = TR_OPTION_STRING_LIST,
     .offset = FIELD(set),
     .fallback = "",
     .value_name = "PATH=VALUE",
     .help = "override a field of the model file; may be given several times, and then all of them act in "
             "the order in "
             "which they were given"},
    {.key = "quiet",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(quiet),
     .fallback = "false",
     .letter = 'q',
     .help = "print nothing",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "progress",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(progress),
     .fallback = "true",
     .letter = 'p',
     .help = "show progress"},
    {.key = "threads",
     .type = TR_OPTION_INT32,
     .offset = FIELD(threads),
     .fallback = "0",
     .letter = 't',
     .least = 0,
     .most = 256,
     .help = "threads; 0: all cores",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "sizes",
     .type = TR_OPTION_INT_LIST,
     .offset = FIELD(sizes),
     .fallback = "7, 8",
     .help = "sizes",
     .flags = TR_OPTION_ENVIRONMENT},
    {.key = "crop", .type = TR_OPTION_PAIR, .offset = FIELD(crop), .fallback = "0", .help = "size of a part"},
    {.key = "log_format_of_the_run",
     .type = TR_OPTION_CHOICE,
     .offset = FIELD(log),
     .fallback = "text",
     .choices = formats,
     .help = "format"},
    {.key = "rate",
     .type = TR_OPTION_FLOAT,
     .offset = FIELD(rate),
     .letter = 'r',
     .least = 0,
     .most = INFINITY,
     .flags = TR_OPTION_ABOVE_LEAST,
     .help = "learning rate"},
    {.key = "help",
     .type = TR_OPTION_BOOL,
     .offset = FIELD(help),
     .fallback = "false",
     .letter = 'h',
     .flags = TR_OPTION_LEAVES,
     .help = "show this text"},
};
#define COUNT TR_OPTION_COUNT(table)

#define ARGUMENTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Reads arguments that end with NULL into *command, which is to be released. */
static tr_status read(const char *const *argv, struct command *command)
{
    int argc = 0;
    while (argv[argc]) argc++;
    assert_int_equal(tr_options_defaults(table, COUNT, command), TR_OK);
    return tr_options_arguments(table, COUNT, argc, argv, command);
}

static void release(struct command *command)
{
    tr_options_release(table, COUNT, command);
}

static void every_form_is_read(void **state)
{
    (void)state;
    struct command command;
    assert_int_equal(
        read(ARGUMENTS("m.yaml", "--rate", "1/4", "-qt4", "--out-dir=a=b", "--no-progress", "--sizes",
                       "1 ,  2  ", "--sizes=3", "--set", "a=1", "x", "--set=b=2", "--crop", "5, 3",
                       "--log_format-of_the_run=json", "--", "--threads", "-q"),
             &command),
        TR_OK);
    assert_string_equal(command.model, "m.yaml");
    assert_true(command.rate == 0.25f);
    assert_true(command.quiet);
    assert_false(command.progress);
    assert_int_equal(command.threads, 4);
    assert_string_equal(command.out, "a=b");
    assert_int_equal(command.sizes.count, 3);
    assert_true(command.sizes.item[0] == 1 && command.sizes.item[1] == 2 && command.sizes.item[2] == 3);
    assert_int_equal(command.set.count, 2);
    assert_string_equal(command.set.item[1], "b=2");
    assert_true(command.crop[0] == 5 && command.crop[1] == 3);
    assert_int_equal(command.log, 1);
    assert_int_equal(command.rest.count, 3);
    assert_string_equal(command.rest.item[0], "x");
    assert_string_equal(command.rest.item[1], "--threads");
    assert_string_equal(command.rest.item[2], "-q");
    release(&command);

    assert_int_equal(
        read(ARGUMENTS("-r", "0.5", "-", "-po", "-", "-t", "2", "-t3", "-q", "--quiet=no", "--out-dir="),
             &command),
        TR_OK);
    assert_string_equal(command.model, "-");
    assert_string_equal(command.out, "");
    assert_int_equal(command.threads, 3); /* the last one counts */
    assert_false(command.quiet);
    assert_false(command.progress);
    assert_int_equal(command.sizes.count, 2); /* fallback */
    release(&command);

    /* --help lifts the demand for the rest. */
    assert_int_equal(read(ARGUMENTS("-h"), &command), TR_OK);
    assert_true(command.help);
    assert_null(command.model);
    release(&command);
}

/* Options that mean something by themselves take a value only where it is attached. */
static void values_may_be_left_out(void **state)
{
    (void)state;
    static const struct tr_option bare[] = {
        {.key = "model",
         .type = TR_OPTION_STRING,
         .offset = FIELD(model),
         .flags = TR_OPTION_POSITIONAL,
         .help = "model"},
        {.key = "out_dir",
         .type = TR_OPTION_STRING,
         .offset = FIELD(out),
         .fallback = "",
         .bare = "here",
         .letter = 'o',
         .value_name = "DIR",
         .help = "where results go"},
        {.key = "threads",
         .type = TR_OPTION_INT32,
         .offset = FIELD(threads),
         .fallback = "0",
         .bare = "8",
         .help = "threads"},
    };
    static const struct {
        const char *arguments[4], *out;
        int threads;
    } cases[] = {
        {{"m", NULL}, NULL, 0},
        {{"--out-dir", "m", NULL}, "here", 0},
        {{"--out-dir=x", "m", "--threads", NULL}, "x", 8},
        {{"-o", "m", "--threads=2", NULL}, "here", 2},
        {{"-ox", "m", NULL}, "x", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct command command = {0};
        int argc = 0;
        while (cases[i].arguments[argc]) argc++;
        assert_int_equal(tr_options_defaults(bare, 3, &command), TR_OK);
        assert_int_equal(tr_options_arguments(bare, 3, argc, cases[i].arguments, &command), TR_OK);
        assert_string_equal(command.model, "m");
        if (cases[i].out) assert_string_equal(command.out, cases[i].out);
        if (!cases[i].out) assert_null(command.out);
        assert_int_equal(command.threads, cases[i].threads);
        tr_options_release(bare, 3, &command);
    }
    char *text;
    assert_int_equal(tr_options_help("do", "Does it.", bare, 3, &text), TR_OK);
    assert_non_null(strstr(text, "  -o, --out-dir[=DIR]       where results go\n"));
    tr_free(text);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[5], *message;
    } cases[] = {
        {{NULL}, "missing argument: model (model file in YAML); --help shows the usage"},
        {{"m", NULL}, "missing option: --rate (learning rate)"},
        {{"m", "--rate", NULL}, "--rate: needs a value (learning rate)"},
        {{"m", "-r", NULL}, "-r: needs a value (learning rate)"},
        {{"m", "--rate=0", NULL}, "--rate: 0 is out of range; allowed: > 0 (learning rate)"},
        {{"m", "-rx", NULL}, "-r: \"x\" is not a number (learning rate)"},
        {{"m", "--thread", "4", NULL}, "unknown option --thread; did you mean --threads?"},
        {{"m", "--outdir", "4", NULL}, "unknown option --outdir; did you mean --out-dir?"},
        {{"m", "--zzz=4", NULL}, "unknown option --zzz; --help lists the options"},
        {{"m", "--no-threads", NULL}, "unknown option --no-threads; did you mean --threads?"},
        {{"m", "--model", "x", NULL},
         "unknown option --model; the model stands by itself, without a word before it"},
        {{"m", "-qz", NULL}, "unknown option -z in \"-qz\"; --help lists the options"},
        {{"m", "-\xC3\xBC", NULL}, "unknown option \"-\xC3\xBC\"; --help lists the options"},
        {{"m", "--quiet=maybe", NULL}, "--quiet: \"maybe\" is neither true nor false (print nothing)"},
        {{"m", "--threads", "257", NULL},
         "--threads: 257 is out of range; allowed: 0 .. 256 (threads; 0: all cores)"},
        {{"m", "--threads", "4x", NULL}, "--threads: \"4x\" is not an integer (threads; 0: all cores)"},
        {{"m", "--sizes", "1,,2", NULL}, "--sizes: \"\" is not an integer (sizes)"},
        {{"m", "--sizes", "1,2,", NULL}, "--sizes: \"\" is not an integer (sizes)"},
        {{"m", "--sizes", "1,0000000000000000000000000000000000000000000000000000000000000002", NULL},
         "--sizes: \"1,0000000000000000000000000000000000000000000000000000000000000002\" has an item that "
         "is no "
         "number (sizes)"},
        {{"m", "--sizes", "1,000000000000000000000000000000000000000000000000000000000000x02", NULL},
         "--sizes: \"000000000000000000000000000000000000000000000000000000000000x02\" is not an integer "
         "(sizes)"},
        {{"m", "--crop", "1,2,3", NULL}, "--crop: \"1,2,3\" has more than two numbers (size of a part)"},
        {{"m", "--crop", "1,2147483648", NULL},
         "--crop: 2147483648 is out of range; allowed: -2147483648 .. 2147483647 (size of a part)"},
        {{"m", "--log-format-of-the-run", "jsn", NULL},
         "--log-format-of-the-run: \"jsn\" is none of text, json; did you mean \"json\"?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t live = tr_alloc_live();
        struct command command;
        assert_int_equal(read(cases[i].arguments, &command), TR_EINVAL);
        if (strcmp(tr_error_message(), cases[i].message) != 0)
            fail_msg("\"%s\" is not \"%s\"", tr_error_message(), cases[i].message);
        release(&command);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Without a list to take them, further arguments are too many. */
    struct command command;
    assert_int_equal(tr_options_defaults(table, COUNT, &command), TR_OK);
    assert_int_equal(tr_options_arguments(table, 1, 2, ARGUMENTS("a", "b"), &command), TR_EINVAL);
    assert_string_equal(tr_error_message(), "unexpected argument \"b\"; --help shows the usage");
    /* What other programs call a field of the model file is one only where fields can be set. */
    assert_int_equal(tr_options_arguments(table, 4, 2, ARGUMENTS("--batch-size", "8"), &command), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "unknown option --batch-size; did you mean --set train.batch=VALUE?");
    assert_int_equal(tr_options_arguments(table, 3, 2, ARGUMENTS("--batch-size", "8"), &command), TR_EINVAL);
    assert_string_equal(tr_error_message(), "unknown option --batch-size; --help lists the options");
    /* What stands before the arguments that are given is none of them. */
    release(&command);
    struct command other;
    static const struct tr_option place = {.key = "place",
                                           .type = TR_OPTION_STRING,
                                           .offset = FIELD(out),
                                           .fallback = "",
                                           .bare = "here",
                                           .help = "a place"};
    const char *const words[] = {"--place", "a"};
    assert_int_equal(tr_options_defaults(&place, 1, &other), TR_OK);
    assert_int_equal(tr_options_arguments(&place, 1, 2, words, &other), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "unexpected argument \"a\"; a value of --place is written --place=a");
    tr_options_release(&place, 1, &other);
    assert_int_equal(tr_options_defaults(&place, 1, &other), TR_OK);
    assert_int_equal(tr_options_arguments(&place, 1, 1, words + 1, &other), TR_EINVAL);
    assert_string_equal(tr_error_message(), "unexpected argument \"a\"; --help shows the usage");
    tr_options_release(&place, 1, &other);
}

static void unknown_arguments_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[5];
        int unknown;
    } cases[] = {
        {{"m", "--threads", "4", NULL}, -1},
        {{"m", "--threads=4x", "-r", "0", NULL}, -1}, /* values may be wrong */
        {{"m", "--no-quiet", "-qr1", NULL}, -1},
        {{"--zzz", "--thread", "4", NULL}, 0},
        {{"-q", "--thread=4", "--zzz", NULL}, 1},
        {{"--no-threads", NULL}, 0},
        {{"--no-quiet=true", NULL}, 0},
        {{"m", "-", "-qz", NULL}, 2},
        {{"-r", "-z", "--threads", "--zzz", NULL}, -1}, /* they are values */
        {{"--quiet", "-z", NULL}, 1},
        {{"-q", "-z", NULL}, 1},
        {{"-rz", "-z", NULL}, 1},
        {{"--", "--zzz", NULL}, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int count = 0;
        while (cases[i].arguments[count]) count++;
        assert_int_equal(tr_options_unknown(table, COUNT, count, cases[i].arguments), cases[i].unknown);
    }
}

static void the_environment_is_read_where_allowed(void **state)
{
    (void)state;
    struct command command;
    assert_int_equal(tr_options_defaults(table, COUNT, &command), TR_OK);
    assert_int_equal(
        tr_options_environment(table, COUNT, "TRIREME_",
                               ARGUMENTS("PATH=/bin", "TRIREME_THREADS=3", "TRIREME_OUT_DIR=x",
                                         "TRIREME_SIZES=4", "TRIREME_QUIET=", "TRIREME_RATE=junk",
                                         "TRIREME_THREADSX=9", "TRIREME_", "XTRIREME_THREADS=8"),
                               &command),
        TR_OK);
    assert_int_equal(command.threads, 3);
    assert_string_equal(command.out, "x");
    assert_true(command.sizes.count == 1 && command.sizes.item[0] == 4);
    assert_false(command.quiet);
    assert_int_equal(
        tr_options_environment(table, COUNT, "TRIREME_", ARGUMENTS("TRIREME_THREADS=many"), &command),
        TR_EINVAL);
    assert_string_equal(
        tr_error_message(),
        "environment variable TRIREME_THREADS: \"many\" is not an integer (threads; 0: all cores)");
    release(&command);
}

static void help_explains_the_table(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(tr_options_help("trireme train",
                                     "Trains a network as a model file says, with the same bits on any "
                                     "number of threads, and shows its progress.",
                                     table, COUNT, &text),
                     TR_OK);
    assert_string_equal(
        text,
        "Usage: trireme train [options] MODEL [FILE...]\n"
        "\n"
        "Trains a network as a model file says, with the same bits on any number of threads, and shows its\n"
        "progress.\n"
        "\n"
        "Arguments:\n"
        "  MODEL                     model file in YAML\n"
        "  FILE                      more files\n"
        "\n"
        "Options:\n"
        "  -o, --out-dir DIR         where results go (default: runs)\n"
        "      --set PATH=VALUE      override a field of the model file; may be given several times, and "
        "then\n"
        "                            all of them act in the order in which they were given\n"
        "  -q, --quiet               print nothing\n"
        "      --progress / -p, --no-progress\n"
        "                            show progress (default: --progress)\n"
        "  -t, --threads N           threads; 0: all cores (0 .. 256; default: 0)\n"
        "      --sizes N,...         sizes (default: 7, 8)\n"
        "      --crop N[,N]          size of a part (default: 0)\n"
        "      --log-format-of-the-run NAME\n"
        "                            format (one of text, json; default: text)\n"
        "  -r, --rate X              learning rate (> 0; required)\n"
        "  -h, --help                show this text\n");
    tr_free(text);
}

static void help_groups_options_and_follows_the_width(void **state)
{
    (void)state;
    static const struct tr_option_group groups[] = {
        {"First", "threads help"}, {"The rest", NULL}, {"Last", "set"}, {NULL, NULL}};
    char *text;
    assert_int_equal(tr_options_help_in("do", "Does it, in lines of at most forty columns.", table, COUNT,
                                        groups, 40, &text),
                     TR_OK);
    static const char *const parts[] = {
        "Does it, in lines of at most forty\ncolumns.\n", "\nArguments:\n  MODEL   model file in YAML\n",
        "\nFirst:\n  -t, --threads N\n          threads; 0: all cores (0 ..\n          256; default: 0)\n",
        "  -h, --help\n          show this text\n\nThe rest:\n  -o, --out-dir DIR\n",
        "  -r, --rate X\n          learning rate (> 0; required)\n\nLast:\n      --set PATH=VALUE\n"};
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        if (!at) fail_msg("\"%s\" is missing, or out of place, in\n%s", parts[i], text);
    }
    assert_null(strstr(strstr(text, "--threads") + 1, "--threads"));
    tr_free(text);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    static const char *const arguments[] = {"m", "--rate=1", "--set", "a", "--set=b", "-ox", "y", "z", NULL};
    static const char *const environment[] = {"TRIREME_OUT_DIR=x", "TRIREME_SIZES=4", NULL};
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        struct command command;
        char *help = NULL;
        refuse_begin(at);
        tr_status status = tr_options_defaults(table, COUNT, &command);
        if (status == TR_OK) status = tr_options_environment(table, COUNT, "TRIREME_", environment, &command);
        if (status == TR_OK) status = tr_options_arguments(table, COUNT, 8, arguments, &command);
        if (status == TR_OK) status = tr_options_help("x", "y", table, COUNT, &help);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        release(&command);
        tr_free(help);
        assert_int_equal(tr_alloc_live(), live);
    }
    /* Refusals that build their message from parts. */
    static const char *const bad[][3] = {{"m", NULL}, {"m", "--thread=1", NULL}, {"m", "--lr=1", NULL}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            int64_t live = tr_alloc_live();
            struct command command;
            int count = bad[i][1] ? 2 : 1;
            assert_int_equal(tr_options_defaults(table, COUNT, &command), TR_OK);
            refuse_begin(at);
            tr_status status = tr_options_arguments(table, COUNT, count, bad[i], &command);
            done = refuse_end();
            assert_int_equal(status, done ? TR_EINVAL : TR_ENOMEM);
            release(&command);
            assert_int_equal(tr_alloc_live(), live);
        }
}

static void lists_of_texts_have_a_limit(void **state)
{
    static const char *words[TR_OPTION_STRINGS_MAX + 3];
    struct command command;
    (void)state;
    words[0] = "--rate=1";
    words[1] = "m";
    for (int i = 0; i <= TR_OPTION_STRINGS_MAX; i++) words[2 + i] = "--set=x";
    for (int more = 0; more < 2; more++) {
        assert_int_equal(tr_options_defaults(table, COUNT, &command), TR_OK);
        assert_int_equal(
            tr_options_arguments(table, COUNT, 2 + TR_OPTION_STRINGS_MAX + more, words, &command),
            more ? TR_EINVAL : TR_OK);
        assert_int_equal(command.set.count, TR_OPTION_STRINGS_MAX);
        release(&command);
    }
    assert_non_null(strstr(tr_error_message(), "more than 4096 items"));
}

/* A value after an option that takes none is not advised to be written with it. */
static void flags_have_no_value_behind_them(void **state)
{
    static const struct tr_option flag[] = {{.key = "quiet", .type = TR_OPTION_BOOL, .fallback = "false"}};
    bool quiet = false;
    (void)state;
    assert_int_equal(tr_options_arguments(flag, 1, 2, ARGUMENTS("--quiet", "x"), &quiet), TR_EINVAL);
    assert_string_equal(tr_error_message(), "unexpected argument \"x\"; --help shows the usage");
    assert_int_equal(tr_options_arguments(flag, 1, 1, ARGUMENTS("--no-other"), &quiet), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "unknown option --no-other"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(values_may_be_left_out),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(unknown_arguments_are_found),
        cmocka_unit_test(the_environment_is_read_where_allowed),
        cmocka_unit_test(help_explains_the_table),
        cmocka_unit_test(help_groups_options_and_follows_the_width),
        cmocka_unit_test(memory_may_fail_anywhere),
        cmocka_unit_test(lists_of_texts_have_a_limit),
        cmocka_unit_test(flags_have_no_value_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
