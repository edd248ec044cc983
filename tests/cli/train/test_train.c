/* trireme train with pipes: what it prints, where checkpoints go, resuming, the same hash everywhere,
 * failures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files/file.h"
#include "base/text/json.h"
#include "cli/session.h"

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void test_a_run_in_a_pipe(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", NULL), 0);
    const char *out = session.text[0];
    assert_string_equal(session.text[1], "");
    assert_null(strpbrk(out, "\033\r"));
    assert_non_null(strstr(out, "job         tiny (tiny.yaml)\n"));
    assert_non_null(strstr(out, "data        64 examples, 64 to test\n"));
    assert_non_null(strstr(out, "batch       10 in 3 microbatches\n"));
    assert_non_null(strstr(out, "output      runs/tiny\n"));
    assert_non_null(strstr(out, "\nstep  1/40  loss "));
    for (int step = 10; step <= 40; step += 10) {
        char line[32];
        snprintf(line, sizeof line, "\nstep %d/40  loss ", step);
        assert_non_null(strstr(out, line));
    }
    assert_int_equal(count_of(out, "examples/s "), 5);
    assert_non_null(strstr(out, "on test (64 examples)\n"));
    assert_non_null(strstr(out, "\ntest        accuracy "));
    assert_non_null(strstr(out, "\ncheckpoint  runs/tiny/checkpoint-00000040\n"));
    hash_in(out);
    assert_true(tr_file_exists("runs/tiny/checkpoint-00000040/manifest.json"));
    session_release(&session);
}

static void test_a_language_model_tells_its_perplexity(void **state)
{
    (void)state;
    struct session session;
    write_text("letters.txt", "the dog runs and the cat sleeps\n");
    write_text("letters.yaml", "name: letters\n"
                               "data: {train: {corpus: {path: letters.txt, unit: characters, window: 4}},\n"
                               "       test: {corpus: {path: letters.txt, unit: characters, window: 4}}}\n"
                               "layers: [{embedding: 4}, {dense: 99}]\n"
                               "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 2}\n");
    assert_int_equal(run(&session, "train", "letters.yaml", NULL), 0);
    const char *line = strstr(session.text[0], "\ntest        perplexity ");
    double perplexity = 0, accuracy = 0, loss = 0;
    assert_non_null(line);
    assert_int_equal(
        sscanf(line, " test perplexity %lf, accuracy %lf, loss %lf (", &perplexity, &accuracy, &loss), 3);
    /* e to the loss, as far as it is printed. */
    assert_true(perplexity > 0.99 * exp(loss) && perplexity < 1.01 * exp(loss));
    assert_non_null(strstr(session.text[0], "next        trireme eval runs/letters\n"));
    session_release(&session);
}

/* The next command is one that works: without test data it looks at those that the run was judged by. */
static void test_validation_data_are_next(void **state)
{
    (void)state;
    struct session session;
    write_text("points.csv", "x,kind\n1,a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n9,a\n10,b\n11,a\n12,b\n");
    write_text("points.yaml",
               "name: points\n"
               "data: {train: {csv: {path: points.csv, label_columns: kind}}, validation_split: 0.5}\n"
               "layers: [{dense: 2}]\n"
               "optimizer: {rule: sgd, rate: 0.1}\ntrain: {batch: 2, steps: 2}\n");
    assert_int_equal(run(&session, "train", "points.yaml", NULL), 0);
    assert_non_null(strstr(session.text[0], "next        trireme predict runs/points --set-name validation "
                                            "--index 0,1,2 --show\n"));
    session_release(&session);
    assert_int_equal(run(&session, "predict", "runs/points", "--set-name", "validation", "--index", "0,1,2",
                         "--show", NULL),
                     0);
    session_release(&session);
}

