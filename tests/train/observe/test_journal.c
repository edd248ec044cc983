/* Journals of runs through the library: what they hold, and what becomes of a run whose journal cannot be
 * written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "support/training.h"

#include "base/alloc.h"
#include "report/run.h"
#include "train/observe/journal.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define STEPS 12

/* A run of STEPS steps, each of which is told of, in directories of the scratch place. */
static void run_in(const char *out, const char *journal, struct outcome *outcome)
{
    struct job job;
    char place[SCRATCH_PATH], other[SCRATCH_PATH];
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.log_every=1");
    job.settings.steps = STEPS;
    if (out) job.settings.out = scratch_join(place, family_place, out);
    job.settings.journal = journal && *journal ? scratch_join(other, family_place, journal) : journal;
    job_outcome(&job, outcome);
}

static struct tr_run *read_run(const char *directory)
{
    char path[SCRATCH_PATH];
    struct tr_run *run = NULL;
    must_train(tr_run_read(scratch_join(path, family_place, directory), &run));
    return run;
}

static void a_run_of_the_library_can_be_reported(void **state)
{
    (void)state;
    struct job job;
    char place[SCRATCH_PATH], *page;
    struct tr_report_settings settings = TR_REPORT_SETTINGS_INIT;
    family_job(&job, &families[0], family_place);
    job_set(&job, "train.log_every=1");
    job.settings.steps = STEPS;
    job.settings.out = scratch_join(place, family_place, "library");
    tr_trainer *trainer = job_trainer(&job);
    must_train(tr_trainer_set_command(trainer, "./my-program <a>"));
    must_train(tr_trainer_run(trainer, NULL, NULL));
    char hash[65];
    must_train(tr_trainer_hash(trainer, hash));
    tr_trainer_destroy(&trainer);

    struct tr_run *run = read_run("library");
    assert_true(run->ended);
    assert_string_equal(run->status, "ok");
    assert_string_equal(run->hash, hash);
    assert_string_equal(run->command, "./my-program <a>");
    assert_int_equal(run->points, STEPS);
    assert_true(run->seconds > 0 && run->speed > 0);
    assert_non_null(strstr(run->checkpoint, "library/checkpoint-00000012"));
    assert_int_equal(run->rank_count, 1);
    tr_run_destroy(&run);

    const char *const runs[] = {place};
    must_train(tr_report(runs, 1, &settings, &page));
    assert_non_null(strstr(page, hash));
    assert_non_null(strstr(page, "./my-program &lt;a&gt;"));
    tr_text_free(page);
}

/* The end of a run that failed says why, and names neither a hash nor a checkpoint that there is not. */
static void a_run_that_fails_says_so(void **state)
{
    (void)state;
    struct job job;
    char place[SCRATCH_PATH], path[SCRATCH_PATH];
    struct outcome outcome;
    struct tr_file_content journal;
    family_job(&job, &families[0], family_place);
    job_set(&job, "optimizer.rate=1e30");
    job.settings.out = scratch_join(place, family_place, "failed");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENONFINITE);
    must_train(tr_file_read(scratch_join(path, place, TR_JOURNAL_FILE), 1 << 20, &journal));
    const char *end = strstr(journal.data, "\"event\":\"end\"");
    assert_non_null(end);
    assert_non_null(strstr(end, "\"status\":\"not finite\""));
    assert_non_null(strstr(end, "\"message\":"));
    assert_null(strstr(end, "\"hash\""));
    assert_null(strstr(end, "\"checkpoint\""));
    tr_file_content_free(&journal);
}

static void the_settings_say_where(void **state)
{
    (void)state;
    struct outcome outcome;
    char path[SCRATCH_PATH];
    run_in(NULL, "elsewhere/below", &outcome);
    must_train(outcome.status);
    struct tr_run *run = read_run("elsewhere/below");
    assert_string_equal(run->hash, outcome.hash);
    tr_run_destroy(&run);
    run_in("silent", "", &outcome);
    must_train(outcome.status);
    assert_int_equal(outcome.checkpoints, 1);
    assert_false(tr_file_exists(scratch_join(path, family_place, "silent/" TR_JOURNAL_FILE)));
}

