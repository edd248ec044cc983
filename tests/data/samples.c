#include "data/samples.h"

#include "base/alloc.h"
#include "data/bpe/bpe.h"
#include "data/images/image.h"
#include "data/support.h"
#include "io/tar.h"
#include "support/files/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void write_shard(const char *archive, const char *name, const char *class)
{
    uint8_t bytes[8 * TR_TAR_BLOCK] = {0}, *png, pixels[4] = {1, 2, 3, 4};
    char member[32];
    size_t size;
    assert_int_equal(tr_image_encode(pixels, (struct tr_image_size){2, 2, 1}, &png, &size), TR_OK);
    snprintf(member, sizeof member, "%s.png", name);
    assert_int_equal(tr_tar_header("", member, size, bytes), TR_OK);
    memcpy(bytes + TR_TAR_BLOCK, png, size);
    snprintf(member, sizeof member, "%s.cls", name);
    assert_int_equal(tr_tar_header("", member, strlen(class), bytes + 2 * TR_TAR_BLOCK), TR_OK);
    memcpy(bytes + 3 * TR_TAR_BLOCK, class, strlen(class));
    write_file(archive, bytes, 6 * TR_TAR_BLOCK);
    mkdir(test_path("folder"), 0700);
    mkdir(test_path("folder/cats"), 0700);
    mkdir(test_path("folder/dogs"), 0700);
    write_file("folder/cats/1.png", png, size);
    write_file("folder/dogs/1.png", png, size);
    tr_free(png);
}

/* A tokenizer with some pairs of letters. */
static void write_tokenizer(void)
{
    static const char text[] = "the fox, the dog, the other fox";
    static const char *const special[] = {NULL};
    const struct tr_bpe_training settings = {TR_BPE_GPT2, 262, 2, special};
    tr_bpe_trainer *trainer;
    tr_bpe *bpe;
    char *json;
    assert_int_equal(tr_bpe_trainer_create(&settings, &trainer), TR_OK);
    assert_int_equal(tr_bpe_trainer_count(trainer, text, sizeof text - 1), TR_OK);
    assert_int_equal(tr_bpe_trainer_finish(trainer, &bpe), TR_OK);
    assert_int_equal(tr_bpe_write(bpe, &json), TR_OK);
    write_text("tokenizer.json", json);
    tr_text_free(json);
    tr_bpe_destroy(&bpe);
    tr_bpe_trainer_destroy(&trainer);
}

int write_samples(void **unused)
{
    (void)unused;
    uint8_t images[16 + 3 * 4] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2}, masks[sizeof images];
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1}, classes[] = {2, 0, 1};
    static const float floats[] = {1, 2, -3, 0.5f, 1e-9f, 6};
    memcpy(masks, images, sizeof masks);
    for (size_t i = 16; i < sizeof images; i++) images[i] = (uint8_t)(i * 37);
    for (size_t i = 16; i < sizeof images; i++) masks[i] = (uint8_t)(i % 3);
    write_file("images", images, sizeof images);
    write_file("masks", masks, sizeof masks);
    write_file("labels", labels, sizeof labels);
    npy_write(test_path("bytes.npy"), "|u1", "3, 2, 2", images + 16, 12);
    npy_write(test_path("pixels.npy"), "|u1", "3, 2, 2", masks + 16, 12);
    npy_write(test_path("classes.npy"), "|u1", "3,", classes, sizeof classes);
    npy_write(test_path("floats.npy"), "<f4", "3, 2", floats, sizeof floats);
    npy_write(test_path("values.npy"), "<f4", "3, 2", floats, sizeof floats);
    write_text("table", "a,b,label\n1,2,0\n3,9,1\n-4,0.5,2\n");
    write_text("long", "a,b,label\n1,2,0\n3,9,1\n-4,0.5,2\n5,6,7\n8,9,9\n");
    write_text("lines", "a good film\nbad\nnot good at all\n");
    write_text("named", "a,b,label\n1,x,cat\n3,y,ox\n-4,x,cat\n");
    write_text(
        "names",
        "a,b,label\n1,the first of some long names in a column,cat\n3,the second of some long names,ox\n"
        "-4,the third of them,cat\n5,the fourth of them,ox\n6,the fifth and last of them,cat\n");
    write_text("rows", "{\"a\": 1, \"b\": 2, \"label\": 0}\n{\"a\": 3, \"b\": 4, \"label\": 1}\n");
    write_text("texts", "a good film\t1\nbad\t0\nnot good at all\t0\n");
    write_text("moods", "a good film\tgood\nbad\tbad\n");
    write_text("empty", "a,b,label\n1,,0\n3,9,1\n-4,0.5,2\n,4,1\n");
    write_text("tags", "a good film\t0 1 -\nbad\t2\n");
    write_text("corpus", "the quick brown fox jumps over the lazy dog\n");
    write_text("reviews", "title,body,stars\nA b,\"so, good\nvery\",1\nC,bad,0\n");
    write_text("objects", "{\"title\": \"A b\", \"body\": \"so, good\", \"stars\": 1}\n"
                          "{\"title\": \"C\", \"body\": \"bad\", \"stars\": 0}\n");
    write_file("ids", (const uint8_t[]){1, 0, 4, 0, 0, 0, 4, 0}, 8);
    write_text("pictures", "name\ndogs/1.png\ncats/1.png\ndogs/1.png\n");
    write_shard("other.tar", "02", "1");
    write_shard("archive.tar", "01", "1");
    tr_source *source = must_open("{idx: {images: images, labels: labels}}");
    assert_int_equal(tr_source_convert(source, "tfrecord", "none", test_path("plain.tfrecord")), TR_OK);
    assert_int_equal(tr_source_convert(source, "tfrecord", "gzip", test_path("packed.tfrecord")), TR_OK);
    tr_source_close(&source);
    source = must_open("{csv: {path: table, label: value}}");
    assert_int_equal(tr_source_convert(source, "tfrecord", "none", test_path("numbers.tfrecord")), TR_OK);
    tr_source_close(&source);
    write_tokenizer();
    return 0;
}