/* The hash of `out`'s run, which is made with three more arguments. */
static const char *hash_with(const char *out, const char *a, const char *b, const char *c)
{
    static char kept[65];
    struct session session;
    int code = run(&session, "train", "tiny.yaml", "--out", out, a, b, c, NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    strcpy(kept, hash_in(session.text[0]));
    session_release(&session);
    return kept;
}

static void test_the_same_hash_everywhere(void **state)
{
    (void)state;
    char first[65];
    strcpy(first, hash_with("h1", "--threads=1", NULL, NULL));
    assert_string_equal(hash_with("h2", "--threads=2", NULL, NULL), first);
    assert_string_equal(hash_with("h3", "--threads=3", "--isa=plain", NULL), first);
    assert_string_equal(hash_with("h4", "--device", "ref", NULL), first);
    assert_string_equal(hash_with("h5", "--log", "none", NULL), first);
    assert_string_not_equal(hash_with("h6", "--seed", "2", NULL), first);
    assert_string_not_equal(hash_with("h7", "--set", "optimizer.rate=0.02", NULL), first);
}

static void test_resuming_ends_at_the_same_hash(void **state)
{
    (void)state;
    struct session session;
    char whole[65];
    strcpy(whole, hash_with("whole", NULL, NULL, NULL));
    hash_with("part", "--steps", "17", NULL);
    /* By directory, with another number of threads; output goes on there. */
    assert_int_equal(run(&session, "train", "--resume", "part", "--steps", "40", "--threads", "3", NULL), 0);
    assert_string_equal(hash_in(session.text[0]), whole);
    assert_non_null(strstr(session.text[0], "resumed     part/checkpoint-00000017, step 17\n"));
    assert_non_null(strstr(session.text[0], "output      part\n"));
    session_release(&session);
    /* By the checkpoint itself, with the model file. */
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "-r", "part/checkpoint-00000017", "-o", "part3", NULL), 0);
    assert_string_equal(hash_in(session.text[0]), whole);
    session_release(&session);
    /* What is finished stays finished. */
    assert_int_equal(run(&session, "train", "--resume", "whole", NULL), 0);
    assert_string_equal(hash_in(session.text[0]), whole);
    session_release(&session);
}

static void test_checkpoints_are_not_lost(void **state)
{
    (void)state;
    struct session session;
    hash_with("kept", "--steps", "20", NULL);
    int code = run(&session, "train", "tiny.yaml", "--out", "kept", NULL);
    expect_error(2, "--overwrite", &session, code);
    assert_non_null(strstr(session.text[1], "--resume kept"));
    assert_non_null(strstr(session.text[1], "--out"));
    session_release(&session);
    assert_true(tr_file_exists("kept/checkpoint-00000020/manifest.json"));
    /* A mistake costs nothing, even with --overwrite. */
    expect_exit(2, "train", "tiny.yaml", "--out", "kept", "--overwrite", "--set", "layers.0.units=0");
    assert_true(tr_file_exists("kept/checkpoint-00000020/manifest.json"));
    expect_exit(0, "train", "tiny.yaml", "--out", "kept", "--overwrite", "--steps", "3");
    assert_false(tr_file_exists("kept/checkpoint-00000020"));
    assert_true(tr_file_exists("kept/checkpoint-00000003/manifest.json"));
}

static void test_a_refused_job_leaves_nothing(void **state)
{
    (void)state;
    static const char *const mistakes[] = {
        "optimizr.rate=1",                                        /* known when the file is read */
        "layers.0.conv={filters: 2, kernel: 9}",                  /* when the network is built */
        "data.train.idx.labels=nowhere",                          /* when the training data are opened */
        "data.test={idx: {images: nowhere, labels: labels.idx}}", /* or those of the test */
        "data.validation={idx: {images: images.idx}}",
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        expect_exit(2, "train", "tiny.yaml", "--out", "refused/run", "--set", mistakes[i]);
        assert_false(tr_file_exists("refused"));
    }
    expect_exit(2, "train", "tiny.yaml", "--out", "refused/run", "--isa", "abacus");
    assert_false(tr_file_exists("refused"));
}

