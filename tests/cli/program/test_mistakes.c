/* Mistakes as people make them: in model files, on command lines, about files. Each is refused by words that
 * name the thing, where it is, and the next step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/session.h"

#define ARGUMENTS 8
#define SAID      4

/* ---- model files ---- */

/* The line numbers of the cases are those of this text. */
static const char model[] = "name: small\n"
                            "seed: 1\n"
                            "data:\n"
                            "  train: {csv: {path: rows.csv, label_columns: label}}\n"
                            "layers:\n"
                            "  - dense: {units: 8, activation: relu}\n"
                            "  - dense: 2\n"
                            "loss: softmax_cross_entropy\n"
                            "optimizer: {rule: adam, rate: 0.01}\n"
                            "train: {batch: 4, steps: 3}\n";

/* `from`, which the text has once or begins with, becomes `to`. */
static const struct change {
    const char *from, *to;
    const char *said[SAID];
} changes[] = {
    /* names of other programs */
    {"rate: 0.01", "lr: 0.01", {"m.yaml:9:25: optimizer.lr: unknown key \"lr\"; did you mean \"rate\"?"}},
    {"rate: 0.01", "learning_rate: 0.01", {"9:25", "did you mean \"rate\"?"}},
    {"rate: 0.01", "rate: 0.01, eps: 1e-8", {"9:37", "did you mean \"epsilon\"?"}},
    {"rate: 0.01", "rate: 0.01, grad_clip: 1", {"did you mean \"clip_norm\"?"}},
    {"rate: 0.01", "rate: 0.01, schedule: cosine_annealing", {"9:47", "did you mean \"cosine\"?"}},
    {"rule: adam", "name: adam", {"did you mean \"rule\"?"}},
    {"rule: adam", "rule: AdamW", {"did you mean \"adamw\"?"}},
    {"batch: 4", "batch_size: 4", {"m.yaml:10:9: train.batch_size: ", "did you mean \"batch\"?"}},
    {"steps: 3", "num_epochs: 3", {"did you mean \"epochs\"?"}},
    {"steps: 3", "steps: 3, lr: 1", {"10:29", "did you mean \"optimizer.rate\"?"}},
    {"dense: 2", "linear: 2", {"m.yaml:7:5: layers[1]: layer \"linear\"", "did you mean \"dense\"?"}},
    {"dense: 2", "Conv2d: 2", {"did you mean \"conv\"?"}},
    {"dense: 2", "BatchNorm2d", {"did you mean \"batch_norm\"?"}},
    {"dense: 2", "MaxPooling2D: 2", {"did you mean \"max_pool\"?"}},
    {"dense: 2", "conv: {filters: 2, kernel_size: 3}", {"7:24", "did you mean \"kernel\"?"}},
    {"dense: 2", "dense: {out_features: 2}", {"did you mean \"units\"?"}},
    {"dense: 2", "dropout: {p: 0.5}", {"layers[1].dropout.p", "did you mean \"rate\"?"}},
    {"dense: 2", "embedding: {num_embeddings: 9, width: 2}", {"did you mean \"vocabulary\"?"}},
    {"dense: 2", "dense: {units: 2, weights: xavier}", {"7:32", "did you mean \"glorot_uniform\"?"}},
    {"softmax_cross_entropy", "mse", {"m.yaml:8:7: loss: \"mse\"", "did you mean \"mean_squared_error\"?"}},
    {"softmax_cross_entropy", "cross_entropy", {"did you mean \"softmax_cross_entropy\"?"}},
    {"softmax_cross_entropy", "CrossEntropyLoss", {"did you mean \"softmax_cross_entropy\"?"}},
    {"softmax_cross_entropy", "{type: huber}", {"8:8", "did you mean \"kind\"?"}},
    {"path: rows.csv", "file: rows.csv", {"did you mean \"path\"?"}},
    {"label_columns:", "target:", {"did you mean \"label_columns\"?"}},
    {"csv: {", "tsv: {", {"4:10", "did you mean \"csv\"?"}},
    {"seed: 1", "batch_size: 4", {"2:1", "did you mean \"train.batch\"?"}},
    {"seed: 1", "strategy: ddp", {"2:11", "did you mean \"allreduce\"?"}},
    {"seed: 1", "validation: 0.1", {"did you mean \"data.validation\"?"}},
    {"layers:", "model:", {"5:1", "did you mean \"layers\"?"}},
    /* what is no YAML */
    {"layers:", "\tlayers:", {"m.yaml:5:1: a tab stands here", "the line is: \\tlayers:"}},
    {"  - dense: 2", "\t- dense: 2", {"m.yaml:7:1: a tab", "the line is: \\t- dense: 2"}},
    {"loss: ", "loss ", {"m.yaml:8:1: a colon is missing", "the line is: loss softmax_cross_entropy"}},
    {"seed: 1",
     "seed:1",
     {"m.yaml:2:1: a blank is missing after the colon: write `seed: ...`", "is: seed:1"}},
    {"0.01}",
     "0.01",
     {"m.yaml:9:12: the { that stands here is not closed", "is: optimizer: {rule: adam, rate: 0.01\n"}},
    {"relu}", "relu", {"m.yaml:6:12: the { that stands here is not closed", "units: 8, activation: relu\n"}},
    {"steps: 3}",
     "steps: 3",
     {"m.yaml:10:8: the { that stands here is not closed", "is: train: {batch: 4, steps: 3\n"}},
    {"batch: 4, ",
     "batch: 4 ",
     {"m.yaml:10:23: a comma or } is missing before this place; the { is in column 8"}},
    {"units: 8", "units: [8", {"m.yaml:6:40: a comma or ] is missing", "the [ is in column 20"}},
    {"small", "\"small", {"m.yaml:1:7: the quote \" that begins here has no end", "is: name: \"small\n"}},
    {"small", "%small", {"m.yaml:1:7: no value begins with %; put quotes around it"}},
    {"small", "@small", {"m.yaml:1:7: no value begins with @"}},
    {"small", "*small", {"m.yaml:1:7: alias *small: no finished value"}},
    {"small", "a: b", {"m.yaml:1:8: a second colon in one value; put quotes"}},
    {"small", "\"a\\qb\"", {"no such escape after \\ in double quotes"}},
    {"  - dense: 2",
     "   - dense: 2",
     {"m.yaml:7:4: this is no item of the list that begins in line 6", "column 3"}},
    {"  - dense: 2", "  -dense: 2", {"m.yaml:7:3: a blank is missing after the dash"}},
    {"layers:", "layers: - dense: 8", {"m.yaml:5:9: a list cannot begin here", "in the lines below the key"}},
    {"layers:", "layers: dense", {"m.yaml:6:10: no key can stand here", "check how both lines are indented"}},
    {"seed: 1", " seed: 1", {"m.yaml:2:6: no key can stand here"}},
    {"data:", "]data:", {"m.yaml:3:1: the ] closes nothing that is open"}},
    {"units: 8", "units: ", {"layers[0].dense.units: expected an integer, found nothing"}},
    {"seed: 1", "seed: 1\nseed: 2", {"m.yaml:3:1: key \"seed\" stands here twice; the first is in line 2"}},
    /* values */
    {"rate: 0.01", "rate: -1", {"9:31", "-1 is out of range; allowed: > 0"}},
    {"batch: 4", "batch: 4.5", {"10:16", "\"4.5\" is not an integer"}},
    {"batch: 4", "batch: 0", {"0 is out of range; allowed: 1 .. "}},
    {"steps: 3", "steps: 3, epochs: 2", {"give steps or epochs, not both"}},
    {"seed: 1", "seed: abc", {"2:7", "\"abc\" is not an integer"}},
    {"activation: relu", "activation: ReLU", {"6:35", "did you mean \"relu\"?"}},
    {"dense: 2", "dense: 1", {"softmax_cross_entropy needs at least 2 outputs, the network has 1"}},
    {"dense: 2", "conv: {filters: 2}", {"\"kernel\" is missing"}},
    {"dense: 2", "dropout: 50", {"50 is out of range; allowed: 0 .. 0.9999"}},
    {"label_columns: label", "label_columns: lable", {"rows.csv", "\"lable\"", "did you mean \"label\"?"}},
    {"path: rows.csv", "path: rowz.csv", {"rowz.csv", "No such file"}},
};

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_changed(const char *from, const char *to)
{
    char text[sizeof model + 100];
    const char *at = strstr(model, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - model), model, to, at + strlen(from));
    write_file("m.yaml", text);
}