/* Texts of one, two and three tokens, the last of them with two labels: five labels in three examples. */
static const char tagged[] = "a\t1\nb a\t0 1\na b a\t0 - 1\n";
static const char tagger[] = "name: tagger\n"
                             "data: {train: {text: {path: tagged.tsv, tags: true}}}\n"
                             "layers: [{embedding: 4}, {dense: 2}]\n"
                             "optimizer: {rule: sgd, rate: 0.1}\n"
                             "train: {batch: 3, steps: 2, log_every: 1}\n";

static void speed_of(struct job *job, const char *out, double tokens_per_example)
{
    char place[SCRATCH_PATH];
    struct outcome outcome;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    job->settings.out = scratch_join(place, family_place, out);
    tr_trainer *trainer = job_trainer(job);
    must_train(tr_trainer_info(trainer, &info));
    if (isnan(tokens_per_example))
        assert_true(isnan(info.tokens_per_example));
    else
        assert_float_equal(info.tokens_per_example, tokens_per_example, 1e-12);
    trainer_outcome(trainer, &outcome);
    must_train(outcome.status);
    tr_trainer_destroy(&trainer);
    struct tr_run *run = read_run(out);
    if (isnan(tokens_per_example))
        assert_true(isnan(run->tokens));
    else
        assert_float_equal(run->tokens / run->speed, tokens_per_example, 1e-6);
    tr_run_destroy(&run);
}

static void tokens_are_counted_where_losses_are_of_tokens(void **state)
{
    (void)state;
    struct job job;
    char text[SCRATCH_PATH], model[SCRATCH_PATH];
    family_job(&job, &families[family_count - 1], family_place); /* windows of nine */
    speed_of(&job, "windows", 9);
    must_train(
        tr_file_write_atomic(NULL, scratch_join(text, family_place, "tagged.tsv"), tagged, strlen(tagged)));
    must_train(
        tr_file_write_atomic(NULL, scratch_join(model, family_place, "tagger.yaml"), tagger, strlen(tagger)));
    job_begin(&job, model);
    speed_of(&job, "tagger", 5.0 / 3);
    family_job(&job, &families[0], family_place);
    speed_of(&job, "images", NAN);
}

/* Three examples in batches of two: three steps learn from 2, 1 and 2 of them, or from 2 each where the rest
   of an epoch is dropped. */
static void examples_are_those_of_epochs(void **state)
{
    (void)state;
    static const double examples[] = {5, 6};
    for (int drops = 0; drops < 2; drops++) {
        struct job job;
        struct outcome outcome;
        char text[SCRATCH_PATH], model[SCRATCH_PATH], place[SCRATCH_PATH];
        must_train(tr_file_write_atomic(NULL, scratch_join(text, family_place, "tagged.tsv"), tagged,
                                        strlen(tagged)));
        must_train(tr_file_write_atomic(NULL, scratch_join(model, family_place, "tagger.yaml"), tagger,
                                        strlen(tagger)));
        job_begin(&job, model);
        job_set(&job, "train.batch=2");
        job_set(&job, "train.steps=3");
        job_set(&job, drops ? "train.last_batch=drop" : "train.last_batch=keep");
        job.settings.out = scratch_join(place, family_place, drops ? "dropped" : "kept");
        job_outcome(&job, &outcome);
        must_train(outcome.status);
        struct tr_run *run = read_run(drops ? "dropped" : "kept");
        assert_float_equal(run->speed * run->seconds, examples[drops], 1e-6);
        tr_run_destroy(&run);
    }
}

/* A failure leaves its message in the journal. */
static void a_failed_run_says_how_it_ended(void **state)
{
    (void)state;
    struct job job;
    struct outcome outcome;
    char place[SCRATCH_PATH];
    family_job(&job, &families[0], family_place);
    job_set(&job, "optimizer.rate=1e30");
    job.settings.out = scratch_join(place, family_place, "failed");
    job_outcome(&job, &outcome);
    assert_int_equal(outcome.status, TR_ENONFINITE);
    struct tr_run *run = read_run("failed");
    assert_true(run->ended);
    assert_string_equal(run->status, "not finite");
    assert_string_equal(run->message, outcome.message);
    tr_run_destroy(&run);
}

