/* The candidates of a word, as the scripts of the shells get them: which words are offered, and with what
 * description.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cli/complete/complete.h"
#include "refuse.h"

/* What is offered for the last of these words, which end with NULL; free with tr_free(). */
static char *offered(const char *const *words, enum cli_complete_paths *paths)
{
    struct cli_candidates out;
    char *lines;
    int count = 0;
    while (words[count]) count++;
    assert_int_equal(cli_complete(words, count, &out), TR_OK);
    if (paths) *paths = out.paths;
    assert_int_equal(tr_text_finish(&out.lines, &lines), TR_OK);
    return lines;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The first column, with blanks in between. */
static void expect_offered(const char *const *words, const char *expected)
{
    char names[8192] = "", *lines = offered(words, NULL);
    for (const char *line = lines; *line; line = strchr(line, '\n') + 1) {
        size_t length = strcspn(line, "\t"), used = strlen(names);
        assert_true(line[length] == '\t' && used + length + 2 < sizeof names);
        memcpy(names + used, line, length);
        strcpy(names + used + length, " ");
    }
    tr_free(lines);
    assert_string_equal(names, expected);
}

static void words_are_offered_where_they_can_stand(void **state)
{
    (void)state;
    expect_offered(WORDS("ve"), "verify version ");
    expect_offered(WORDS("-"), "--help --version ");
    expect_offered(WORDS("--v"), "--version ");
    expect_offered(WORDS("v"), "verify version ");
    expect_offered(WORDS("data", "to"), "tokenizer tokens ");
    expect_offered(WORDS("data", "list", ""), "");
    expect_offered(WORDS("nothing", ""), "");
    expect_offered(WORDS("data", "nothing", ""), "");
    expect_offered(WORDS("version", "--"), "--help ");
    expect_offered(WORDS("version", "-"), "--help ");
    expect_offered(WORDS("data", "list", "--"), "--dir --json --help ");
    /* A flag that is on by itself is offered by what turns it off. */
    expect_offered(WORDS("eval", "--no-a"), "--no-average ");
    expect_offered(WORDS("eval", "--ave"), "");
    expect_offered(WORDS("generate", "--no-e"), "--no-echo ");
    expect_offered(WORDS("train", "--no-overwrite"), "");
    /* After an option that awaits a value comes the value, and after it the next word. */
    expect_offered(WORDS("train", "--log", "j"), "json ");
    expect_offered(WORDS("train", "--log=t"), "--log=text ");
    expect_offered(WORDS("train", "--log=json", "--log", "n"), "none ");
    expect_offered(WORDS("train", "--overwrite", "--lo"), "--log ");
    expect_offered(WORDS("train", "--no-memory-check", "--lo"), "--log ");
    expect_offered(WORDS("train", "-q", "--lo"), "--log ");
    expect_offered(WORDS("train", "-t", "4", "--lo"), "--log ");
    expect_offered(WORDS("train", "-t4", "--lo"), "--log ");
    expect_offered(WORDS("train", "--tensorboard", "--lo"), "--log "); /* may stand alone */
    expect_offered(WORDS("train", "--set-name=", "x"), "");
    expect_offered(WORDS("completion", "z"), "zsh ");
    expect_offered(WORDS("completion", "zsh", "b"), "");
    expect_offered(WORDS("completion", "-", "b"), ""); /* as a name it is an argument */
    /* After -- nothing is an option any more. */
    expect_offered(WORDS("completion", "--", "--h"), "");
    expect_offered(WORDS("completion", "--", "f"), "fish ");
    expect_offered(WORDS("completion", "--help", "f"), "fish ");
    /* A list takes more words, others end. */
    expect_offered(WORDS("data", "verify", "mnist", "cif"), "cifar-10 ");
    expect_offered(WORDS("data", "fetch", "mnist", "sst2", "cif"), "cifar-10 ");
    expect_offered(WORDS("data", "show", "mnist", "cif"), "");
    /* Words of a command behind another one. */
    expect_offered(WORDS("launch", "--on-l"), "--on-loss ");
    expect_offered(WORDS("launch", "--on-loss", "s"), "stop shrink ");
    expect_offered(WORDS("launch", "-n", "2", ""), "train ");
    expect_offered(WORDS("launch", "-n", "2", "train", "--log", "j"), "json ");
    expect_offered(WORDS("launch", "train", "--on-l"), "");
    expect_offered(WORDS("launch", "--", "train", "--log", "j"), "");
    expect_offered(WORDS("help", "che"), "cheatsheet ");
    expect_offered(WORDS("help", "lau"), "launch ");
}

static void settings_and_strategies(void **state)
{
    (void)state;
    expect_offered(WORDS("train", "-s", "optimizer.schedule.k"), "optimizer.schedule.kind= ");
    expect_offered(WORDS("train", "-s", "distill.te"),
                   "distill.teacher= distill.temperature= distill.teacher_hash= ");
    expect_offered(WORDS("train", "--set=train.shuf"), "--set=train.shuffle= ");
    expect_offered(WORDS("train", "--set", "train.shuffle="), "train.shuffle=true train.shuffle=false ");
    expect_offered(WORDS("train", "--set", "train.shuffle=f"), "train.shuffle=false ");
    expect_offered(WORDS("train", "--set", "optimizer.schedule.k"), "optimizer.schedule.kind= ");
    expect_offered(WORDS("train", "--set", "strategy.pipe"),
                   "strategy.pipeline.stages= strategy.pipeline.cut= ");
    expect_offered(WORDS("train", "--set", "strategy=pi"), "strategy=pipeline ");
    expect_offered(WORDS("train", "--strategy", "pipeline,"), "pipeline,stages= pipeline,cut= ");
    expect_offered(WORDS("train", "--strategy", "pi"), "pipeline ");
    expect_offered(WORDS("train", "--strategy", "al"), "allreduce ");
    expect_offered(WORDS("compare", "--strategies", "al"), "allreduce all ");
    expect_offered(WORDS("compare", "--strategies", "allreduce,pi"), "allreduce,pipeline ");
    expect_offered(WORDS("compare", "--strategies", "allreduce,pipeline,s"), "allreduce,pipeline,stages= ");
    expect_offered(WORDS("train", "-s", "optimizer.ru"), "optimizer.rule= ");
    char *begun = offered(WORDS("train", "--set", "strat"), NULL),
         *ended = offered(WORDS("train", "-s", "strategy="), NULL);
    assert_int_equal(strncmp(begun, "strategy=\thow processes share the run\n", 38), 0);
    assert_int_equal(strncmp(ended, "strategy=allreduce\t", 19), 0);
    assert_null(strstr(ended, "strategy=\t"));
    tr_free(begun);
    tr_free(ended);
    expect_offered(WORDS("train", "--set", "seed="), "seed=1 "); /* what it is without */
    expect_offered(WORDS("train", "--set", "optimizer.rate="), "");
    expect_offered(WORDS("train", "--set", "distill.teacher="), "");
    /* Every part of a model file has its keys. */
    expect_offered(WORDS("train", "--set", "data.validation_sp"), "data.validation_split= ");
    expect_offered(WORDS("train", "--set", "input.sca"), "input.scale= ");
    expect_offered(WORDS("train", "--set", "loss.label_sm"), "loss.label_smoothing= ");
    expect_offered(WORDS("train", "--set", "adapters.ra"), "adapters.rank= ");
    expect_offered(WORDS("train", "--set", "train.evaluate_e"), "train.evaluate_every= ");
}

static void paths_are_left_to_the_shell(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        enum cli_complete_paths paths;
    } cases[] = {
        {{"train", "--trace", ""}, CLI_COMPLETE_FILES}, {{"train", "--out", ""}, CLI_COMPLETE_DIRECTORIES},
        {{"train", "--log", ""}, CLI_COMPLETE_NONE},    {{"train", "--seed", ""}, CLI_COMPLETE_NONE},
        {{"data", "tokens", ""}, CLI_COMPLETE_FILES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum cli_complete_paths paths;
        tr_free(offered(cases[i].words, &paths));
        assert_int_equal(paths, cases[i].paths);
    }
}

/* ---- a candidate ---- */

static void expect_line(const char *word, const char *candidate, const char *about, const char *expected)
{
    struct cli_candidates out = {.word = word};
    tr_text_add(&out.lines, "");
    cli_candidates_add(&out, candidate, about);
    assert_string_equal(out.lines.bytes, expected);
    tr_text_release(&out.lines);
}

/* Seventy-one letters, a blank and ten letters. */
#define LONG "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg"

static void descriptions_are_short(void **state)
{
    (void)state;
    expect_line("", "name", NULL, "name\t\n");
    expect_line("", "name", "", "name\t\n");
    expect_line("na", "name", "what it is; and more", "name\twhat it is\n");
    expect_line("", "name", "; more", "name\t\n");
    expect_line("nb", "name", "what it is", "");
    expect_line("names", "name", "what it is", "");
    expect_line("name", "name", "same", "name\tsame\n");
    expect_line("", "name", LONG "h2", "name\t" LONG "h2\n");        /* 72 bytes */
    expect_line("", "name", LONG " 23", "name\t" LONG " ...\n");     /* 73 */
    expect_line("", "name", LONG "h2 45", "name\t" LONG "h2 ...\n"); /* a blank after 72 */
    expect_line("", "name", LONG " 2345; more", "name\t" LONG " ...\n");
    expect_line("", "name", LONG LONG, "name\t ...\n"); /* one word */
    expect_line("", "two\nlines", "x", "");
    expect_line("", "a\ttab", "x", "");
    expect_line("", "a\rreturn", "x", "");
    struct cli_candidates out = {.word = "--a=b"};
    tr_text_add(&out.lines, "");
    cli_candidates_join(&out, "--a=", "bc", "/", NULL);
    cli_candidates_join(&out, "--a=", "c", "/", NULL);
    assert_string_equal(out.lines.bytes, "--a=bc/\t\n");
    tr_text_release(&out.lines);
    char name[1100];
    for (int length = 1022; length <= 1025; length++) {
        struct cli_candidates one = {.word = ""};
        memset(name, 'x', sizeof name);
        name[length] = '\0';
        tr_text_add(&one.lines, "");
        cli_candidates_add(&one, name, NULL);
        assert_int_equal(one.lines.length, length < 1024 ? length + 2 : 0);
        tr_text_release(&one.lines);
    }
}

static void without_memory_nothing_stays(void **state)
{
    (void)state;
    static const char *const lines[][4] = {
        {"train", "--log=j"}, {"train", "--set", "train.shuffle="}, {"train", "--strategy", "pipeline,"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int64_t at = 0, done = 0; !done; at++) {
            struct cli_candidates out;
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            const tr_status status = cli_complete(lines[i], lines[i][2] ? 3 : 2, &out);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            tr_text_release(&out.lines);
            assert_int_equal(tr_alloc_live(), live);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_offered_where_they_can_stand),
        cmocka_unit_test(settings_and_strategies),
        cmocka_unit_test(paths_are_left_to_the_shell),
        cmocka_unit_test(descriptions_are_short),
        cmocka_unit_test(without_memory_nothing_stays),
    };
    return cmocka_run_group_tests_name("cli.candidates", tests, NULL, NULL);
}