static void expect_said(struct session *session, int code, const char *what, const char *const said[SAID])
{
    for (int i = 0; i < SAID && said[i]; i++) {
        if (code != 0 && code > 0 && strstr(session->text[1], said[i])) continue;
        session_show(session);
        fail_msg("%s: exit code %d, without \"%s\"", what, code, said[i]);
    }
    session_release(session);
}

static void test_model_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct session session;
        write_changed(changes[i].from, changes[i].to);
        int code = run(&session, "train", "m.yaml", "--out", "never", NULL);
        expect_said(&session, code, changes[i].to, changes[i].said);
    }
}

/* ---- command lines ---- */

static const struct line {
    const char *argument[ARGUMENTS];
    const char *said[SAID];
} lines[] = {
    /* files */
    {{"train", "good.yml"}, {"there is no file \"good.yml\"; did you mean \"good.yaml\"?"}},
    {{"train", "good"}, {"did you mean \"good.yaml\"?"}},
    {{"train", "god.yaml"}, {"did you mean \"good.yaml\"?"}},
    {{"train", "./god.yml"}, {"did you mean \"./good.yaml\"?"}},
    {{"train", "zebra.yaml"}, {"there is no file \"zebra.yaml\"; check the path", "`trireme models`"}},
    {{"train", "models/mnist-quick.yaml"}, {"a model of that name ships: write mnist-quick alone"}},
    {{"plan", "mnist-quick.yaml"}, {"a model of that name ships: write mnist-quick alone"}},
    {{"sweep", "mnist-quik"}, {"did you mean mnist-quick?"}},
    {{"train", "done"}, {"\"done\" is a directory of checkpoints", "`trireme train --resume done`"}},
    {{"compare", "done"}, {"\"done\" is a directory of checkpoints"}},
    {{"train", "."}, {"\".\" is a directory; a model file is wanted"}},
    {{"train", "--resume", "good.yaml"}, {"--resume: \"good.yaml\" is a file", "directory of a run"}},
    {{"train", "--resume", "nowhere"}, {"\"nowhere\" does not exist"}},
    {{"train", "good.yaml", "--out", "done"}, {"--resume done goes on", "--overwrite"}},
    {{"eval", "good.yaml"}, {"\"good.yaml\" is not a directory; a run and a checkpoint are directories"}},
    {{"eval", "nowhere"}, {"\"nowhere\" does not exist"}},
    {{"report", "nowhere"}, {"\"nowhere\""}},
    {{"diff", "done", "nowhere"}, {"\"nowhere\" is not the directory of a run"}},
    /* values of the model file */
    {{"train", "good.yaml", "--set", "optimizer.lr=1"},
     {"train: `--set` optimizer.lr: unknown key \"lr\"; did you mean \"rate\"?"}},
    {{"train", "good.yaml", "--set", "lr=1"}, {"`--set` lr: ", "did you mean \"optimizer.rate\"?"}},
    {{"train", "good.yaml", "--set", "train.batch_size=1"}, {"did you mean \"batch\"?"}},
    {{"train", "good.yaml", "--set", "loss=mse"}, {"`--set` loss: \"mse\"", "\"mean_squared_error\"?"}},
    {{"train", "good.yaml", "--set", "optimizer.rate=fast"},
     {"`--set` optimizer.rate: \"fast\" is not a number"}},
    {{"train", "good.yaml", "--set", "optimizer.rate"}, {"`--set` optimizer.rate: expected path=value"}},
    {{"train", "good.yaml", "--set", "optimizer.rate=[1"},
     {"`--set` optimizer.rate: the [ that stands here is not closed: ] is missing: [1\n"}},
    {{"train", "good.yaml", "--set", "=3"}, {"`--set` =3: no path stands before the ="}},
    {{"train", "good.yaml", "--set", "layers[9].units=4"},
     {"layers has 2 items, numbered from 0; there is no item 9"}},
    {{"train", "good.yaml", "--set", "layers.dense9.units=4"}, {"did you mean \"dense"}},
    {{"train", "good.yaml", "--set", "seed.x=4"}, {"`--set` seed.x: seed is a text (\"1\")"}},
    {{"train", "good.yaml", "--steps", "2", "--epochs", "3"},
     {"`--steps` 2 and `--epochs` 3 both say how long"}},
    {{"train", "good.yaml", "--strategy", "ddp"},
     {"`--strategy`: strategy \"ddp\"", "did you mean \"allreduce\"?"}},
    /* options */
    {{"train", "good.yaml", "--device", "rocm"},
     {"device \"rocm\" is none of cpu", "\"opencl\"?", "opencl:0 ", "cuda:0 "}},
    {{"train", "good.yaml", "--device", "nvidia"}, {"device \"nvidia\"", "\"cuda\"?", "cuda:0 "}},
    {{"train", "good.yaml", "--gpu"}, {"unknown option --gpu; did you mean --device?"}},
    {{"train", "good.yaml", "--lr", "1"}, {"unknown option --lr; did you mean --set optimizer.rate=VALUE?"}},
    {{"train", "good.yaml", "--learning-rate=1"}, {"did you mean --set optimizer.rate=VALUE?"}},
    {{"train", "good.yaml", "--batch-size", "1"}, {"did you mean --set train.batch=VALUE?"}},
    {{"train", "good.yaml", "-lr", "1"}, {"did you mean --set optimizer.rate=VALUE?"}},
    {{"train", "good.yaml", "-epochs", "1"}, {"unknown option -epochs; did you mean --epochs?"}},
    {{"train", "good.yaml", "--output", "x"}, {"did you mean --out?"}},
    {{"train", "--model", "good.yaml"}, {"unknown option --model; the model stands by itself"}},
    {{"train", "--config=good.yaml"}, {"unknown option --config; the model stands by itself"}},
    {{"train", "good.yaml", "-v"}, {"unknown option -v; `trireme --version`", "`trireme train --help`"}},
    {{"train", "good.yaml", "--verbose"}, {"unknown option --verbose; `trireme --version`"}},
    {{"launch", "-v", "-n", "2", "train", "good.yaml"}, {"unknown option -v", "`trireme launch --help`"}},
    {{"-v"}, {"unknown option \"-v\"; `trireme --version`, or -V"}},
    {{"train", "good.yaml", "--threads", "many"}, {"--threads: \"many\" is not an integer"}},
    {{"train", "good.yaml", "--threads", "-2"}, {"--threads: -2 is out of range; allowed: 0 .. 256"}},
    {{"train", "good.yaml", "good.yaml"}, {"unexpected argument \"good.yaml\""}},
    {{"train"}, {"name a model file", "--resume"}},
    {{"export", "done", "--format", "onnx"}, {"unknown option --format; did you mean --onnx?"}},
    {{"export", "done", "--format=safetensors"}, {"unknown option --format; did you mean --safetensors?"}},
    {{"export", "done"}, {"nothing to write; give a format"}},
    {{"export", "done", "--onnx", "no/where.onnx"}, {"there is no directory \"no\""}},
    {{"predict", "done", "--values", "1,2"}, {"--values", "2 numbers, the network takes 3"}},
    {{"predict", "done", "--values", "1,2,x"}, {"--values", "\"x\""}},
    {{"generate", "done"}, {"the network takes no text"}},
    {{"data", "fetch", "minst"}, {"did you mean \"mnist\"?"}},
    {{"data", "verify", "zebra"}, {"data set \"zebra\" is none of mnist"}},
    {{"sweep", "good.yaml", "--grid", "optimizer.rate=1,2"}, {"unknown option --grid; did you mean --set?"}},
    {{"compare", "good.yaml", "--workers", "0"}, {"--workers: 0 is out of range"}},
    {{"plan", "good.yaml", "--strategies", "dpp"}, {"\"dpp\""}},
    /* several processes */
    {{"launch", "-n", "2", "train", "good.yaml", "--out=none", "--set=train.microbatches=1"},
     {"2 ranks share 1 microbatch; choose fewer, or set train.microbatches=2"}},
    {{"launch", "-n", "2", "tran", "good.yaml"}, {"\"tran\" is not a command", "train MODEL"}},
    {{"launch", "-n", "2", "good.yaml"},
     {"name the work of the processes, as in `trireme launch -n 2 train good.yaml`"}},
    {{"launch", "-n", "2", "eval", "done"}, {"only `train` shares its work"}},
    {{"launch", "--steps", "3", "train", "good.yaml"},
     {"--steps is an option of `train`; write it after that word"}},
    {{"launch", "-n", "two", "train", "good.yaml"}, {"-n: \"two\" is not an integer"}},
    /* commands */
    {{"tran", "good.yaml"}, {"did you mean `trireme train`?"}},
    {{"zebra"}, {"unknown command \"zebra\"", "`trireme help`"}},
};