/* The run goes on to its end, and says once that it has no journal. */
static void expect_given_up(const struct outcome *outcome, const char *why)
{
    must_train(outcome->status);
    assert_int_equal(outcome->steps_seen, STEPS);
    assert_int_equal(outcome->warnings, 1);
    if (!strstr(outcome->warning, why)) fail_msg("\"%s\" lacks \"%s\"", outcome->warning, why);
    assert_non_null(strstr(outcome->warning, "the journal of the run is not written"));
}

static void what_is_in_its_place_is_left_alone(void **state)
{
    (void)state;
    struct outcome outcome;
    struct tr_file_content content;
    char target[SCRATCH_PATH], path[SCRATCH_PATH];
    scratch_join(target, family_place, "precious");
    must_train(tr_file_write_atomic(NULL, target, "precious", 8));
    must_train(tr_file_make_directory(NULL, scratch_join(path, family_place, "linked")));
    assert_int_equal(symlink(target, scratch_join(path, family_place, "linked/" TR_JOURNAL_FILE)), 0);
    run_in("linked", NULL, &outcome);
    expect_given_up(&outcome, "a symbolic link is not followed here");
    must_train(tr_file_read(target, 100, &content));
    assert_string_equal(content.data, "precious");
    tr_file_content_free(&content);

    must_train(tr_file_make_directory(NULL, scratch_join(path, family_place, "pipe")));
    assert_int_equal(mkfifo(scratch_join(path, family_place, "pipe/" TR_JOURNAL_FILE), 0600), 0);
    run_in("pipe", NULL, &outcome); /* nobody reads: it would wait for ever */
    expect_given_up(&outcome, "a regular file is needed");
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    run_in("pipe", NULL, &outcome);
    expect_given_up(&outcome, "a regular file is needed");
    close(reader);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* SIGXFSZ would end this program. What came before the limit stays readable, and a run that goes on writes
   behind it. */
static void a_file_size_limit_costs_the_journal_alone(void **state)
{
    (void)state;
    struct outcome outcome;
    limit_files(3500);
    run_in(NULL, "limited", &outcome);
    limit_files(RLIM_INFINITY);
    expect_given_up(&outcome, "File too large");
    struct tr_run *run = read_run("limited");
    assert_false(run->ended);
    assert_true(run->points > 0 && run->points < STEPS);
    tr_run_destroy(&run);

    struct tr_file_writer file;
    char path[SCRATCH_PATH], line[] = "{\"event\":\"end\",\"status\":\"ok\"}";
    must_train(
        tr_file_lines_begin(scratch_join(path, family_place, "limited/" TR_JOURNAL_FILE), true, &file));
    must_train(tr_file_lines_add(&file, line));
    must_train(tr_file_finish(&file, false));
    run = read_run("limited");
    assert_true(run->ended);
    tr_run_destroy(&run);
}

/* The members of an object that are told of a run are those facts, each by its name. */
static void facts_have_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double number;
        const char *text;
    } facts[] = {
        {"name", 0, "job"},
        {"model", 0, "job.yaml"},
        {"device", 0, "cpu (plain)"},
        {"out", 0, "runs/job"},
        {"resumed", 0, "runs/job/checkpoint-3"},
        {"seed", 11, NULL},
        {"parameters", 12, NULL},
        {"kept", 13, NULL},
        {"memory", 14, NULL},
        {"host_memory", 15, NULL},
        {"data_memory", 16, NULL},
        {"train_examples", 17, NULL},
        {"test_examples", 18, NULL},
        {"batch", 19, NULL},
        {"microbatches", 20, NULL},
        {"label_smoothing", 0.25, NULL},
        {"steps", 21, NULL},
        {"steps_per_epoch", 22, NULL},
        {"step", 23, NULL},
        {"settings", 0, "digest"},
        {"settings_text", 0, "seed: 11"},
        {"strategy", 0, "gossip"},
        {"strategy_options", 0, "{every: 2}"},
        {"ranks", 24, NULL},
        {"command", 0, "train job.yaml"},
    };
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    struct tr_json_writer json;
    json_error_t error;
    char *text;
    info.name = "job", info.model = "job.yaml", info.device = "cpu (plain)";
    info.resumed = "runs/job/checkpoint-3";
    info.seed = 11, info.parameters = 12, info.kept = 13, info.memory = 14;
    info.host_memory = 15, info.data_memory = 16, info.train_examples = 17, info.test_examples = 18;
    info.batch = 19, info.microbatches = 20, info.label_smoothing = 0.25;
    info.steps = 21, info.steps_per_epoch = 22, info.step = 23;
    info.digest = "digest", info.settings = "seed: 11";
    info.strategy = "gossip", info.strategy_options = "{every: 2}", info.ranks = 24;
    tr_json_begin(&json, false);
    tr_journal_add_start(&json, &info, "runs/job", "train job.yaml");
    must_train(tr_json_finish(&json, &text));
    json_t *root = json_loads(text, 0, &error);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        const json_t *value = json_object_get(root, facts[i].key);
        const char *told = json_string_value(value);
        if (facts[i].text ? !told || strcmp(told, facts[i].text) != 0
                          : !json_is_number(value) || json_number_value(value) != facts[i].number)
            fail_msg("%s is another one in %s", facts[i].key, text);
    }
    json_decref(root);
    tr_free(text);
}

