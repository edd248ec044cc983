/* trireme data: what it says of sets of every kind, the states of known ones, and tokenizers, whose numbers
 * of bytes are those of GPT-2.
 */
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
#include <jansson.h>

#include "cli/session.h"
#include "trireme/data.h"

#define SHIPPED TRIREME_SOURCE_DIR "/data"

static void expect_output(const char *expected, struct session *session, int code)
{
    if (code != 0 || strcmp(session->text[0], expected) != 0) session_show(session);
    assert_int_equal(code, 0);
    assert_string_equal(session->text[0], expected);
    session_release(session);
}

static void expect_refusal(const char *part, struct session *session, int code)
{
    expect_error(2, part, session, code);
    session_release(session);
}

/* ---- show ---- */

static void facts_of_every_kind(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{csv: {path: t.csv, label: value}}",
         "2 examples: 2 numbers each, 1 target value each\n[0] 3: 1 2\n[1] 5: 2 3\n"},
        {"{csv: {path: t.csv, label: value, label_columns: [b, y]}}",
         "2 examples: 1 numbers each, 2 target values each\n[0] 2 3: 1\n[1] 3 5: 2\n"},
        {"{csv: {path: t.csv, label: none}}",
         "2 examples: 3 numbers each, no labels\n[0] 1 2 3\n[1] 2 3 5\n"},
        {"{csv: {path: t.csv}}", "2 examples: 2 numbers each, 6 classes\n[0] 3: 1 2\n[1] 5: 2 3\n"},
        {"{text: {path: w.tsv}}",
         "2 examples: texts of up to 3 words, 6 different, 2 classes\n[0] 1: the dog\n[1] 0: bad cat now\n"},
        {"{text: {path: g.tsv, tags: true, max_tokens: 4}}",
         "1 example: texts of up to 2 tokens, 3 different, a label for each token\n[0] : the dog\n"},
        {" \n{csv: {path: t.csv, label: none}}",
         "2 examples: 3 numbers each, no labels\n[0] 1 2 3\n[1] 2 3 5\n"},
    };
    struct session session;
    write_text("t.csv", "a,b,y\n1,2,3\n2,3,5\n");
    write_text("w.tsv", "the dog\t1\nbad cat now\t0\n");
    write_text("g.tsv", "the dog\t0 1\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_output(cases[i][1], &session, run(&session, "data", "show", cases[i][0], NULL));
    expect_output("2 examples: 2 numbers each, 1 target value each\n[1] 5: 2 3\n", &session,
                  run(&session, "data", "show", cases[0][0], "-f", "1", "-n", "1", NULL));
    expect_refusal("the data set has 0 to 1", &session,
                   run(&session, "data", "show", cases[0][0], "-f", "2", NULL));
    expect_refusal("-n: 0 is out of range", &session,
                   run(&session, "data", "show", cases[0][0], "-n", "0", NULL));
    expect_refusal("-f: -1 is out of range", &session,
                   run(&session, "data", "show", cases[0][0], "-f", "-1", NULL));
}

/* ---- states ---- */

/* A member of the object of a set in `data list --json`. */
static json_t *member_of(const char *text, const char *set, const char *key)
{
    json_t *found = NULL;
    for (const char *line = text; *line && !found; line = strchr(line, '\n') + 1) {
        json_t *object = json_loadb(line, strcspn(line, "\n"), 0, NULL);
        assert_non_null(object);
        if (strcmp(json_string_value(json_object_get(object, "name")), set) == 0)
            found = json_incref(json_object_get(object, key));
        json_decref(object);
    }
    assert_non_null(found);
    return found;
}

