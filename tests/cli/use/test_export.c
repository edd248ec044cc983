/* export and import: files of several kinds at once, a checkpoint out of a file, and what is said about
 * mistakes. */
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

#include "base/files/file.h"
#include "cli/session.h"

static int make_network(void **state)
{
    if (place_make(state) != 0) return -1;
    expect_exit(0, "train", "tiny.yaml", "--quiet");
    return 0;
}

static void expect_text(const struct session *session, const char *part)
{
    if (!strstr(session->text[0], part)) session_show(session);
    assert_non_null(strstr(session->text[0], part));
}

static void test_several_formats(void **state)
{
    (void)state;
    struct session session;
    assert_int_equal(run(&session, "export", "runs/tiny", "--npz", "tiny.npz",
                         "--safetensors=tiny.safetensors", "--torch", "tiny.py", NULL),
                     0);
    assert_string_equal(session.text[0], "safetensors  tiny.safetensors\n"
                                         "npz          tiny.npz\n"
                                         "torch        tiny.py\n");
    assert_string_equal(session.text[1], "");
    session_release(&session);
    struct tr_file_content content;
    assert_int_equal(tr_file_read("tiny.safetensors", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data + 8, "\"layout\":\"torch\""));
    assert_non_null(strstr(content.data + 8, "\"dense1.weight\":{\"dtype\":\"F32\",\"shape\":[8,36]"));
    tr_file_content_free(&content);
    assert_int_equal(tr_file_read("tiny.py", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data, "        self.dense1 = nn.Linear(36, 8)\n"
                                         "        self.dropout1 = nn.Dropout(0.2)\n"
                                         "        self.dense2 = nn.Linear(8, 3)\n"));
    assert_non_null(strstr(content.data, "        x = F.relu(self.dense1(torch.flatten(x, 1)))\n"
                                         "        x = self.dropout1(x)\n"
                                         "        x = self.dense2(x)\n"
                                         "        return x\n"));
    tr_file_content_free(&content);
}

static void expect_same(const char *a, const char *b, bool same)
{
    struct tr_file_content one, two;
    assert_int_equal(tr_file_read(a, 1 << 20, &one), TR_OK);
    assert_int_equal(tr_file_read(b, 1 << 20, &two), TR_OK);
    assert_int_equal(one.size == two.size && memcmp(one.data, two.data, one.size) == 0, same);
    tr_file_content_free(&one);
    tr_file_content_free(&two);
}

/* The moving average or the numbers themselves, the best checkpoint or the last one, under another name. */
static void test_options_choose(void **state)
{
    (void)state;
    struct tr_file_content content;
    expect_exit(0, "train", "tiny.yaml", "--quiet", "--out", "chosen", "--set", "optimizer.ema=0.5", "--set",
                "train.keep_best=always", "--set", "train.evaluate_every=10", "--set", "optimizer.rate=0.9");
    expect_exit(0, "export", "chosen", "--npz", "usual.npz");
    expect_exit(0, "export", "chosen", "--npz", "plain.npz", "--average=false");
    expect_exit(0, "export", "chosen", "--npz", "best.npz", "--best");
    expect_exit(0, "export", "chosen/checkpoint-best", "--npz", "named.npz");
    expect_exit(0, "export", "chosen", "--torch", "named.py", "--name", "Another", "--safetensors",
                "named.safetensors");
    expect_same("usual.npz", "plain.npz", false);
    expect_same("best.npz", "named.npz", true);
    expect_same("best.npz", "usual.npz", false);
    assert_int_equal(tr_file_read("named.py", 1 << 20, &content), TR_OK);
    assert_non_null(strstr(content.data, "Another"));
    assert_null(strstr(content.data, "iny"));
    tr_file_content_free(&content);
}

static void test_import(void **state)
{
    (void)state;
    struct session session;
    char hash[65];
    assert_int_equal(run(&session, "train", "tiny.yaml", "--out", "first", NULL), 0);
    memcpy(hash, hash_in(session.text[0]), sizeof hash);
    session_release(&session);
    expect_exit(0, "export", "first", "--safetensors", "first.safetensors");
    assert_int_equal(
        run(&session, "import", "first.safetensors", "--model", "tiny.yaml", "--out", "second", NULL), 0);
    assert_string_equal(session.text[0], "checkpoint  second/checkpoint-00000000\n"
                                         "next        trireme train --resume second\n");
    session_release(&session);
    assert_int_equal(run(&session, "eval", "second", "--json", NULL), 0);
    expect_text(&session, hash);
    session_release(&session);
    expect_exit(0, "train", "--resume", "second", "--quiet");
    /* Without --out it goes where training would put it, and not where something is. */
    int code = run(&session, "import", "first.safetensors", "-m", "tiny.yaml", NULL);
    expect_error(2, "runs/tiny has checkpoints already, up to step 40", &session, code);
    session_release(&session);
    expect_exit(0, "import", "first.safetensors", "-m", "tiny.yaml", "--set", "name=other");
    assert_true(tr_file_is_directory("runs/other/checkpoint-00000000"));
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[6];
        int code;
        const char *words;
    } cases[] = {
        {{"export", "runs/tiny"},
         2,
         "nothing to write; give a format with its file, for instance --safetensors FILE"},
        {{"export", "--npz", "x.npz"}, 2, "missing argument: checkpoint"},
        {{"export", "runs/none", "--npz", "x.npz"}, 2, "does not exist"},
        {{"export", "runs/tiny", "--npz", "missing/x.npz"}, 2, "there is no directory \"missing\""},
        {{"export", "runs/tiny", "--layout", "keras", "--npz", "x.npz"}, 2, "trireme, torch"},
        {{"import", "tiny.yaml", "--model", "tiny.yaml", "--out=x"}, 2, "is it a safetensors file"},
        {{"import", "none.safetensors", "--model", "tiny.yaml", "--out=x"}, 2, "none.safetensors"},
        {{"import", "tiny.safetensors", "--model", "none.yaml", "--out=x"}, 2, "none.yaml"},
        {{"import", "tiny.safetensors"}, 2, "model"},
        {{"import", "tiny.safetensors", "--model=tiny.yaml", "--out=x", "--rename=a=b"},
         2,
         "there is no layer \"b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *a = cases[i].arguments;
        struct session session;
        int code = run(&session, a[0], a[1], a[2], a[3], a[4], a[5], NULL);
        expect_error(cases[i].code, cases[i].words, &session, code);
        session_release(&session);
    }
    assert_false(tr_file_exists("x"));
    assert_false(tr_file_exists("x.npz"));
}