static void test_changed_settings_are_named(void **state)
{
    (void)state;
    hash_with("changed", "--steps", "2", NULL);
    static const char *const changes[][2] = {
        {"seed=9", "(seed 1, here 9;"},
        {"train.batch=16", "(train.batch 10, here 16;"},
        {"optimizer.rate=1", "(optimizer.rate 0.01, here 1;"},
        {"optimizer.schedule=cosine", "(schedule.kind \"constant\", here \"cosine\";"},
        {"layers.dense1.bias=0.5", "bias not given, here 0.5;"},
        {"layers=[flatten, {dense: 3}]", "layers["},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct session session;
        int code = run(&session, "train", "tiny.yaml", "--resume", "changed", "--set", changes[i][0], NULL);
        expect_error(2, changes[i][1], &session, code);
        session_release(&session);
    }
}

static void test_checkpoints_by_the_clock(void **state)
{
    (void)state;
    expect_exit(0, "train", "tiny.yaml", "--out", "clock", "--steps", "4", "--set",
                "train.checkpoint_seconds=1e-9", "--set", "train.keep=9");
    for (int step = 1; step <= 4; step++) {
        char path[64];
        snprintf(path, sizeof path, "clock/checkpoint-%08d/manifest.json", step);
        assert_true(tr_file_exists(path));
    }
}

static void test_a_job_stays_below_its_directory(void **state)
{
    (void)state;
    expect_exit(0, "train", "tiny.yaml", "--set", "name=\"../../evil job\"", "--steps", "1");
    assert_true(tr_file_exists("runs/-.-..-evil-job/checkpoint-00000001"));
}

/* Parses each line and demands that the events come in the given order. */
static void expect_events(const char *text, const char *const *events)
{
    for (; *events; events++) {
        tr_json *document;
        const char *kind;
        size_t length = strcspn(text, "\n");
        if (tr_json_parse(text, length, "line", &document) != TR_OK) fail_msg("%s", tr_error_message());
        assert_int_equal(tr_json_get_text(tr_json_root(document), "line", "event", &kind), TR_OK);
        assert_string_equal(kind, *events);
        tr_json_destroy(&document);
        assert_int_equal(text[length], '\n');
        text += length + 1;
    }
    assert_string_equal(text, "");
}

static void test_json_lines(void **state)
{
    (void)state;
    static const char *const events[] = {"start", "step", "step", "checkpoint", "evaluation", "end", NULL};
    struct session session;
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "-o", "json", "--log", "json", "--steps", "10", NULL), 0);
    expect_events(session.text[0], events);
    /* People are told on the other stream. */
    assert_non_null(strstr(session.text[1], "output      json\n"));
    assert_null(strstr(session.text[1], "examples/s 1"));
    const char *last = strstr(session.text[0], "{\"event\":\"end\"");
    assert_non_null(strstr(last, "\"status\":\"ok\",\"exit\":0,"));
    assert_non_null(strstr(last, hash_in(session.text[1])));
    session_release(&session);
    assert_int_equal(
        run(&session, "train", "tiny.yaml", "-o", "json2", "--log=json", "--steps=10", "-q", NULL), 0);
    expect_events(session.text[0], events);
    assert_string_equal(session.text[1], "");
    session_release(&session);
}

static void test_less_output(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "l1", "--log", "none", NULL), 0);
    assert_null(strstr(session.text[0], "\nstep "));
    hash_in(session.text[0]);
    session_release(&session);
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "l2", "--quiet", NULL), 0);
    assert_string_equal(session.text[0], "");
    assert_string_equal(session.text[1], "");
    session_release(&session);
}

