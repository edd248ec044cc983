/* Configurations as large as they may be, and larger by one: when they are read, and when they are changed.
 */
#include "base/options/config.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

/* Takes the text. The tree, or NULL where the message has the words. */
static tr_config *read_or(struct tr_text *text, const char *words)
{
    tr_config *root;
    const tr_status status = tr_config_parse(text->bytes, text->length, "m.yaml", &root);
    if (status != (words ? TR_EFORMAT : TR_OK)) fail_msg("%s", words ? words : tr_error_message());
    if (words && !strstr(tr_error_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tr_error_message(), words);
    tr_text_release(text);
    return root;
}

static void expect(struct tr_text *text, const char *words)
{
    tr_config *root = read_or(text, words);
    tr_config_destroy(&root);
}

static void add_ones(struct tr_text *text, const char *before, int count)
{
    tr_text_add(text, before);
    for (int i = 0; i < count; i++) tr_text_addf(text, "%s1", i ? "," : "");
    tr_text_add(text, "]\n");
}

static void as_much_as_allowed_is_read(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    add_ones(&text, "[", TR_CONFIG_NODES_MAX - 1); /* and the list itself */
    expect(&text, NULL);
    for (int i = 0; i < TR_CONFIG_WIDTH_MAX; i++) tr_text_addf(&text, "k%d: 1\n", i);
    expect(&text, NULL);
    tr_text_pad(&text, 'k', TR_CONFIG_KEY_MAX);
    tr_text_add(&text, ": 1\n");
    expect(&text, NULL);
    /* Values that were copied count like those that were written. */
    for (int more = 8; more <= 9; more++) {
        add_ones(&text, "a: &a [", 9);
        tr_text_add(&text, "b: [");
        for (int i = 0; i < 1998; i++) tr_text_add(&text, "*a, ");
        add_ones(&text, "", more);
        expect(&text, more == 8 ? NULL : "m.yaml:2:8013: more than 20000 values");
    }
    for (int more = 0; more <= 1; more++) {
        tr_text_add(&text, "- &a ");
        tr_text_pad(&text, 'x', 500000);
        tr_text_add(&text, "\n- [*a, *a, *a, *a, *a, *a, *a, ");
        tr_text_pad(&text, 'x', TR_CONFIG_TEXT_MAX - 8 * 500000 + (size_t)more);
        tr_text_add(&text, "]\n");
        expect(&text, more ? "more than 4194304 bytes of text" : NULL);
    }
    for (int lists = 30; lists <= 31; lists++) {
        tr_text_add(&text, "a0: &a0 [x]\n");
        for (int i = 1; i < lists; i++) tr_text_addf(&text, "a%d: &a%d [*a%d]\n", i, i, i - 1);
        expect(&text, lists == 30 ? NULL : "nested deeper than 32 levels");
    }
}

static void the_last_anchor_of_a_name_counts(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "a: &x 1\nb: *x\nc: &x [2, &y 3]\nd: *x\ne: *y\n");
    tr_config *root = read_or(&text, NULL);
    char *out;
    assert_int_equal(tr_config_dump(root, &out), TR_OK);
    assert_string_equal(out, "a: 1\nb: 1\nc: [2, 3]\nd: [2, 3]\ne: 3\n");
    tr_free(out);
    tr_config_destroy(&root);
}