/* The best evaluation, with the figure that decided if that is another one than loss and accuracy. */
static void the_best_has_what_decided(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"loss", "\"best\":{\"step\":3,\"set\":\"validation\",\"loss\":0.5,\"accuracy\":0.75}"},
        {"accuracy", "\"best\":{\"step\":3,\"set\":\"validation\",\"loss\":0.5,\"accuracy\":0.75}"},
        {"f1", "\"best\":{\"step\":3,\"set\":\"validation\",\"loss\":0.5,\"accuracy\":0.75,\"f1\":0.625}"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_train_info info = TR_TRAIN_INFO_INIT;
        const struct tr_journal_end end = {
            .exit = -1, .message = "", .tokens_per_second = NAN, .hash = "", .checkpoint = "", .best = &info};
        struct tr_json_writer json;
        char *text;
        info.best_step = 3, info.best_loss = 0.5, info.best_accuracy = 0.75, info.best_set = "validation";
        info.classification = true, info.monitor = cases[i][0], info.best_monitor = 0.625;
        tr_json_begin(&json, false);
        tr_journal_add_end(&json, &end);
        must_train(tr_json_finish(&json, &text));
        if (!strstr(text, cases[i][1])) fail_msg("no %s in %s", cases[i][1], text);
        tr_free(text);
    }
}

static void statistics_are_told(void **state)
{
    (void)state;
    static const struct tr_train_rank rank = {
        .bytes_sent = 1000, .bytes_shared = 50, .wait_seconds = 4, .compute_seconds = 5};
    static const int64_t bins[] = {10, 20, 0, 0};
    struct tr_train_statistics statistics = {.ranks = 1,
                                             .rank = &rank,
                                             .steps = 40,
                                             .asynchronous = true,
                                             .staleness = bins,
                                             .staleness_bins = 4,
                                             .dropped = 3};
    struct tr_json_writer json;
    char *text;
    tr_json_begin(&json, false);
    tr_journal_add_statistics(&json, &statistics);
    must_train(tr_json_finish(&json, &text));
    assert_string_equal(text,
                        "{\"statistics\":{\"steps\":40,\"ranks\":[{\"bytes_sent\":1000,\"bytes_received\":0,"
                        "\"bytes_shared\":50,\"wait_seconds\":4,\"compute_seconds\":5,"
                        "\"contributions\":0}],\"staleness\":[10,20],\"dropped\":3}}");
    tr_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_the_library_can_be_reported),
        cmocka_unit_test(a_run_that_fails_says_so),
        cmocka_unit_test(the_settings_say_where),
        cmocka_unit_test(tokens_are_counted_where_losses_are_of_tokens),
        cmocka_unit_test(examples_are_those_of_epochs),
        cmocka_unit_test(a_failed_run_says_how_it_ended),
        cmocka_unit_test(what_is_in_its_place_is_left_alone),
        cmocka_unit_test(a_file_size_limit_costs_the_journal_alone),
        cmocka_unit_test(facts_have_their_names),
        cmocka_unit_test(the_best_has_what_decided),
        cmocka_unit_test(statistics_are_told),
    };
    return cmocka_run_group_tests(tests, family_place_make, family_place_remove);
}