static void expect_states(const char *directory, const char *mnist, const char *words)
{
    static const char *const sets[] = {"mnist", "sst2", "cifar-10"};
    const char *const states[] = {mnist, words, "not fetched"};
    struct session session;
    int code = run(&session, "data", "list", "--json", "--dir", directory, NULL);
    assert_int_equal(code, 0);
    for (int i = 0; i < 3; i++) {
        json_t *state = member_of(session.text[0], sets[i], "state");
        assert_string_equal(json_string_value(state), states[i]);
        json_decref(state);
    }
    json_t *origin = member_of(session.text[0], "cifar-10", "origin"),
           *title = member_of(session.text[0], "mnist", "title"),
           *fetch = member_of(session.text[0], "mnist", "can_fetch"),
           *none = member_of(session.text[0], "sst2", "can_fetch"),
           *parts = member_of(session.text[0], "sst2", "parts");
    assert_non_null(strstr(json_string_value(origin), "University of Toronto"));
    assert_non_null(strstr(json_string_value(title), "handwritten digits"));
    assert_true(json_is_true(fetch) && json_is_false(none));
    assert_int_equal(json_array_size(parts), 3);
    assert_string_equal(json_string_value(json_array_get(parts, 1)), "dev");
    json_decref(origin), json_decref(title), json_decref(fetch), json_decref(none), json_decref(parts);
    session_release(&session);
}

/* Files come from a mirror, here of this machine. Those that are good stay. */
static void files_are_fetched(void **state)
{
    static const char mirror[] = "--mirror=file://" SHIPPED "/mnist";
    struct session session;
    (void)state;
    int code = run(&session, "data", "fetch", "mnist", mirror, "--dir", "fetched", NULL);
    if (code != 0 && strstr(session.text[1], "install libcurl")) skip();
    expect_output("fetched/mnist/train-images-idx3-ubyte.gz  fetched, good\n"
                  "fetched/mnist/train-labels-idx1-ubyte.gz  fetched, good\n"
                  "fetched/mnist/t10k-images-idx3-ubyte.gz  fetched, good\n"
                  "fetched/mnist/t10k-labels-idx1-ubyte.gz  fetched, good\n",
                  &session, code);
    write_text("fetched/mnist/t10k-labels-idx1-ubyte.gz", "rubbish");
    assert_int_equal(unlink("fetched/mnist/train-images-idx3-ubyte.gz"), 0);
    /* On a terminal, what came so far, and of how much once that is known. */
    code = run_with(&session, (struct setup){.columns = 100}, "data", "fetch", "mnist", mirror, "--dir",
                    "fetched", NULL);
    if (code != 0) session_show(&session);
    assert_int_equal(code, 0);
    assert_non_null(strstr(session.text[0], "train-images-idx3-ubyte.gz  0 bytes"));
    assert_null(strstr(session.text[0], "of 0 bytes"));
    assert_non_null(strstr(session.text[0], "fetched/mnist/train-images-idx3-ubyte.gz  fetched, good"));
    assert_non_null(strstr(session.text[0], "fetched/mnist/train-labels-idx1-ubyte.gz  good, was here"));
    assert_non_null(strstr(session.text[0], "fetched/mnist/t10k-labels-idx1-ubyte.gz  fetched, good"));
    session_release(&session);
    expect_states("fetched", "complete", "missing");
    code = run(&session, "data", "fetch", "sst2", "--dir", "fetched", NULL);
    assert_int_not_equal(code, 0);
    session_release(&session);
}