/* 64 examples in batches of 10 are 7 steps an epoch. */
static void test_epochs_in_place_of_steps(void **state)
{
    (void)state;
    struct session session;
    /* The file has steps. */
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "epochs", "--epochs", "2", NULL), 0);
    assert_non_null(strstr(session.text[0], "\nsteps       14, 7 an epoch (2 epochs)\n"));
    session_release(&session);
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "epoch", "--epochs", "1", NULL), 0);
    assert_non_null(strstr(session.text[0], "\nsteps       7, 7 an epoch (1 epoch)\n"));
    session_release(&session);
    assert_int_equal(run(&session, "train", "--resume", "epochs", "--epochs", "3", NULL), 0);
    assert_non_null(strstr(session.text[0], "\ntrained     7 steps in "));
    session_release(&session);
    assert_int_equal(run(&session, "train", "--resume", "epochs", "--steps", "22", NULL), 0);
    assert_non_null(strstr(session.text[0], "\ntrained     1 step in "));
    session_release(&session);
    assert_int_equal(run(&session, "train", "tiny.yaml", "--resume", "epochs", "--epochs", "4", NULL), 0);
    assert_non_null(strstr(session.text[0], "\ntrained     6 steps in "));
    session_release(&session);
    /* The file has epochs. */
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "epochs2", "--set", "train.steps=0", "--set",
                         "train.epochs=9", "--steps", "3", NULL),
                     0);
    assert_non_null(strstr(session.text[0], "\ntrained     3 steps in "));
    session_release(&session);
    int code = run(&session, "train", "tiny.yaml", "-o", "epochs3", "--epochs", "1", "--steps", "1", NULL);
    expect_error(2, "--steps", &session, code);
    session_release(&session);
}

static void test_numbered_directories(void **state)
{
    (void)state;
    struct session session;
    for (int i = 1; i <= 3; i++) {
        char line[64];
        assert_int_equal(run(&session, "train", "tiny.yaml", "--out", "auto", "--steps", "1", "--set",
                             "name=counted", NULL),
                         0);
        snprintf(line, sizeof line, "\noutput      runs/counted-%d\n", i);
        assert_non_null(strstr(session.text[0], line));
        session_release(&session);
    }
    /* The next number is behind the last one, whatever was removed. */
    assert_int_equal(tr_file_remove(NULL, "runs/counted-2"), TR_OK);
    expect_exit(0, "train", "tiny.yaml", "--out=auto", "--steps=1", "--set", "name=counted");
    assert_true(tr_file_exists("runs/counted-4/checkpoint-00000001"));
    assert_false(tr_file_exists("runs/counted-2"));
    /* A job that is refused takes no number. */
    expect_exit(2, "train", "tiny.yaml", "--out=auto", "--set", "name=counted", "--set",
                "data.train.idx.labels=nowhere");
    assert_false(tr_file_exists("runs/counted-5"));
    /* What goes on elsewhere is called after its job. */
    assert_int_equal(
        run(&session, "train", "--resume", "runs/counted-4", "--out", "auto", "--steps", "2", NULL), 0);
    assert_non_null(strstr(session.text[0], "\noutput      runs/counted-5\n"));
    session_release(&session);
    assert_true(tr_file_exists("runs/counted-5/checkpoint-00000002"));
}

static void test_keys_of_short_forms(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "short", "--steps", "2", "--set",
                         "strategy=allreduce", "--set", "strategy.bucket=2", "--set",
                         "layers.dense2.use_bias=false", "--set", "layers.dropout1.name=less", NULL),
                     0);
    session_release(&session);
    struct tr_file_content content;
    assert_int_equal(tr_file_read("short/checkpoint-00000002/model.yaml", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data, "strategy:\n  allreduce:\n    bucket: 2\n"));
    assert_non_null(strstr(content.data, "  - dense:\n      units: 3\n      use_bias: false\n"));
    assert_non_null(strstr(content.data, "  - dropout:\n      rate: 0.2\n      name: less\n"));
    tr_file_content_free(&content);
}

