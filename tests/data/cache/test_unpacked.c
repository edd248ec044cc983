/* Files of unpacked data hold what their source holds. What is wrong in one: test_unpacked_damage.c. */
#include "base/fail.h"
#include "base/files/file.h"
#include "data/cache/entries.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static void expect_same(const tr_source *a, const tr_source *b)
{
    const struct tr_source_info *x = &a->info, *y = &b->info;
    const int64_t first[] = {x->count,    x->features, x->labels, x->height,     x->width,
                             x->channels, a->range,    x->floats, x->max_tokens, x->vocabulary,
                             x->classes,  x->values,   x->skipped};
    const int64_t second[] = {y->count,    y->features, y->labels, y->height,     y->width,
                              y->channels, b->range,    y->floats, y->max_tokens, y->vocabulary,
                              y->classes,  y->values,   y->skipped};
    const char *name[2];
    char *text[2], digest[2][TR_SHA256_TEXT];
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(x->class_names != NULL, y->class_names != NULL);
    for (int32_t i = 0; x->class_names && i < x->classes; i++)
        assert_string_equal(x->class_names[i], y->class_names[i]);
    assert_int_equal(tr_source_state(a, &name[0], &text[0]), TR_OK);
    assert_int_equal(tr_source_state(b, &name[1], &text[1]), TR_OK);
    assert_int_equal(text[0] != NULL, text[1] != NULL);
    if (text[0]) assert_string_equal(text[0], text[1]);
    if (text[0]) assert_string_equal(name[0], name[1]);
    for (int i = 0; i < 2; i++) tr_text_free(text[i]);
    assert_int_equal(tr_source_digest(a, digest[0]), TR_OK);
    assert_int_equal(tr_source_digest(b, digest[1]), TR_OK);
    assert_string_equal(digest[0], digest[1]);
    for (int64_t i = 0; i < x->count; i++) {
        float features[2][16] = {{0}}, label[2][16] = {{0}};
        int64_t length[2];
        assert_int_equal(tr_source_read(a, i, features[0], 16, &length[0], label[0]), TR_OK);
        assert_int_equal(tr_source_read(b, i, features[1], 16, &length[1], label[1]), TR_OK);
        assert_int_equal(length[0], length[1]);
        assert_memory_equal(features[0], features[1], sizeof features[0]);
        assert_memory_equal(label[0], label[1], sizeof label[0]);
        assert_int_equal(tr_source_read(b, i, NULL, 0, &length[1], label[1]), TR_OK);
        assert_int_equal(tr_source_read(b, i, features[1], 16, &length[1], NULL), TR_OK);
        if (x->labels == TR_LABEL_TOKENS)
            assert_int_equal(a->class->labelled(a, i), b->class->labelled(b, i));
    }
    assert_int_equal(tr_source_show(a, 0, x->count, 80, &text[0]), TR_OK);
    assert_int_equal(tr_source_show(b, 0, x->count, 80, &text[1]), TR_OK);
    assert_string_equal(text[0], text[1]);
    for (int i = 0; i < 2; i++) tr_text_free(text[i]);
}

static void entries_hold_what_their_sources_hold(void **unused)
{
    static const char *const all[] = {DIGITS, MASKS, VALUES, BAD_ROWS, NAMED, TEXTS, TAGS, WINDOWS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        struct entry entry = make_entry(all[i]);
        tr_source *direct = must_open(all[i]), *source;
        for (int verify = 0; verify < 2; verify++) {
            *entry_warning = '\0';
            if (open_sealed(&entry, verify, &source) != TR_OK) fail_msg("%s: %s", all[i], tr_error_message());
            assert_string_equal(entry_warning,
                                direct->info.skipped ? "the data leave out 2 bad records" : "");
            expect_same(direct, source);
            tr_source_close(&source);
        }
        for (int section = 0; section < TR_UNPACKED_SECTIONS; section++)
            assert_int_equal(entry.tail.section[section].offset % 64, 0);
        tr_source_close(&direct);
        free(entry.file.data);
    }
}

/* Examples of a fixed size are read from the file; texts are not. */
static void examples_are_read_from_the_file(void **unused)
{
    static const char *const all[] = {DIGITS, VALUES, TEXTS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        struct entry entry = make_entry(all[i]);
        tr_source *direct = must_open(all[i]), *source;
        float features[16], label[16];
        assert_int_equal(open_sealed(&entry, true, &source), TR_OK);
        const int descriptor = open(test_path("entry"), O_RDONLY | O_CLOEXEC);
        tr_unpacked_read_from(source, descriptor, "the file");
        assert_int_equal(source->filed, i < 2);
        assert_int_equal(fcntl(descriptor, F_GETFD) >= 0, i < 2);
        expect_same(direct, source);
        tr_source_close(&source);
        assert_true(fcntl(descriptor, F_GETFD) < 0);
        if (i < 2) { /* a file that ends too early */
            int64_t length;
            const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
            assert_int_equal(open_sealed(&entry, true, &source), TR_OK);
            tr_unpacked_read_from(source, empty, "the file");
            assert_int_not_equal(tr_source_read(source, 0, features, 16, &length, label), TR_OK);
            assert_non_null(strstr(tr_error_message(), "the file"));
            assert_int_not_equal(source->class->read_run(source, 0, 2, features, label), TR_OK);
            assert_int_equal(source->class->read_run(source, 0, 2, NULL, label), TR_OK);
            tr_source_close(&source);
        }
        tr_source_close(&direct);
        free(entry.file.data);
    }
}

static void a_lack_of_memory_is_told(void **unused)
{
    static const char *const all[] = {DIGITS, NAMED, TAGS, WINDOWS};
    (void)unused;
    for (int i = 0; i < LENGTH(all); i++) {
        tr_source *direct = must_open(all[i]);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            struct tr_file_map map = {0};
            tr_source *source = NULL;
            refuse_begin(at);
            tr_status status = write_entry(direct);
            if (status == TR_OK) status = tr_file_map(test_path("entry"), &map);
            if (status == TR_OK) status = tr_unpacked_open(&map, "it", entry_key, true, &source);
            done = refuse_end();
            assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
            assert_int_equal(source != NULL, done);
            tr_source_close(&source);
            assert_null(map.data);
            assert_int_equal(tr_alloc_live(), live);
        }
        tr_source_close(&direct);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_hold_what_their_sources_hold),
        cmocka_unit_test(examples_are_read_from_the_file),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, write_entry_data, NULL);
}
