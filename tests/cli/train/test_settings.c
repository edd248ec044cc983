/* The options of trireme train, and the settings of the library that they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fail.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/train/report.h"
#include "cli/train/train.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Reads the words, which end with NULL; release with cli_command_release(). */
static struct cli_train_options *options_of(const char *const *words, const char *const *environment)
{
    void *options;
    int count = 0;
    while (words[count]) count++;
    if (cli_command_read(&cli_train, count, words, environment, &options) != TR_OK)
        fail_msg("%s", tr_error_message());
    return options;
}

static struct tr_train_settings settings_of(const struct cli_train_options *options)
{
    struct tr_train_settings settings;
    memset(&settings, 0x55, sizeof settings);
    cli_train_settings(options, &settings);
    return settings;
}

static void release(struct cli_train_options *options)
{
    void *all = options;
    cli_command_release(&cli_train, &all);
}

static void without_options_there_are_defaults(void **state)
{
    (void)state;
    struct cli_train_options *options = options_of(WORDS("--resume=run"), WORDS(NULL));
    struct tr_train_settings s = settings_of(options);
    assert_int_equal(s.size, sizeof s);
    assert_string_equal(s.resume, "run");
    assert_string_equal(s.device, "cpu");
    assert_string_equal(s.transport, "none");
    assert_string_equal(s.shares, "equal");
    const char *const none[] = {s.model,      s.isa,           s.out,           s.strategy, s.slow,
                                s.trace,      s.tensorboard,   s.parameters_on, s.journal,  s.data_cache,
                                s.from,       s.program_cache, s.replay,        s.schedule, s.teacher,
                                s.model_text, s.directory,     s.system_root};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        if (none[i]) fail_msg("text %zu is \"%s\"", i, none[i]);
    const bool off[] = {s.resume_changed, s.has_seed,        s.profile,  s.continues,
                        s.bind,           s.no_memory_check, s.outlives, s.receipt};
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        if (off[i]) fail_msg("choice %zu is made", i);
    assert_true(s.set_count == 0 && s.threads == 0 && s.seed == 0 && s.steps == 0 && s.epochs == 0);
    assert_true(s.delay_seed == 0 && s.simulate_delays == 0 && s.simulate_workers == 4);
    assert_true(s.timeout == 60 && s.patience == 0);
    assert_true(s.trace_first == 0 && s.trace_steps == 100 && s.histograms == 0 && s.record_digests == 0);
    assert_true(s.data_cache_bytes == (int64_t)10 << 30 && s.replicas_of_state == 0);
    assert_false(options->overwrite || options->quiet || options->placement);
    assert_int_equal(options->log, CLI_LOG_TEXT);
    assert_null(options->launched);
    release(options);
}

static void each_value_has_its_place(void **state)
{
    (void)state;
    struct cli_train_options *options =
        options_of(WORDS("--resume=a", "--from=b", "--teacher=c", "--replay=d", "--schedule=e",
                         "--transport=mpi", "--strategy=pipeline", "--shares=3,1", "--parameters-on=ref",
                         "--device=gpu", "--isa=avx2", "--trace=f", "--tensorboard=g", "--data-cache-dir=h",
                         "--out=i", "--launched=j", "--slow=1:5", "--slow", "2:3", "--set=x.y=1", "-s", "z=2",
                         "--simulate-delays=11", "--simulate-workers=12", "--threads=13", "--seed=14",
                         "--steps=15", "--epochs=16", "--trace-first=17", "--trace-steps=18",
                         "--histograms=19", "--record-digests=20", "--seed-delays=21", "--timeout=2500",
                         "--patience=3500", "--replicas-of-state=1", "--data-cache-size=22", "--log=none"),
                   WORDS(NULL));
    struct tr_train_settings s = settings_of(options);
    const char *const texts[][2] = {{s.resume, "a"},
                                    {s.from, "b"},
                                    {s.teacher, "c"},
                                    {s.replay, "d"},
                                    {s.schedule, "e"},
                                    {s.transport, "mpi"},
                                    {s.strategy, "pipeline"},
                                    {s.shares, "3,1"},
                                    {s.parameters_on, "ref"},
                                    {s.device, "gpu"},
                                    {s.isa, "avx2"},
                                    {s.trace, "f"},
                                    {s.tensorboard, "g"},
                                    {options->cache.directory, "h"},
                                    {options->out, "i"},
                                    {options->launched, "j"},
                                    {options->slow.item[0], "1:5"},
                                    {options->slow.item[1], "2:3"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) assert_string_equal(texts[i][0], texts[i][1]);
    assert_int_equal(s.set_count, 2);
    assert_string_equal(s.set[0], "x.y=1");
    assert_string_equal(s.set[1], "z=2");
    assert_int_equal(options->slow.count, 2);
    assert_true(s.simulate_delays == 11 && s.simulate_workers == 12 && s.threads == 13);
    assert_true(s.has_seed && s.seed == 14 && s.steps == 15 && s.epochs == 16);
    assert_true(s.trace_first == 17 && s.trace_steps == 18 && s.histograms == 19 && s.record_digests == 20);
    assert_true(s.delay_seed == 21 && s.timeout == 2.5 && s.patience == 3.5);
    assert_true(s.replicas_of_state == 1 && s.data_cache_bytes == (int64_t)22 << 20);
    assert_int_equal(options->log, CLI_LOG_NONE);
    release(options);
    /* The least seed is one. */
    options = options_of(WORDS("--resume=a", "--seed=0"), WORDS(NULL));
    s = settings_of(options);
    assert_true(s.has_seed && s.seed == 0);
    release(options);
}

/* The choices that are made, one bit for each. */
static unsigned choices_of(const struct cli_train_options *options)
{
    struct tr_train_settings s = settings_of(options);
    const bool choices[] = {s.resume_changed,    s.bind,
                            s.no_memory_check,   s.outlives,
                            s.continues,         s.profile,
                            s.receipt,           options->overwrite,
                            options->quiet,      options->placement,
                            !options->cache.use, s.tensorboard != NULL};
    unsigned made = 0;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++) made |= (unsigned)choices[i] << i;
    return made;
}