/* What is wrong with the model file is said before what is wrong with its data or its directory. */
static void test_the_model_file_comes_first(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"layers.0.units=0", "layers[0].dense.units"},
        {"layers.2={dens: 3}", "did you mean \"dense\"?"},
        {"layers.0.weights=he_norml", "did you mean \"he_normal\"?"},
        {"loss={label_smoothing: 2}", "label_smoothing"},
        {"optimizer.rule=adm", "did you mean \"adam\"?"},
        {"optimizer.schedule=cosin", "did you mean \"cosine\"?"},
        {"strategy=allredce", "allreduce"},
        {"train.pass=3", "power of two"},
        {"train.epochs=2", "give steps or epochs"},
        {"data.test.idx.image=x", "data.test.idx"},
    };
    hash_with("first", "--steps", "1", NULL);
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct session session;
        int code = run(&session, "train", "tiny.yaml", "--out", "first", "--set", mistakes[i][0], NULL);
        expect_error(2, mistakes[i][1], &session, code);
        session_release(&session);
        code = run(&session, "train", "tiny.yaml", "--out", "nowhere", "--set",
                   "data.train.idx.labels=nowhere", "--set", mistakes[i][0], NULL);
        expect_error(2, mistakes[i][1], &session, code);
        session_release(&session);
    }
    /* Shapes are known before the data where the file tells them. */
    struct session session;
    int code = run(&session, "train", "tiny.yaml", "--out", "first", "--set", "input.shape=[6, 6, 1]",
                   "--set", "layers.0={conv: {filters: 2, kernel: 9}}", NULL);
    expect_error(2, "kernel", &session, code);
    session_release(&session);
}

static void test_runs_that_differ_are_told_apart(void **state)
{
    (void)state;
    struct session session;
    static const char *const differences[][2] = {
        {"strategy={allreduce: {bucket: 2}}", "strategy: differ (allreduce on 1 process: bucket "},
        {"optimizer.rate=0.02", "; optimizer.rate 0.01 and 0.02\n"},
    };
    hash_with("one", "--steps", "2", "--overwrite");
    for (size_t i = 0; i < 2; i++) {
        expect_exit(0, "train", "tiny.yaml", "-o", "other", "--overwrite", "--steps", "2", "--set",
                    differences[i][0]);
        int code = run(&session, "diff", "one", "other", NULL);
        assert_int_equal(code, (int)i); /* a strategy with other options gives the same hash */
        assert_non_null(strstr(session.text[0], differences[i][1]));
        session_release(&session);
    }
}

/* The number behind `key` in a JSON text. */
static double number_in(const char *text, const char *key)
{
    char member[64];
    snprintf(member, sizeof member, "\"%s\":", key);
    const char *at = strstr(text, member);
    assert_non_null(at);
    return strtod(at + strlen(member), NULL);
}

static void test_the_best_is_kept_and_used(void **state)
{
    (void)state;
    struct session session;
    char line[64];
    /* Steps that are far too long, so that the end is not the best. */
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "best", "--set", "train.evaluate_every=2",
                         "--set", "train.checkpoint_every=1", "--set", "train.patience=1000", "--set",
                         "optimizer={rule: sgd, rate: 3}", "--log", "json", NULL),
                     0);
    const char *end = strstr(session.text[0], "{\"event\":\"end\""), *best = strstr(end, "\"best\":{");
    assert_non_null(best);
    double step = number_in(best, "step"), loss = number_in(best, "loss");
    assert_true(step >= 2 && step < 38);
    snprintf(line, sizeof line, "\nbest        step %.0f, accuracy ", step);
    assert_non_null(strstr(session.text[1], line));
    assert_non_null(strstr(session.text[1], " on test (best/checkpoint-best)\n"));
    assert_non_null(strstr(session.text[1], "next        trireme predict best --best "));
    session_release(&session);
    assert_int_equal(run(&session, "eval", "best", "--best", "--json", NULL), 0);
    assert_true(number_in(session.text[0], "step") == step);
    assert_true(number_in(session.text[0], "loss") == loss);
    session_release(&session);
    assert_int_equal(run(&session, "eval", "best", "--json", NULL), 0);
    assert_true(number_in(session.text[0], "step") == 40);
    assert_true(number_in(session.text[0], "loss") > loss);
    session_release(&session);
    assert_int_equal(run(&session, "predict", "best", "--best", "--set-name", "test", "--json", NULL), 0);
    session_release(&session);
    expect_exit(0, "export", "best", "--best", "--onnx", "best.onnx");
    struct tr_file_content content;
    assert_int_equal(tr_file_read("best.onnx", 1 << 20, &content), TR_OK);
    snprintf(line, sizeof line, "trained for %.0f steps", step);
    bool found = false;
    for (size_t i = 0; i + strlen(line) < content.size && !found; i++)
        found = memcmp(content.data + i, line, strlen(line)) == 0;
    assert_true(found);
    tr_file_content_free(&content);
    /* A new run in its place does not inherit it, and one that keeps none has none. */
    expect_exit(0, "train", "tiny.yaml", "-o", "best", "--overwrite", "--steps", "4");
    int code = run(&session, "eval", "best", "--best", NULL);
    expect_error(2, "train.keep_best", &session, code);
    session_release(&session);
}

