/* Commands in this process whose memory is refused at every place in turn: each says so or does all, and
 * nothing stays.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fail.h"
#include "base/files/file.h"
#include "cli/data/data.h"
#include "cli/pairs.h"
#include "cli/program/arguments.h"
#include "cli/program/commands.h"
#include "cli/session.h"
#include "cli/terminal/output.h"
#include "refuse.h"
#include "support/files/png.h"

/* Standard output goes to a file from here to to_terminal(). */
static int before;
static void to_file(void)
{
    FILE *file = fopen("printed", "w");
    assert_non_null(file);
    fflush(stdout);
    before = dup(STDOUT_FILENO);
    assert_true(before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    fclose(file);
}

static struct tr_file_content to_terminal(void)
{
    struct tr_file_content content;
    fflush(stdout);
    assert_true(dup2(before, STDOUT_FILENO) >= 0);
    close(before);
    assert_int_equal(tr_file_read("printed", 1 << 24, &content), TR_OK);
    return content;
}

static void *options_of(const struct cli_command *command, const char *const *words)
{
    static const char *const environment[] = {NULL};
    void *options;
    int count = 0;
    while (words[count]) count++;
    if (cli_command_read(command, count, words, environment, &options) != TR_OK)
        fail_msg("%s", tr_error_message());
    return options;
}

static int lines_of(const char *text)
{
    int lines = 0;
    for (; (text = strchr(text, '\n')); text++) lines++;
    return lines;
}

/* Where a command makes many allocations, about so many of them are refused. */
#define REFUSED_MOST 200

struct work {
    const struct cli_command *command;
    const char *words[10];
    int64_t last; /* only so many of the last allocations are refused: the others are those of the library, 0:
                     all */
    bool timed;   /* what it prints has a time in it */
    const char *files[2]; /* that it writes, whole if it says nothing */
    tr_status usual;
    const char *input; /* the file that it reads as its standard input, or NULL */
};

/* The files of `work`; none where one is missing. */
static struct tr_file_content written(const struct work *work, int file)
{
    struct tr_file_content content = {0};
    if (work->files[file] && tr_file_exists(work->files[file]))
        assert_int_equal(tr_file_read(work->files[file], 1 << 24, &content), TR_OK);
    return content;
}

static void expect_written(const struct work *work, const struct tr_file_content whole[2], int64_t at)
{
    for (int i = 0; i < 2 && work->files[i]; i++) {
        struct tr_file_content got = written(work, i);
        if (!got.data || got.size != whole[i].size) /* a page has its time in it, of one length */
            fail_msg("%s, allocation %d: %s", work->command->name, (int)at, work->files[i]);
        tr_file_content_free(&got);
    }
}

static void give_input(const struct work *work)
{
    const int file = open(work->input ? work->input : "/dev/null", O_RDONLY);
    assert_true(file >= 0 && dup2(file, STDIN_FILENO) >= 0);
    close(file);
}

static void expect_whole(const struct work *work, const void *options)
{
    give_input(work);
    to_file();
    refuse_begin(INT64_MAX);
    const tr_status usual = work->command->run(options);
    const int64_t count = INT64_MAX - refuse_left;
    refuse_end();
    struct tr_file_content whole = to_terminal(), files[2] = {written(work, 0), written(work, 1)};
    if (usual != work->usual) fail_msg("%s: %s", work->command->name, tr_error_message());
    int64_t at = work->last > 0 && count > work->last ? count - work->last : 0;
    const int64_t step = 1 + (count - at) / REFUSED_MOST;
    for (bool done = false; !done; at += step) {
        const int64_t live = tr_alloc_live();
        for (int i = 0; i < 2 && work->files[i]; i++) remove(work->files[i]);
        give_input(work);
        to_file();
        refuse_begin(at);
        const tr_status status = work->command->run(options);
        done = refuse_end();
        struct tr_file_content got = to_terminal();
        if (status != TR_ENOMEM && (status != usual || lines_of(got.data) != lines_of(whole.data) ||
                                    (!work->timed && strcmp(got.data, whole.data) != 0)))
            fail_msg("%s, allocation %d: %d, %s", work->command->name, (int)at, (int)status,
                     (char *)got.data);
        tr_file_content_free(&got);
        if (tr_alloc_live() != live)
            fail_msg("%s, allocation %d: %d stay", work->command->name, (int)at,
                     (int)(tr_alloc_live() - live));
        if (done) assert_int_equal(status, usual);
        if (status == TR_OK) expect_written(work, files, at);
    }
    for (int i = 0; i < 2; i++) tr_file_content_free(&files[i]);
    tr_file_content_free(&whole);
}

/* The words of a command are read, or not, and then nothing stays of them. */
static void expect_read(const struct work *work)
{
    static const char *const environment[] = {"TRIREME_DATA_CACHE_DIR=cache", NULL};
    int count = 0;
    while (work->words[count]) count++;
    for (int64_t at = 0, done = 0; !done; at++) {
        void *options;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = cli_command_read(work->command, count, work->words, environment, &options);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        if (done) cli_command_release(work->command, &options);
        assert_null(options);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static void expect_all(const struct work *works, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        expect_read(&works[i]);
        void *options = options_of(works[i].command, works[i].words);
        expect_whole(&works[i], options);
        cli_command_release(works[i].command, &options);
    }
}

static void commands_without_networks(void **state)
{
    static const struct work works[] = {
        {&cli_data_tokens, {"tokenizer.json", "words.txt"}},
        {&cli_data_tokens, {"-d", "tokenizer.json", "numbers"}},
        {&cli_data_show, {"{idx: {images: images.idx, labels: labels.idx}}"}},
        {&cli_data_convert, {"{idx: {images: images.idx, labels: labels.idx}}", "x"}},
        {&cli_data_verify, {"--dir=known"}, .usual = TR_ECORRUPT},
        {&cli_data_verify, {"mnist", "--dir=known"}, .usual = TR_ECORRUPT},
        {&cli_data_list, {"--dir", "nowhere"}},
        {&cli_data_list, {"--dir", "nowhere", "--json"}},
        {&cli_models, {NULL}},
        {&cli_models, {"--json"}},
        {&cli_data_convert, {"mnist", "converted", "--dir=known"}},
        {&cli_data_convert, {"mnist", "converted", "--dir=known", "--format=idx"}},
        {&cli_data_tokenizer, {"words.txt", "--tokens=257", "-oagain.json"}},
        {&cli_data_cache, {"--data-cache-dir=none", "--clear"}},
        {&cli_data_cache, {"--data-cache-dir=none", "--clear", "--json"}},
        {&cli_completion, {"bash"}},
        {&cli_completion, {"fish", "--", "train", "--log=j"}},
        {&cli_completion, {"fish", "--", "train", ""}},
        {&cli_completion, {"zsh", "--", "data", "show", "m"}},
        {&cli_inspect, {"tiny.yaml"}, 60},
        {&cli_inspect, {"--layers"}},
        {&cli_inspect, {"--manual"}},
        {&cli_help, {NULL}},
        {&cli_help, {"train"}},
        {&cli_help, {"data"}},
        {&cli_help, {"cheatsheet"}},
        {&cli_help, {"--man=pages"}},
    };
    (void)state;
    write_text("words.txt", "ab ab ab ab\n");
    write_text("numbers", "64 65 66\n");
    assert_int_equal(mkdir("known", 0700) | mkdir("known/mnist", 0700), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(link(i % 2 ? "labels.idx" : "images.idx",
                              (const char *[]){"known/mnist/train-images-idx3-ubyte.gz",
                                               "known/mnist/train-labels-idx1-ubyte.gz",
                                               "known/mnist/t10k-images-idx3-ubyte.gz",
                                               "known/mnist/t10k-labels-idx1-ubyte.gz"}[i]),
                         0);
    expect_exit(0, "data", "tokenizer", "words.txt", "--tokens", "257");
    expect_all(works, sizeof works / sizeof works[0]);
}

static void commands_with_runs(void **state)
{
    static const struct work works[] = {
        {&cli_data_cache, {"--data-cache-dir=cache"}},
        {&cli_data_cache, {"--data-cache-dir=cache", "--json"}},
        {&cli_receipt, {"runs/tiny"}, 40},
        {&cli_receipt, {"runs/tiny", "-o", "there"}, 40},
        {&cli_diff, {"runs/tiny", "runs/tiny"}},
        {&cli_export, {"runs/tiny", "--onnx=there", "--c=here"}, 40},
        {&cli_report_runs, {"runs/tiny", "--no-examples"}},
        {&cli_log, {"runs/served"}},
        {&cli_eval, {"runs/tiny", "--confusion", "-t1", "--no-data-cache", "--json"}, 30, true},
        {&cli_eval, {"runs/tiny", "--confusion", "-t1", "--no-data-cache"}, 30, true},
        {&cli_predict, {"runs/tiny", "--set-name=test", "-n1,2", "-t1", "--no-data-cache", "--show"}, 30},
        {&cli_predict, {"runs/tiny", "--set-name=test", "-n1,2", "-t1", "--no-data-cache", "--json"}, 30},
        {&cli_predict,
         {"runs/tiny", "--idx=images.idx", "-n1", "-t1", "--no-data-cache", "-ox.csv"},
         40,
         true},
        {&cli_predict, {"runs/line", "--values=1,2", "--values=3,4", "-t1", "--no-data-cache"}, 30},
        {&cli_predict, {"runs/tags", "--text=the dog", "--text=cat", "-t1", "--no-data-cache"}, 40},
        {&cli_predict, {"runs/tags", "--set-name=train", "-n0", "-t1", "--no-data-cache"}, 40},
        {&cli_generate, {"runs/letters", "-n3", "-pthe", "-t1", "--no-data-cache"}, 20},
        {&cli_import, {"tiny.safetensors", "-mtiny.yaml", "-sname=in", "--overwrite"}},
        {&cli_eval, {"runs/line", "--set-name=train", "-t1", "--no-data-cache"}, 30, true},
        {&cli_verify, {"runs/tiny", "-t1", "--no-data-cache", "--json"}, 30, true},
        {&cli_dispute, {"runs/tiny", "runs/tiny", "-t1", "--no-data-cache", "--json"}, 30, true},
        {&cli_train,
         {"tiny.yaml", "--steps=1", "--quiet", "--placement", "-t1", "-oplaced", "--overwrite"},
         60,
         true},
    };
    (void)state;
    write_text("line.csv", "1,2,3\n2,3,5\n3,1,4\n4,4,8\n");
    write_text("line.yaml",
               "name: line\ndata: {train: {csv: {path: line.csv, label: value}}}\nlayers: [{dense: 1}]\n"
               "loss: mean_squared_error\noptimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 4, steps: 2}\n");
    write_text("tags.tsv", "the dog runs\t0 1 2\na cat sleeps now\t0 1 2 -\n");
    write_text("tags.yaml", "name: tags\ndata: {train: {text: {path: tags.tsv, tags: true, max_tokens: 4}}}\n"
                            "input: {classes: [det, noun, verb]}\nlayers: [{embedding: 8}, {dense: 3}]\n"
                            "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 2, steps: 2}\n");
    write_text("letters.txt", "the dog runs and the cat sleeps\n");
    write_text("letters.yaml", "name: letters\n"
                               "data: {train: {corpus: {path: letters.txt, unit: characters, window: 4}}}\n"
                               "layers: [{embedding: 4}, {dense: 99}]\n"
                               "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 3, steps: 2}\n");
    expect_exit(0, "train", "tiny.yaml", "--steps", "3", "--quiet", "--data-cache-dir=cache", "--receipt");
    expect_exit(0, "train", "tiny.yaml", "--steps", "3", "--quiet", "-o", "runs/served",
                "--simulate-delays=1", "--strategy=parameter-server,mode=async");
    expect_exit(0, "train", "line.yaml", "--quiet");
    expect_exit(0, "train", "tags.yaml", "--quiet");
    expect_exit(0, "train", "letters.yaml", "--quiet");
    expect_exit(0, "export", "runs/tiny", "--safetensors=tiny.safetensors");
    expect_all(works, sizeof works / sizeof works[0]);
}

static void write_picture(const char *name, int depth, uint16_t from, bool mask)
{
    uint16_t values[16];
    size_t size;
    for (int i = 0; i < 16; i++) values[i] = mask ? i % 2 : (uint16_t)(from + i);
    uint8_t *file = png_of(PNG_GREY, depth, 4, 4, values, &size);
    assert_int_equal(tr_file_write_atomic(NULL, name, file, size), TR_OK);
    free(file);
}

/* Networks that read images of bytes and of 16 bits, that have classes of pixels, or write texts. */
static void commands_with_images_and_texts(void **state)
{
    static const struct work works[] = {
        {&cli_predict,
         {"runs/spots", "--image=spots/0.png", "--image=spots/1.png", "--masks=made", "--show", "-t1",
          "--no-data-cache"},
         60},
        {&cli_predict, {"runs/spots", "--set-name=train", "-n0,1", "--masks=made", "-t1", "--json"}, 40},
        {&cli_predict,
         {"runs/spots", "--image=spots/0.png", "-t1", "--no-data-cache", "-ox.jsonl"},
         40,
         true},
        {&cli_predict, {"runs/cells", "--image=cells/a/0.png", "-t1", "--no-data-cache", "--invert"}, 40},
        {&cli_predict, {"runs/pairs", "--text=ab", "--text=ba", "-t1", "--no-data-cache"}, 60},
        {&cli_predict, {"runs/pairs", "--set-name=train", "-n0,1", "-t1", "--no-data-cache", "--json"}, 60},
        {&cli_predict, {"runs/pairs", "-t1", "--no-data-cache"}, 60, .input = "lines.txt"},
        {&cli_predict, {"runs/spots", "-t1", "--no-data-cache", "--json"}, 60, .input = "names.txt"},
        {&cli_generate, {"runs/pairs", "--source=ab", "-t1", "--no-data-cache"}, 40},
    };
    static const char *const folders[] = {"spots", "masks", "cells", "cells/a", "cells/b"};
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        assert_int_equal(mkdir(folders[i], 0700), 0);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "spots/%d.png", i);
        write_picture(name, 8, (uint16_t)(20 * i), false);
        snprintf(name, sizeof name, "masks/%d.png", i);
        write_picture(name, 8, 0, true);
        snprintf(name, sizeof name, "cells/%s/%d.png", i % 2 ? "b" : "a", i);
        write_picture(name, 16, (uint16_t)(2000 * i), false);
    }
    write_text("spots.yaml", "name: spots\ndata: {train: {folder: {path: spots, masks: masks, classes: 2}}}\n"
                             "layers: [{conv: {filters: 2, kernel: 1}}]\nloss: {per: pixel}\n"
                             "optimizer: {rule: adam, rate: 0.3}\ntrain: {batch: 4, steps: 2}\n");
    write_text("cells.yaml", "name: cells\ndata: {train: {folder: cells}}\nlayers: [{dense: 2}]\n"
                             "optimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 4, steps: 2}\n");
    write_text("lines.txt", "ab\nba\n");
    write_text("names.txt", "spots/0.png\nspots/1.png\n");
    write_text("pairs.csv", "long,short\nab,b\nba,a\naa,a\n");
    write_text("pairs.yaml",
               "name: pairs\n" PAIRS_DATA "layers: [{embedding: {width: 4, from: long, name: memory}},\n"
               "  {embedding: {width: 4, from: short}}, {cross_attention: {heads: 1, with: memory}},\n"
               "  {dense: 4}]\n"
               "optimizer: {rule: adam, rate: 0.05}\ntrain: {batch: 3, steps: 2}\n");
    expect_exit(0, "train", "spots.yaml", "--quiet");
    expect_exit(0, "train", "cells.yaml", "--quiet");
    expect_exit(0, "train", "pairs.yaml", "--quiet");
    expect_all(works, sizeof works / sizeof works[0]);
}

/* Sweeps whose points are done, so that no run is started, and a test of the rate. */
static void commands_with_many_runs(void **state)
{
    static const struct work works[] = {
        {&cli_sweep,
         {"few.yaml", "-soptimizer.rate=0.1,0.2", "-strain.batch=9", "--seeds=2", "-t1"},
         .files = {"runs/few-sweep/sweep.csv", "runs/few-sweep/report.html"}},
        {&cli_sweep, {"few.yaml", "--folds=2", "-ofolded", "-t1"}, .files = {"folded/sweep.csv"}},
        {&cli_sweep, {"few.yaml", "-soptimizer.rate=0.1..0.2", "--random=2", "-odrawn", "-t1"}},
        {&cli_sweep,
         {"few.yaml", "-strain.batch=9", "--rate-test", "-orates", "-t1"},
         .files = {"rates/rate-test.csv", "rates/rate-test.html"}},
    };
    (void)state;
    write_text("few.yaml", "name: few\ndata: {train: {idx: {images: images.idx, labels: labels.idx}}}\n"
                           "layers: [{dense: 3}]\noptimizer: {rule: sgd, rate: 0.1}\n"
                           "train: {batch: 4, steps: 1}\n");
    expect_exit(0, "sweep", "few.yaml", "-soptimizer.rate=0.1,0.2", "-strain.batch=9", "--seeds=2", "-t1");
    expect_exit(0, "sweep", "few.yaml", "--folds=2", "-ofolded", "-t1");
    expect_exit(0, "sweep", "few.yaml", "-soptimizer.rate=0.1..0.2", "--random=2", "-odrawn", "-t1");
    expect_all(works, sizeof works / sizeof works[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_without_networks),
        cmocka_unit_test(commands_with_runs),
        cmocka_unit_test(commands_with_many_runs),
        cmocka_unit_test(commands_with_images_and_texts),
    };
    return cmocka_run_group_tests_name("cli.memory", tests, place_make, place_remove);
}