static void each_choice_is_one(void **state)
{
    (void)state;
    static const char *const words[] = {"--resume-changed", "--bind",          "--no-memory-check",
                                        "--outlives",       "--continue",      "--profile",
                                        "--receipt",        "--overwrite",     "--quiet",
                                        "--placement",      "--no-data-cache", "--tensorboard"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct cli_train_options *options = options_of(WORDS("--resume=a", words[i]), WORDS(NULL));
        if (choices_of(options) != 1U << i) fail_msg("%s chooses %#x", words[i], choices_of(options));
        release(options);
    }
}

/* What a launcher says, and what is set once for all runs. */
static void variables_have_their_places(void **state)
{
    (void)state;
    struct cli_train_options *options = options_of(
        WORDS("--resume=a", "--threads=3"),
        WORDS("TRIREME_TRANSPORT=local", "TRIREME_BIND=true", "TRIREME_MEMORY_CHECK=false",
              "TRIREME_TIMEOUT=1500", "TRIREME_PATIENCE=4500", "TRIREME_OUTLIVES=true",
              "TRIREME_CONTINUE=true", "TRIREME_LAUNCHED=me", "TRIREME_THREADS=2", "TRIREME_DEVICE=ref",
              "TRIREME_ISA=plain", "TRIREME_DATA_CACHE=false", "TRIREME_DATA_CACHE_DIR=there",
              "TRIREME_DATA_CACHE_SIZE=5", "TRIREME_STEPS=9", "TRIREME_SEED=9", "TRIREME_OUT=x"));
    struct tr_train_settings s = settings_of(options);
    assert_string_equal(s.transport, "local");
    assert_string_equal(s.device, "ref");
    assert_string_equal(s.isa, "plain");
    assert_string_equal(options->launched, "me");
    assert_string_equal(options->cache.directory, "there");
    assert_true(s.bind && s.no_memory_check && s.outlives && s.continues && !options->cache.use);
    assert_true(s.timeout == 1.5 && s.patience == 4.5 && s.data_cache_bytes == (int64_t)5 << 20);
    assert_int_equal(s.threads, 3);                            /* the command line has the last word */
    assert_true(s.steps == 0 && !s.has_seed && !options->out); /* those of a run have no variables */
    release(options);
}

static void numbers_have_limits(void **state)
{
    (void)state;
    static const char *const good[] = {"--simulate-delays=0",
                                       "--simulate-workers=1",
                                       "--simulate-workers=4095",
                                       "--timeout=1",
                                       "--timeout=1000000000000",
                                       "--patience=0",
                                       "--patience=1000000000000",
                                       "--replicas-of-state=1",
                                       "--trace-first=0",
                                       "--trace-steps=1",
                                       "--histograms=0",
                                       "--record-digests=0",
                                       "--seed=-1",
                                       "--steps=0",
                                       "--epochs=0",
                                       "--seed-delays=0",
                                       "--data-cache-size=1",
                                       "--data-cache-size=1000000000000"};
    static const char *const bad[] = {"--simulate-delays=-1",
                                      "--simulate-workers=0",
                                      "--simulate-workers=4096",
                                      "--timeout=0",
                                      "--timeout=1000000000001",
                                      "--patience=-1",
                                      "--patience=1000000000001",
                                      "--replicas-of-state=2",
                                      "--replicas-of-state=-1",
                                      "--trace-first=-1",
                                      "--trace-steps=0",
                                      "--histograms=-1",
                                      "--record-digests=-1",
                                      "--seed=-2",
                                      "--steps=-1",
                                      "--epochs=-1",
                                      "--seed-delays=-1",
                                      "--data-cache-size=0",
                                      "--data-cache-size=1000000000001"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        release(options_of(WORDS("--resume=a", good[i]), WORDS(NULL)));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        void *options;
        const tr_status status = cli_command_read(&cli_train, 1, &bad[i], WORDS(NULL), &options);
        if (status != TR_EINVAL) fail_msg("%s is taken", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_there_are_defaults),
        cmocka_unit_test(each_value_has_its_place),
        cmocka_unit_test(each_choice_is_one),
        cmocka_unit_test(variables_have_their_places),
        cmocka_unit_test(numbers_have_limits),
    };
    return cmocka_run_group_tests_name("cli.settings", tests, NULL, NULL);
}