/* The last evaluation, when it is due after the last step, is told once and summed up. */
static void test_the_last_evaluation_is_told_once(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "once", "--set", "train.evaluate_every=20",
                         "--set", "loss={label_smoothing: 0.2}", NULL),
                     0);
    assert_int_equal(count_of(session.text[0], " on test (64 examples)\n"), 2);
    assert_int_equal(count_of(session.text[0], "\ntest        accuracy "), 1);
    /* Losses of two kinds are not taken for one. */
    assert_non_null(strstr(session.text[0], "\nloss        of steps with label smoothing 0.2, "));
    session_release(&session);
}

/* What the journal's last line says under `key`. */
static double ended_with(const char *directory, const char *key)
{
    char path[128];
    struct tr_file_content content;
    snprintf(path, sizeof path, "%s/journal.jsonl", directory);
    assert_int_equal(tr_file_read(path, 1 << 20, &content), TR_OK);
    const char *end = strstr(content.data, "{\"event\":\"end\""), *next;
    while (end && (next = strstr(end + 1, "{\"event\":\"end\""))) end = next;
    assert_non_null(end);
    char member[64];
    snprintf(member, sizeof member, "\"%s\":", key);
    const char *at = strstr(end, member);
    assert_non_null(at);
    double value = strtod(at + strlen(member), NULL);
    tr_file_content_free(&content);
    return value;
}

/* Counts and rates are of all steps, whatever was reported of them. */
static void test_steps_are_counted_without_reports(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "silent", "--set", "train.log_every=0",
                         "--steps", "37", NULL),
                     0);
    assert_non_null(strstr(session.text[0], "\ntrained     37 steps in "));
    session_release(&session);
    assert_true(ended_with("silent", "step") == 37);
    assert_true(ended_with("silent", "seconds") > 0);
    assert_true(ended_with("silent", "examples_per_second") > 0);
    /* And of a run that goes on only those of its own. */
    assert_int_equal(run(&session, "train", "--resume", "silent", "--steps", "40", NULL), 0);
    assert_non_null(strstr(session.text[0], "\ntrained     3 steps in "));
    session_release(&session);
}

static void test_a_loss_that_is_not_finite(void **state)
{
    (void)state;
    struct session session;
    static const char *const events[] = {"start", "end", NULL};
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", "nan", "--set",
                         "optimizer={rule: sgd, rate: 1e38}", "--set", "train.checkpoint_every=1", "--set",
                         "train.log_every=0", "--log", "json", "-q", NULL),
                     4);
    assert_non_null(strstr(session.text[1], "trireme train: step "));
    assert_non_null(strstr(session.text[1], "not finite"));
    const char *end = strstr(session.text[0], "{\"event\":\"end\"");
    expect_events(session.text[0], strstr(session.text[0], "checkpoint\"")
                                       ? (const char *const[]){"start", "checkpoint", "end", NULL}
                                       : events);
    assert_non_null(strstr(end, "\"status\":\"not finite\",\"exit\":4,"));
    session_release(&session);
}