static void changes_keep_to_the_limits(void **state)
{
    (void)state;
    struct tr_text text = TR_TEXT_INIT;
    add_ones(&text, "a: [", TR_CONFIG_NODES_MAX - 5);
    tr_config *root = read_or(&text, NULL); /* 19997 values */
    assert_int_equal(tr_config_set(root, "b=[1, 2, 3]"), TR_EINVAL);
    assert_string_equal(tr_error_message(),
                        "`set` b: the configuration would become too large (3 levels, 20001 values)");
    assert_int_equal(tr_config_set(root, "b=[1, 2]"), TR_OK);
    assert_int_equal(tr_config_set(root, "c=1"), TR_EINVAL);
    tr_config_destroy(&root);
    for (int i = 0; i < TR_CONFIG_WIDTH_MAX; i++) tr_text_addf(&text, "k%d: 1\n", i);
    root = read_or(&text, NULL);
    assert_int_equal(tr_config_set(root, "k1024=1"), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "too large (2 levels, 1026 values)"));
    assert_int_equal(tr_config_set(root, "k1023=2"), TR_OK);
    tr_config_destroy(&root);
    tr_text_add(&text, "a: [&a ");
    tr_text_pad(&text, 'x', 500000);
    tr_text_add(&text, ", *a, *a, *a, *a, *a, *a, *a]\n");
    root = read_or(&text, NULL);
    for (int more = 1; more >= 0; more--) {
        tr_text_add(&text, "key=");
        tr_text_pad(&text, 'y', TR_CONFIG_TEXT_MAX - 1 - 8 * 500000 - 3 + (size_t)more);
        assert_int_equal(tr_config_set(root, text.bytes), more ? TR_EINVAL : TR_OK);
        tr_text_release(&text);
    }
    tr_config_destroy(&root);
}

/* What was put in can be read again. */
static void lists_of_texts_keep_to_the_limits(void **state)
{
    (void)state;
    enum { MOST = TR_CONFIG_NODES_MAX - 3 }; /* besides root, section and list */
    static const char *texts[MOST + 1];
    struct tr_text text = TR_TEXT_INIT;
    for (int i = 0; i <= MOST; i++) texts[i] = "t";
    tr_text_add(&text, "part: {}\n");
    tr_config *root = read_or(&text, NULL);
    assert_int_equal(tr_config_put_texts(root, "part", "classes", MOST + 1, texts), TR_EINVAL);
    assert_non_null(strstr(tr_error_message(), "19998 classes are too many for a configuration"));
    assert_int_equal(tr_config_put_texts(root, "part", "classes", MOST, texts), TR_OK);
    char *out;
    assert_int_equal(tr_config_dump(root, &out), TR_OK);
    tr_text_add(&text, out);
    expect(&text, NULL);
    tr_free(out);
    tr_config_destroy(&root);
    for (int more = 1; more >= 0; more--) { /* one text, beside two keys */
        struct tr_text large = TR_TEXT_INIT;
        tr_text_pad(&large, 'x', TR_CONFIG_TEXT_MAX - strlen("part") - strlen("classes") + (size_t)more);
        texts[0] = large.bytes;
        tr_text_add(&text, "part: {}\n");
        root = read_or(&text, NULL);
        assert_int_equal(tr_config_put_texts(root, "part", "classes", 1, texts), more ? TR_EINVAL : TR_OK);
        tr_text_release(&large);
        tr_config_destroy(&root);
    }
}

/* Places are cut where their memory ends, and nothing is written behind it. */
static void places_are_cut(void **state)
{
    (void)state;
    static const char path[] = "first.b[2][0]";
    struct tr_text text = TR_TEXT_INIT;
    char place[64];
    tr_text_add(&text, "first: {b: [1, 2, [3]]}\n");
    tr_config *root = read_or(&text, NULL);
    const tr_config *list = tr_config_get(tr_config_get(root, "first"), "b");
    const tr_config *node = tr_config_at(tr_config_at(list, 2), 0);
    for (size_t size = 1; size < 40; size++)
        for (int located = 0; located < 2; located++) {
            memset(place, '#', sizeof place);
            const char *got =
                located ? tr_config_location(node, place, size) : tr_config_path(node, place, size);
            const char *all = located ? "m.yaml:1:20: first.b[2][0]" : path;
            assert_ptr_equal(got, place);
            assert_int_equal(strlen(got), strlen(all) < size ? strlen(all) : size - 1);
            assert_memory_equal(got, all, strlen(got));
            for (size_t i = size; i < sizeof place; i++) assert_int_equal(place[i], '#');
        }
    tr_config_destroy(&root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_much_as_allowed_is_read),
        cmocka_unit_test(the_last_anchor_of_a_name_counts),
        cmocka_unit_test(changes_keep_to_the_limits),
        cmocka_unit_test(lists_of_texts_keep_to_the_limits),
        cmocka_unit_test(places_are_cut),
    };
    return cmocka_run_group_tests_name("base.config_limits", tests, NULL, NULL);
}
