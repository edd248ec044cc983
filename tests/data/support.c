#include "data/support.h"

#include "base/alloc.h"
#include "data/source.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static char directory[64];

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

static void remove_directory(void)
{
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_directory(void)
{
    if (!directory[0]) {
        /* in memory where possible: these tests write thousands of small files */
        strcpy(directory, "/dev/shm/trireme-data-XXXXXX");
        if (!mkdtemp(directory)) {
            strcpy(directory, "/tmp/trireme-data-XXXXXX");
            if (!mkdtemp(directory)) abort();
        }
        atexit(remove_directory);
    }
    return directory;
}

const char *test_path(const char *name)
{
    static char path[8][512];
    static unsigned turn;
    char *at = path[turn++ % 8];
    snprintf(at, sizeof path[0], "%s/%s", test_directory(), name);
    return at;
}

void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(test_path(name), "wb");
    if (!file || (size > 0 && fwrite(data, 1, size, file) != size) || fclose(file) != 0) {
        fail_msg("cannot write %s", name);
    }
}

void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

struct bytes read_file(const char *path)
{
    struct bytes out = {0};
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot read %s", path);
    fseek(file, 0, SEEK_END);
    out.size = (size_t)ftell(file);
    rewind(file);
    out.data = malloc(out.size + 1);
    if (!out.data || fread(out.data, 1, out.size, file) != out.size) fail_msg("cannot read %s", path);
    fclose(file);
    return out;
}

struct bytes pack(const void *data, size_t size, int window_bits)
{
    z_stream stream = {0};
    struct bytes out;
    if (deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    size_t room = deflateBound(&stream, size) + 64;
    out.data = malloc(room);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)size;
    stream.next_out = out.data;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) abort();
    out.size = stream.total_out;
    deflateEnd(&stream);
    return out;
}

tr_status try_open(const char *description)
{
    tr_source *source = NULL;
    tr_status status = tr_source_open(description, test_directory(), NULL, &source);
    if (status == TR_OK) tr_source_close(&source);
    return status;
}

tr_source *must_open(const char *description)
{
    tr_source *source = NULL;
    if (tr_source_open(description, test_directory(), NULL, &source) != TR_OK) {
        fail_msg("%s: %s", description, tr_error_message());
    }
    return source;
}

void expect_refusal(const char *description, tr_status status, const char *part)
{
    tr_status got = try_open(description);
    if (got != status || (got != TR_OK && !strstr(tr_error_message(), part))) {
        fail_msg("%s: expected %s with \"%s\", got %s: %s", description, tr_status_name(status), part,
                 tr_status_name(got), got == TR_OK ? "" : tr_error_message());
    }
}

void expect_out_of_memory(const char *description)
{
    for (int64_t at = 0, done = 0; !done; at++) {
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = try_open(description);
        done = refuse_end();
        if (status != (done ? TR_OK : TR_ENOMEM) || tr_alloc_live() != live)
            fail_msg("%s: allocation %d: %s, %d blocks left", description, (int)at, tr_status_name(status),
                     (int)(tr_alloc_live() - live));
    }
}

void expect_same_source(const tr_source *a, const tr_source *b)
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
        float features[2][1024] = {{0}}, label[2][1024] = {{0}};
        int64_t length[2];
        assert_int_equal(tr_source_read(a, i, features[0], 1024, &length[0], label[0]), TR_OK);
        assert_int_equal(tr_source_read(b, i, features[1], 1024, &length[1], label[1]), TR_OK);
        assert_int_equal(length[0], length[1]);
        assert_memory_equal(features[0], features[1], sizeof features[0]);
        assert_memory_equal(label[0], label[1], sizeof label[0]);
        assert_int_equal(tr_source_read(b, i, NULL, 0, &length[1], label[1]), TR_OK);
        assert_int_equal(tr_source_read(b, i, features[1], 1024, &length[1], NULL), TR_OK);
        if (x->labels == TR_LABEL_TOKENS)
            assert_int_equal(a->class->labelled(a, i), b->class->labelled(b, i));
    }
    assert_int_equal(tr_source_show(a, 0, x->count, 80, &text[0]), TR_OK);
    assert_int_equal(tr_source_show(b, 0, x->count, 80, &text[1]), TR_OK);
    assert_string_equal(text[0], text[1]);
    for (int i = 0; i < 2; i++) tr_text_free(text[i]);
}
