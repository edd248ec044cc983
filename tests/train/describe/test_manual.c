/* The manual says what the program does: its reference is the one that the option tables give, and its
 * examples are read.
 *
 * Called with --update, it writes the reference into the page.
 */
#include "trireme/inspect.h"

#include "base/alloc.h"
#include "base/options/config.h"
#include "base/files/file.h"
#include "refuse.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

static const char page_path[] = TRIREME_SOURCE_DIR "/docs/reference/model-file.md";
static const char marker[] = "`test_train_manual --update` writes it. -->\n\n";

/* The page; *reference is where its generated part begins. Free with tr_file_content_free(). */
static struct tr_file_content read_page(char **reference)
{
    struct tr_file_content page;
    if (tr_file_read(page_path, 1 << 20, &page) != TR_OK) fail_msg("%s", tr_error_message());
    *reference = strstr(page.data, marker);
    if (!*reference) fail_msg("%s has lost the line that ends in %s", page_path, marker);
    *reference += strlen(marker);
    return page;
}

static void the_page_holds_the_reference(void **state)
{
    (void)state;
    char *reference, *expected;
    struct tr_file_content page = read_page(&reference);
    assert_int_equal(tr_manual(&expected), TR_OK);
    if (strcmp(reference, expected) != 0) {
        size_t at = 0;
        while (reference[at] == expected[at]) at++;
        while (at > 0 && expected[at - 1] != '\n') at--;
        fail_msg(
            "%s differs from the option tables; run test_train_manual --update\npage:   %.*s\ntables: %.*s",
            page_path, (int)strcspn(reference + at, "\n"), reference + at, (int)strcspn(expected + at, "\n"),
            expected + at);
    }
    tr_free(expected);
    tr_file_content_free(&page);
}

/* Finds the next ```yaml block behind *at: its text up to a line --- or the end. Moves *at behind it. */
static bool next_example(const char **at, const char **begin, size_t *length)
{
    static const char fence[] = "```yaml\n", separator[] = "---\n";
    const char *start = *at;
    bool inside = strncmp(start, separator, strlen(separator)) == 0;
    start = inside ? start + strlen(separator) : strstr(start, fence);
    if (!start) return false;
    if (!inside) start += strlen(fence);
    const char *end = start;
    while (strncmp(end, "```", 3) != 0 && strncmp(end, separator, strlen(separator)) != 0)
        end = strchr(end, '\n') + 1;
    *begin = start;
    *length = (size_t)(end - start);
    *at = end;
    return true;
}

static void the_examples_are_read(void **state)
{
    (void)state;
    char *reference, directory[SCRATCH_PATH], path[SCRATCH_PATH];
    struct tr_file_content page = read_page(&reference);
    const char *at = page.data, *example;
    size_t length;
    int examples = 0, whole = 0;
    scratch_make(directory);
    scratch_join(path, directory, "example.yaml");
    while (next_example(&at, &example, &length)) {
        tr_config *root;
        if (tr_config_parse(example, length, "example", &root) != TR_OK) fail_msg("%s", tr_error_message());
        examples++;
        if (tr_config_get(root, "layers")) {
            /* A whole model file: with all its checks, without its data. */
            char *text;
            assert_int_equal(tr_file_write_atomic(NULL, path, example, length), TR_OK);
            if (tr_inspect(path, NULL, 0, &text) != TR_OK) fail_msg("%s", tr_error_message());
            tr_free(text);
            /* The overrides that the page shows. */
            static const char *const set[] = {
                "optimizer.rate=1e-4",
                "train.steps=500",
                "layers[0].conv.kernel=[5, 3]",
                "layers.conv1.filters=64",
                "layers.3.units=512",
                "layers.5.use_bias=false",
                "optimizer.schedule={kind: exponential, decay: 0.99, every: 600}"};
            if (tr_inspect(path, set, 7, &text) != TR_OK) fail_msg("%s", tr_error_message());
            tr_free(text);
            for (size_t i = 0; i < 7; i++) assert_non_null(strstr(page.data, set[i]));
            whole++;
        }
        tr_config_destroy(&root);
    }
    assert_int_equal(examples, 5);
    assert_int_equal(whole, 1);
    scratch_remove(directory);
    tr_file_content_free(&page);
}

static void memory_may_fail_anywhere(void **state)
{
    (void)state;
    for (int64_t at = 0, done = 0; !done; at++) {
        int64_t live = tr_alloc_live();
        char *text = NULL;
        refuse_begin(at);
        tr_status status = tr_manual(&text);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        tr_free(text);
        assert_int_equal(tr_alloc_live(), live);
    }
}

static int update(void)
{
    char *reference, *expected, *text;
    struct tr_file_content page = read_page(&reference);
    if (tr_manual(&expected) != TR_OK) return 1;
    text = tr_format("%.*s%s", (int)(reference - page.data), page.data, expected);
    bool written = text && tr_file_write_atomic(NULL, page_path, text, strlen(text)) == TR_OK;
    if (!written) print_error("%s\n", tr_error_message());
    tr_free(text);
    tr_free(expected);
    tr_file_content_free(&page);
    return !written;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--update") == 0) return update();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_holds_the_reference),
        cmocka_unit_test(the_examples_are_read),
        cmocka_unit_test(memory_may_fail_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