static void sets_have_states(void **state)
{
    (void)state;
    struct session session;
    expect_states(SHIPPED, "complete", "complete");
    assert_int_equal(mkdir("sets", 0700) | mkdir("sets/mnist", 0700) | mkdir("sets/sst2", 0700), 0);
    expect_states("sets", "not fetched", "missing");
    assert_int_equal(
        symlink(SHIPPED "/mnist/train-images-idx3-ubyte.gz", "sets/mnist/train-images-idx3-ubyte.gz"), 0);
    expect_states("sets", "incomplete", "missing");
    /* The worst one is the exit code, and sets without any file here are no matter. */
    int code = run(&session, "data", "verify", "--dir", "sets", NULL);
    assert_int_equal(code, 2);
    assert_non_null(strstr(session.text[0], "good     sets/mnist/train-images-idx3-ubyte.gz\n"
                                            "missing  sets/mnist/train-labels-idx1-ubyte.gz\n"));
    assert_null(strstr(session.text[0], "sst2"));
    session_release(&session);
    write_text("sets/mnist/train-labels-idx1-ubyte.gz", "rubbish");
    expect_states("sets", "damaged", "missing");
    code = run(&session, "data", "verify", "--dir", "sets", NULL);
    assert_int_equal(code, 5);
    assert_non_null(strstr(session.text[0], "damaged  sets/mnist/train-labels-idx1-ubyte.gz  ("));
    session_release(&session);
    code = run(&session, "data", "verify", "sst2", "--dir", SHIPPED, NULL);
    expect_output("good     " SHIPPED "/sst2/train.tsv\ngood     " SHIPPED "/sst2/dev.tsv\n"
                  "good     " SHIPPED "/sst2/test.tsv\n",
                  &session, code);
    code = run(&session, "data", "verify", "--dir", "none", NULL);
    expect_refusal("no known data set has files in none; give --dir DIR, or `trireme data fetch`", &session,
                   code);
    /* What is wrong with the first is not forgotten for the second. */
    code = run(&session, "data", "verify", "mnist", "sst2", "--dir", SHIPPED "/..", NULL);
    assert_int_equal(code, 2);
    session_release(&session);
}

/* Of every set a line with its parts and its title, in the order of the library. */
static void every_set_has_a_line(void **state)
{
    const struct tr_data_set_info *set;
    struct session session, json;
    int lines = 0;
    (void)state;
    assert_int_equal(run(&session, "data", "list", "--dir", SHIPPED, NULL), 0);
    assert_int_equal(run(&json, "data", "list", "--json", "--dir", SHIPPED, NULL), 0);
    const char *line = session.text[0];
    for (; (set = tr_data_set_at(lines)) != NULL; lines++) {
        char parts[128] = "";
        json_t *list = member_of(json.text[0], set->name, "parts");
        for (int i = 0; set->parts[i]; i++) {
            if (i > 0) strcat(parts, ", ");
            strcat(parts, set->parts[i]);
            assert_string_equal(json_string_value(json_array_get(list, (size_t)i)), set->parts[i]);
        }
        json_decref(list);
        const size_t length = strcspn(line, "\n"), title = strlen(set->title);
        assert_true(line[length] == '\n');
        assert_memory_equal(line, set->name, strlen(set->name));
        assert_true(line[strlen(set->name)] == ' ');
        assert_true(length > title + 2);
        assert_memory_equal(line + length - title - 2, "  ", 2);
        assert_memory_equal(line + length - title, set->title, title);
        const char *at = strstr(line, parts);
        assert_true(at && at < line + length - title && at[-1] == ' ' && at[strlen(parts)] == ' ');
        line += length + 1;
    }
    assert_true(lines > 3 && !*line);
    session_release(&session);
    session_release(&json);
}

/* ---- tokenizers ---- */

static void expect_tokens(const char *text, const char *numbers)
{
    struct session session;
    write_text("text", text);
    expect_output(numbers, &session, run(&session, "data", "tokens", "tokenizer.json", "text", NULL));
    write_text("numbers", numbers);
    expect_output(text, &session, run(&session, "data", "tokens", "-d", "tokenizer.json", "numbers", NULL));
}

