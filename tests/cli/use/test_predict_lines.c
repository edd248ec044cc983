/* predict for examples that come by themselves: numbers with gaps, lines of standard input one by one and in
 * thousands, names of image files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/use/animals.h"
#include "base/alloc.h"
#include "data/images/image.h"

/* ---- numbers ---- */

/* What is missing gets the mean of the column, as the text of the row says itself. */
static void test_numbers(void **state)
{
    (void)state;
    struct session session;
    double sum = 0;
    int there = 0;
    char filled[64];
    for (int i = 0; i < ROWS; i++) {
        sum += i % 10 == 4 ? 0 : i % 3 * 4;
        there += i % 10 != 4;
    }
    snprintf(filled, sizeof filled, "%.9g,4", sum / there);
    expect_exit(0, "predict", "runs/animals", "--values", ",4", "--values", "NA,4", "--values", filled, "-o",
                "gaps.npy");
    struct tr_file_content array = content_of("gaps.npy");
    assert_int_equal(array.size, 128 + 3 * 3 * sizeof(float));
    assert_memory_equal(array.data + 128, array.data + 128 + 12, 12);
    assert_memory_equal(array.data + 128, array.data + 128 + 24, 12);
    tr_file_content_free(&array);
    struct setup lines = {.input = "height weight\n0 1\n\n8\t7\r\n4 4"};
    int code = run_with(&session, lines, "predict", "runs/animals", "-o", "lines.csv", NULL);
    expect_error(2, "standard input:4:1: 1 numbers, the network takes 2", &session, code);
    session_release(&session);
    lines.input = "height weight\n0 1\n\n8 7\r\n4 4";
    code = run_with(&session, lines, "predict", "runs/animals", NULL);
    assert_int_equal(strncmp(session.text[0], "0 1: cat ", 9), 0);
    assert_non_null(strstr(session.text[0], "\n8 7: owl "));
    expect_output(&session, code, "\n4 4: big, \"old\" dog ");
}

/* What the table takes, a row by itself takes: names, those that nobody knows, and gaps. */
static void test_names(void **state)
{
    (void)state;
    enum { PETS = 60 };
    static const char *const sounds[] = {"meow", "woof, woof", "hoot"};
    char text[64 * PETS], *at = text + sprintf(text, "sound,weight,kind\n");
    for (int i = 0; i < PETS; i++)
        at += sprintf(at, "\"%s\",%d,%s\n", i % 10 == 4 ? "NA" : sounds[i % 3], i % 5,
                      i % 3 ? i % 3 == 1 ? "dog" : "owl" : "cat");
    write_text("pets.csv", text);
    write_text("pets.yaml",
               "name: pets\n"
               "data:\n"
               "  train: {csv: {path: pets.csv, categories: sound, missing: mean, standardize: true}}\n"
               "  test: {csv: {path: pets.csv, categories: sound, missing: mean, standardize: true}}\n"
               "layers: [{dense: 3}]\noptimizer: {rule: adam, rate: 0.1}\ntrain: {batch: 30, steps: 60}\n");
    expect_exit(0, "train", "pets.yaml");
    struct session session;
    int code = run(&session, "predict", "runs/pets", "--values", "meow,2", "--values", "\"woof, woof\",NA",
                   "--values", "hoot,1", NULL);
    assert_int_equal(strncmp(session.text[0], "meow,2: cat ", 12), 0);
    assert_non_null(strstr(session.text[0], "\"woof, woof\",NA: dog "));
    expect_output(&session, code, "\nhoot,1: owl ");
    /* A name that nobody knows is none, as one that is missing; both say what the data set says. */
    write_text("odd.csv", "sound,weight,kind\nmoo,2,cat\n,2,cat\nhoot,,owl\n");
    expect_exit(0, "predict", "runs/pets", "--data",
                "{csv: {path: odd.csv, categories: sound, missing: mean}}", "-o", "set.npy");
    expect_exit(0, "predict", "runs/pets", "--values", "moo,2", "--values", ",2", "--values", "hoot,", "-o",
                "rows.npy");
    struct tr_file_content set = content_of("set.npy"), rows = content_of("rows.npy");
    assert_int_equal(rows.size, 128 + 3 * 3 * sizeof(float));
    assert_memory_equal(set.data + 128, rows.data + 128, 3 * 3 * sizeof(float));
    assert_memory_equal(rows.data + 128, rows.data + 128 + 12, 12);
    tr_file_content_free(&set);
    tr_file_content_free(&rows);
    /* Lines with names of columns above, and without. */
    struct setup lines = {.input = "sound,weight\nmeow,2\n"};
    code = run_with(&session, lines, "predict", "runs/pets", NULL);
    assert_null(strstr(session.text[0], "sound"));
    expect_output(&session, code, "meow,2: cat ");
    lines.input = "meow,2\nmeow,two\n";
    code = run_with(&session, lines, "predict", "runs/pets", NULL);
    expect_error(2, "standard input:2:6: field 1 \"two\" is not a number", &session, code);
    session_release(&session);
    /* Where other names stop, the nearest is named. */
    expect_exit(0, "train", "pets.yaml", "--set", "data.train.csv.unknown=stop", "--out", "runs/strict");
    expect_refusal(
        "--values:1:1: value 1: \"meov\" is none of the 3 names of the training data; did you mean "
        "\"meow\"?",
        (const char *[]){"predict", "runs/strict", "--values", "meov,2", NULL});
}