static void flip_byte(const char *path, long at)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_END), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_END), 0);
    assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
    assert_int_equal(fclose(file), 0);
}

static void test_damaged_checkpoints(void **state)
{
    (void)state;
    struct session session;
    hash_with("damaged", "--set", "train.checkpoint_every=20", NULL);
    flip_byte("damaged/checkpoint-00000040/parameters.safetensors", -5);
    /* The one before is taken, and the reader told. */
    assert_int_equal(run(&session, "train", "--resume", "damaged", "-o", "repaired", NULL), 0);
    assert_non_null(strstr(session.text[1], "warning: "));
    assert_non_null(strstr(session.text[1], "checkpoint-00000040"));
    assert_non_null(strstr(session.text[0], "damaged/checkpoint-00000020, step 20"));
    session_release(&session);
    flip_byte("damaged/checkpoint-00000020/optimizer.safetensors", -5);
    int code = run(&session, "train", "--resume", "damaged", NULL);
    expect_error(5, "checkpoint-00000040", &session, code);
    session_release(&session);
}

static void test_other_settings_do_not_resume(void **state)
{
    (void)state;
    struct session session;
    hash_with("origin", "--steps", "5", NULL);
    int code = run(&session, "train", "--resume", "origin", "--set", "optimizer.rate=0.5", NULL);
    expect_error(2, "--resume-changed", &session, code);
    session_release(&session);
    expect_exit(0, "train", "--resume", "origin", "--set", "optimizer.rate=0.5", "--resume-changed", "--out",
                "changed");
    code = run(&session, "train", "tiny.yaml", "--resume", "origin", "--set", "layers.0.units=9",
               "--resume-changed", NULL);
    expect_error(2, "dense1.weights", &session, code);
    session_release(&session);
}

/* The run ends in good order when nobody reads any more: nothing that was computed is lost. */
static void test_output_that_breaks(void **state)
{
    (void)state;
    struct session session;
    char whole[65];
    strcpy(whole, hash_with("whole2", NULL, NULL, NULL));
    int code =
        run_with(&session, (struct setup){.closed_output = true}, "train", "tiny.yaml", "-o", "broken", NULL);
    expect_error(1, "standard output", &session, code);
    assert_non_null(strstr(session.text[1], "--resume broken"));
    session_release(&session);
    assert_int_equal(run(&session, "train", "--resume", "broken", NULL), 0);
    assert_string_equal(hash_in(session.text[0]), whole);
    session_release(&session);
    code =
        run_with(&session, (struct setup){.output = "/dev/full"}, "train", "tiny.yaml", "-o", "full", NULL);
    expect_error(1, "standard output", &session, code);
    session_release(&session);
}

static void test_a_directory_that_cannot_be_written(void **state)
{
    (void)state;
    struct session session;
    write_text("file", "in the way");
    int code = run(&session, "train", "tiny.yaml", "--out", "file/run", "-q", NULL);
    expect_error(2, "nothing can be written to the output directory file/run: file is not a directory", &session,
                 code);
    session_release(&session);
}

/* What is to be copied into a shell is quoted for it: the hints themselves are run. */
static void test_hints_can_be_copied(void **state)
{
    (void)state;
    struct session session;
    char command[1024];
    const char *out = "it's mine; $(touch oops) & more", *quoted = "'it'\\''s mine; $(touch oops) & more'";
    assert_int_equal(run(&session, "train", "tiny.yaml", "-o", out, "--steps", "2", NULL), 0);
    const char *next = strstr(session.text[0], "next        trireme ");
    assert_non_null(next);
    assert_non_null(strstr(next, quoted));
    next += strlen("next        trireme ");
    snprintf(command, sizeof command, "exec '%s' %.*s", TRIREME_PROGRAM, (int)strcspn(next, "\n"), next);
    session_release(&session);
    const char *const arguments[] = {"-c", command, NULL};
    session_start(&session, &(struct setup){.program = "/bin/sh", .arguments = arguments});
    int code = session_end(&session);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    session_release(&session);
    assert_false(tr_file_exists("oops"));

    int used = run(&session, "train", "tiny.yaml", "-o", out, NULL);
    expect_error(2, "--resume 'it'\\''s mine; $(touch oops) & more' goes on", &session, used);
    session_release(&session);
}