static void texts_are_numbers(void **state)
{
    (void)state;
    struct session session;
    write_text("words.txt", "ab ab ab ab\n");
    expect_output("wrote 256 tokens to tokenizer.json\n", &session,
                  run(&session, "data", "tokenizer", "words.txt", "--tokens", "256", NULL));
    expect_tokens("ab !\n", "64 65 220 0 198\n");
    expect_tokens("\303\244", "127 97\n"); /* the bytes of a character */
    expect_tokens(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64\n");
    expect_tokens(
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64 64\n"
        "65\n");
    /* Any blanks part numbers; none make no text. */
    write_text("numbers", "\t64\v65\f\r\n220 0");
    expect_output("ab !", &session, run(&session, "data", "tokens", "-d", "tokenizer.json", "numbers", NULL));
    write_text("numbers", " \n");
    expect_output("", &session, run(&session, "data", "tokens", "-d", "tokenizer.json", "numbers", NULL));
    static const char *const wrong[][2] = {
        {"64 -1", "\"-1\", number 2 of the file, is no token"},
        {"x", "\"x\", number 1 of the file, is no token"},
        {"1 2 2147483648", "\"2147483648\", number 3 of the file, is no token"},
        {"12345678901234567890", "number 1 of the file, is no token"},
        {"2147483647", "2147483647, is no token; the tokenizer has 256"},
        {"0 256", "number 2, 256, is no token"},
        {"1,2", "\"1,2\", number 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_text("numbers", wrong[i][0]);
        expect_refusal(wrong[i][1], &session,
                       run(&session, "data", "tokens", "-d", "tokenizer.json", "numbers", NULL));
    }
    expect_refusal("nowhere", &session, run(&session, "data", "tokens", "tokenizer.json", "nowhere", NULL));
    expect_refusal("nowhere", &session, run(&session, "data", "tokens", "nowhere.json", "words.txt", NULL));
}

/* This letter of Hindi is two in the composed form: six bytes for three. */
static void texts_may_have_more_tokens_than_bytes(void **state)
{
    (void)state;
    struct session session;
    write_text("words.txt", "x\n");
    expect_exit(0, "data", "tokenizer", "words.txt", "-n", "256", "-o", "plain.json");
    json_t *tokenizer = json_load_file("plain.json", 0, NULL);
    assert_non_null(tokenizer);
    json_object_set_new(tokenizer, "normalizer", json_pack("{s:s}", "type", "NFC"));
    assert_int_equal(json_dump_file(tokenizer, "composing.json", 0), 0);
    json_decref(tokenizer);
    write_text("text", "\340\245\230\340\245\230");
    expect_output("156 97 243 156 97 120 156 97 243 156 97 120\n", &session,
                  run(&session, "data", "tokens", "composing.json", "text", NULL));
    expect_output("156 98 246 156 98 246\n", &session,
                  run(&session, "data", "tokens", "plain.json", "text", NULL));
}

/* Pairs merge as often as they are asked to; special tokens come first after the bytes, or last. */
static void tokenizers_learn(void **state)
{
    (void)state;
    struct session session;
    write_text("words.txt", "ab ab ab ab cd\n");
    expect_output("wrote 258 tokens to few.json\n", &session,
                  run(&session, "data", "tokenizer", "words.txt", "-n", "258", "--out", "few.json", NULL));
    write_text("text", "ab ab");
    int code = run(&session, "data", "tokens", "few.json", "text", NULL);
    assert_int_equal(code, 0);
    assert_string_equal(session.text[0],
                        "256 257\n"); /* "ab" is the most frequent pair, " ab" the next one */
    session_release(&session);
    /* Pairs that come less often than asked are not merged, however many tokens there may be. */
    expect_output("wrote 256 tokens to least.json\n", &session,
                  run(&session, "data", "tokenizer", "words.txt", "--least", "5", "-o", "least.json", NULL));
    expect_output("wrote 260 tokens to all.json\n", &session,
                  run(&session, "data", "tokenizer", "words.txt", "--least", "1", "-o", "all.json", NULL));
    static const char *const wrong[][2] = {
        {"--tokens=255", "--tokens: 255 is out of range; allowed: 256 .. 1048576"},
        {"--tokens=1048577", "--tokens: 1048577 is out of range"},
        {"--least=0", "--least: 0 is out of range"},
        {"--pattern=gpt3", "did you mean \"gpt2\"?"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refusal(wrong[i][1], &session,
                       run(&session, "data", "tokenizer", "words.txt", wrong[i][0], NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_of_every_kind),  cmocka_unit_test(sets_have_states),
        cmocka_unit_test(every_set_has_a_line), cmocka_unit_test(texts_are_numbers),
        cmocka_unit_test(tokenizers_learn),     cmocka_unit_test(texts_may_have_more_tokens_than_bytes),
        cmocka_unit_test(files_are_fetched),
    };
    return cmocka_run_group_tests(tests, place_make, place_remove);
}