/* More lines than go together, each with its number. */
static void test_many_lines(void **state)
{
    (void)state;
    enum { LINES = 3000 };
    char *text = malloc(LINES * 16), *end = text;
    struct session session;
    assert_non_null(text);
    for (int i = 0; i < LINES; i++) end += sprintf(end, "%d,%d\n", i % 3 * 4, 1 + i % 3 * 3);
    int code =
        run_with(&session, (struct setup){.input = text}, "predict", "runs/animals", "-o", "many.csv", NULL);
    expect_output(&session, code, "(3,000 examples, ");
    struct tr_file_content table = content_of("many.csv");
    char *at = table.data;
    next_line(&at);
    for (int i = 0; i < LINES; i++) {
        char expected[64], *line = next_line(&at);
        snprintf(expected, sizeof expected, "%d,\"%d,%d\",%s", i, i % 3 * 4, 1 + i % 3 * 3,
                 i % 3 == 1 ? "\"big, \"\"old\"\" dog\"" : kind_of(i));
        if (strncmp(line, expected, strlen(expected)) != 0) fail_msg("%s begins not with %s", line, expected);
    }
    tr_file_content_free(&table);
    free(text);
}

static void expect_answer(FILE *to, int from, const char *line, const char *answer)
{
    char text[256] = "";
    size_t size = 0;
    fprintf(to, "%s\n", line);
    fflush(to);
    while (!strchr(text, '\n')) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        ssize_t got = read(from, text + size, sizeof text - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
    }
    assert_memory_equal(text, answer, strlen(answer));
}

/* Each line is answered before the next one is there. */
static void test_a_dialogue(void **state)
{
    (void)state;
    int to[2], from[2], status;
    assert_int_equal(pipe(to) || pipe(from), 0);
    pid_t child = fork();
    if (child == 0) {
        if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0) _exit(99);
        close(to[1]);
        close(from[0]);
        execl(TRIREME_PROGRAM, "trireme", "predict", "runs/animals", NULL);
        _exit(99);
    }
    close(to[0]);
    close(from[1]);
    FILE *lines = fdopen(to[1], "w");
    expect_answer(lines, from[0], "0,1", "0,1: cat ");
    expect_answer(lines, from[0], "8,7", "8,7: owl ");
    fclose(lines);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(from[0]);
}

/* ---- images ---- */

/* As the images of the data: two bright rows among dark ones say the class. */
static void write_image(const char *path, int side, int class)
{
    uint8_t pixels[12 * 12], *png;
    size_t bytes;
    for (int i = 0; i < side * side; i++) pixels[i] = i / side * 3 / side == class ? 220 : 30;
    struct tr_image_size size = {side, side, 1};
    assert_int_equal(tr_image_encode(pixels, size, &png, &bytes), TR_OK);
    assert_int_equal(tr_file_write_atomic(NULL, path, png, bytes), TR_OK);
    tr_free(png);
}