/* The limit hits the journal, whose lines are many, and not the checkpoint; "ulimit -f" counts blocks of 512
   bytes. */
static void test_a_file_size_limit_is_no_signal(void **state)
{
    (void)state;
    struct session session;
    static const char *const arguments[] = {
        "-c",
        "ulimit -f 24; exec \"$0\" train tiny.yaml -o limited --quiet --set train.log_every=1 --steps 200",
        TRIREME_PROGRAM, NULL};
    struct setup setup = {.program = "/bin/sh", .arguments = arguments};
    session_start(&session, &setup);
    int code = session_end(&session);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    const char *warning = strstr(session.text[1], "the journal of the run is not written");
    assert_non_null(warning);
    assert_null(strstr(warning + 1, "the journal of the run"));
    assert_true(tr_file_exists("limited/checkpoint-00000200"));
    session_release(&session);
}

/* Two runs of mpirun that were not told to share the job are two trainings; the first process says so. */
static void test_processes_that_share_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *environment[4];
        bool warned;
    } cases[] = {
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", NULL}, true},
        {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", NULL}, false},
        {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", NULL}, false},
        {{"PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=3", NULL}, true},
        {{"SLURM_STEP_NUM_TASKS=3", NULL}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        struct setup setup = {.environment = cases[i].environment};
        int code = run_with(&session, setup, "train", "tiny.yaml", "--steps", "1", "--overwrite", NULL);
        assert_int_equal(code, 0);
        bool warned = strstr(session.text[1], "with --transport mpi they share the job") != NULL;
        if (warned != cases[i].warned) fail_msg("case %zu: \"%s\"", i, session.text[1]);
        session_release(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_in_a_pipe),
        cmocka_unit_test(test_a_language_model_tells_its_perplexity),
        cmocka_unit_test(test_validation_data_are_next),
        cmocka_unit_test(test_the_same_hash_everywhere),
        cmocka_unit_test(test_resuming_ends_at_the_same_hash),
        cmocka_unit_test(test_checkpoints_are_not_lost),
        cmocka_unit_test(test_a_refused_job_leaves_nothing),
        cmocka_unit_test(test_changed_settings_are_named),
        cmocka_unit_test(test_checkpoints_by_the_clock),
        cmocka_unit_test(test_a_job_stays_below_its_directory),
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_less_output),
        cmocka_unit_test(test_epochs_in_place_of_steps),
        cmocka_unit_test(test_numbered_directories),
        cmocka_unit_test(test_keys_of_short_forms),
        cmocka_unit_test(test_the_model_file_comes_first),
        cmocka_unit_test(test_runs_that_differ_are_told_apart),
        cmocka_unit_test(test_the_best_is_kept_and_used),
        cmocka_unit_test(test_the_last_evaluation_is_told_once),
        cmocka_unit_test(test_steps_are_counted_without_reports),
        cmocka_unit_test(test_a_loss_that_is_not_finite),
        cmocka_unit_test(test_damaged_checkpoints),
        cmocka_unit_test(test_other_settings_do_not_resume),
        cmocka_unit_test(test_output_that_breaks),
        cmocka_unit_test(test_hints_can_be_copied),
        cmocka_unit_test(test_a_file_size_limit_is_no_signal),
        cmocka_unit_test(test_a_directory_that_cannot_be_written),
        cmocka_unit_test(test_processes_that_share_nothing),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