/* The model file of an imported directory serves from any directory, whatever names led there. */
static void test_directories(void **state)
{
    (void)state;
    static const char text[] =
        "the ship sails and the ship sails and the sea is wide and the ship sails on\n";
    static const char tale[] =
        "name: tale\n"
        "data: {train: {corpus: {path: tale.txt, unit: bpe, tokenizer: tokenizer.json, window: 9}}}\n"
        "layers: [{embedding: {width: 6, name: t}}, {position: {length: 9, name: p}}, layer_norm,\n"
        "  {attention: {heads: 2, causal: true}}, {add: {with: p, name: a}}, layer_norm, {dense: 8},\n"
        "  {gelu: {approximate: tanh}}, {dense: 6}, {add: a}, layer_norm, {unembedding: t}]\n"
        "optimizer: {rule: sgd, rate: 0.1}\n"
        "train: {batch: 2, steps: 1}\n";
    struct tr_file_content content;
    char *here = realpath(".", NULL), expected[4096];
    assert_non_null(here);
    assert_int_equal(tr_file_write_atomic(NULL, "tale.txt", text, strlen(text)), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, "tale.yaml", tale, strlen(tale)), TR_OK);
    expect_exit(0, "data", "tokenizer", "tale.txt", "--tokens=260");
    expect_exit(0, "train", "tale.yaml", "--quiet");
    expect_exit(0, "export", "runs/tale", "--hub", "hub");
    expect_exit(0, "export", "runs/tale", "--hub", "hub"); /* its own files are replaced */
    write_text("hub/notes.txt", "mine");
    struct session session;
    int code = run(&session, "export", "runs/tale", "--hub", "hub", NULL);
    expect_error(2, "\"hub\" has a \"notes.txt\", which is no file of this export", &session, code);
    session_release(&session);
    assert_int_equal(unlink("hub/notes.txt"), 0);
    struct stat whole, half;
    expect_exit(0, "export", "runs/tale", "--hub", "hub_of_half", "--half");
    assert_int_equal(stat("hub/model.safetensors", &whole), 0);
    assert_int_equal(stat("hub_of_half/model.safetensors", &half), 0);
    assert_in_range(half.st_size, whole.st_size / 3, whole.st_size * 2 / 3);
    expect_exit(0, "import", "./hub/", "--text=tale.txt", "--out=runs/back");
    assert_int_equal(tr_file_read("runs/back/model.yaml", 1 << 20, &content), TR_OK);
    snprintf(expected, sizeof expected, "{path: \"%s/tale.txt\", unit: bpe, tokenizer: \"%s/hub\", ", here,
             here);
    assert_non_null(strstr(content.data, expected));
    tr_file_content_free(&content);
    expect_exit(0, "train", "runs/back/model.yaml", "--from=runs/back", "--quiet");
    /* Without --out the run has the last name of the path. */
    static const char *const paths[][2] = {{"hub", "hub"}, {"./hub//", "hub"}, {"h", "h"}, {"h/", "h"}};
    assert_int_equal(rename("hub_of_half", "h"), 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        code = run(&session, "import", paths[i][0], "--text=tale.txt", "--overwrite", NULL);
        if (code != 0) session_show(&session);
        assert_int_equal(code, 0);
        snprintf(expected, sizeof expected,
                 "checkpoint  runs/%s/checkpoint-00000000\nnext        trireme train --resume runs/%s\n",
                 paths[i][1], paths[i][1]);
        assert_string_equal(session.text[0], expected);
        session_release(&session);
    }

    /* Of numbers there are no words, and no tokenizer is written. */
    char *numbers = strdup(tale), *at = strstr(numbers, "unit: bpe, tokenizer: tokenizer.json");
    assert_non_null(at);
    memcpy(at, "unit:               ids,     ids: 20", strlen("unit: bpe, tokenizer: tokenizer.json"));
    write_text("numbers.yaml", numbers);
    free(numbers);
    uint8_t ids[80] = {0}; /* 16 bits each */
    for (int i = 0; i < 40; i++) ids[2 * i] = (uint8_t)(i * 7 % 20);
    assert_int_equal(tr_file_write_atomic(NULL, "tale.txt", ids, sizeof ids), TR_OK);
    expect_exit(0, "train", "numbers.yaml", "--quiet", "--overwrite");
    expect_exit(0, "export", "runs/tale", "--hub", "hub_of_numbers");
    assert_int_equal(access("hub_of_numbers/config.json", F_OK), 0);
    assert_int_equal(access("hub_of_numbers/tokenizer.json", F_OK), -1);
    free(here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_formats), cmocka_unit_test(test_options_choose),
        cmocka_unit_test(test_import),          cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_directories),
    };
    return cmocka_run_group_tests(tests, make_network, place_remove);
}