static void test_images_by_the_line(void **state)
{
    (void)state;
    struct session session;
    write_image("a two.png", 6, 2);
    write_image("one.png", 6, 1);
    write_image("large.png", 12, 0);
    struct setup files = {.input = "a two.png\n\none.png\r\n"};
    int code = run_with(&session, files, "predict", "runs/tiny", NULL);
    assert_int_equal(strncmp(session.text[0], "a two.png: 2 ", 13), 0);
    expect_output(&session, code, "\none.png: 1 ");
    /* Each is drawn above its answer. */
    char drawn[4096] = "";
    static const char *const images[] = {"a two.png", "one.png"};
    for (int i = 0; i < 2; i++) {
        code = run(&session, "predict", "runs/tiny", "--show", "--image", images[i], NULL);
        assert_int_equal(code, 0);
        assert_true(session.text[0][0] != images[i][0] && strlen(session.text[0]) < 2000);
        strcat(drawn, session.text[0]);
        session_release(&session);
    }
    code = run(&session, "predict", "runs/tiny", "--show", "--image", images[0], "--image", images[1], NULL);
    expect_output(&session, code, drawn);
    files.input = "one.png\nlarge.png\n";
    code = run_with(&session, files, "predict", "runs/tiny", NULL);
    expect_error(2, "large.png: 12 x 12 pixels, and the network takes 6 x 6; add --fit scale, or --fit crop",
                 &session, code);
    session_release(&session);
    code = run_with(&session, files, "predict", "runs/tiny", "--fit", "scale", NULL);
    expect_output(&session, code, "\nlarge.png: 0 ");
    code = run_with(&session, (struct setup){.input = "missing.png\n"}, "predict", "runs/tiny", NULL);
    expect_error(2, "missing.png", &session, code);
    session_release(&session);
    code = run_with(&session, (struct setup){.input = ""}, "predict", "runs/tiny", NULL);
    expect_error(2, "nothing to predict", &session, code);
    session_release(&session);
}

/* ---- what does not go together ---- */

static void test_refusals_name_the_kind(void **state)
{
    (void)state;
    static const struct {
        const char *part, *arguments[9];
    } cases[] = {
        {"--image: the network of \"runs/animals/", {"predict", "runs/animals", "--image", "one.png"}},
        {"\" takes numbers", {"predict", "runs/animals", "--image", "one.png"}},
        {"--values: the network of \"runs/tiny/", {"predict", "runs/tiny", "--values", "1"}},
        {"\" takes images", {"predict", "runs/tiny", "--values", "1"}},
        {"--text: the network of", {"predict", "runs/tiny", "--text", "a"}},
        {"--index: chooses examples of a data set; add --set-name, --data or --idx",
         {"predict", "runs/tiny", "--image", "one.png", "--index", "0"}},
        {"--show: draws for people, and --json is for programs",
         {"predict", "runs/tiny", "--image", "one.png", "--show", "--json"}},
        {"--show: is for standard output; leave it out, or --output",
         {"predict", "runs/tiny", "--image", "one.png", "--show", "-o", "x.csv"}},
        {"--output: takes one kind of input",
         {"predict", "runs/tiny", "--set-name", "test", "--image", "one.png", "-o", "x.csv"}},
        {"--top: 0 is out of range", {"predict", "runs/tiny", "--image", "one.png", "--top=0"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refusal(cases[i].part, cases[i].arguments);
    struct session session;
    int code = run(&session, "predict", "runs/animals", NULL);
    expect_error(2, "nothing to predict: standard input has no lines; give --values X,..., --set-name test",
                 &session, code);
    session_release(&session);
    code = run(&session, "predict", "runs/tiny", NULL);
    expect_error(2, "give --image FILE, --idx FILE, --set-name test or --data, or lines", &session, code);
    session_release(&session);
    /* Several kinds are answered one after the other on standard output, with as many classes as asked. */
    code = run(&session, "predict", "runs/tiny", "--image", "one.png", "--set-name", "test", "-n", "5", "-k",
               "1", NULL);
    const char *next = strchr(session.text[0], '\n');
    assert_int_equal(strncmp(session.text[0], "one.png: 1 ", 11), 0);
    assert_int_equal(strncmp(next, "\ntest[5]: 2 ", 12), 0);
    assert_true(!memchr(session.text[0], ',', (size_t)(next - session.text[0])));
    expect_output(&session, code, " %\n");
}

static int make(void **state)
{
    if (animals_make(state) != 0) return -1;
    expect_exit(0, "train", "tiny.yaml", "--steps", "150");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_a_dialogue),
        cmocka_unit_test(test_images_by_the_line),
        cmocka_unit_test(test_refusals_name_the_kind),
    };
    return cmocka_run_group_tests(tests, make, place_remove);
}