static void test_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct session session;
        const char *const *a = lines[i].argument;
        char shown[200];
        snprintf(shown, sizeof shown, "%s %s %s %s", a[0], a[1] ? a[1] : "", a[2] ? a[2] : "",
                 a[3] ? a[3] : "");
        int code = run(&session, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], NULL);
        expect_said(&session, code, shown, lines[i].said);
    }
}

/* ---- warnings ---- */

static void expect_warning(const char *from, const char *to, const char *said, bool there)
{
    struct session session;
    write_changed(from, to);
    int code = run(&session, "train", "m.yaml", "--out", "warned", "--overwrite", NULL);
    bool is = strstr(session.text[0], said) || strstr(session.text[1], said);
    if (code != 0 || is != there) session_show(&session);
    assert_int_equal(code, 0);
    assert_int_equal(is, there);
    session_release(&session);
}

static void test_what_is_hardly_meant_is_warned_of(void **state)
{
    (void)state;
    expect_warning("dense: 2", "dense: 2\n  - softmax", "ends with softmax (layer \"softmax1\")", true);
    expect_warning("small", "small", "ends with", false);
    expect_warning("batch: 4", "batch: 25", "train.batch is 25, the training data have 24 examples", true);
    expect_warning("batch: 4", "batch: 24", "train.batch is", false);
}

static int begin(void **state)
{
    char rows[1000] = "a,b,c,label\n";
    if (place_make(state) != 0) return -1;
    for (int i = 0; i < 24; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows), "%d.5,%d,%d,%d\n", i % 5, i % 3, i * 7 % 11,
                 i % 2);
    write_file("rows.csv", rows);
    write_file("good.yaml", model);
    expect_exit(0, "train", "good.yaml", "--out", "done");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_files),
        cmocka_unit_test(test_command_lines),
        cmocka_unit_test(test_what_is_hardly_meant_is_warned_of),
    };
    return cmocka_run_group_tests(tests, begin, place_remove);
}
