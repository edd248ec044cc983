/* Digests of sources. A run that is resumed compares the digest of its data with the one that it noted,
 * perhaps under an older version: the same data keep theirs, and whatever the examples or labels differ in,
 * the digests do.
 */
#include "base/fail.h"
#include "data/order/split.h"
#include "data/samples.h"
#include "data/support.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct {
    const char *description, *digest;
} pinned[] = {
    {"{idx: {images: images}}", "4b5c5c790efe56ace683395b1a71b63872622d81061fad8f8bed24d4359eaf04"},
    {"{idx: {images: images, labels: labels}}",
     "91fd2535eb1582c575c7b3ccac1a1202b59b1d38f6c130b8c45b8b1bdd779a7a"},
    {"{idx: {images: images, labels: masks}}",
     "2e108727889fda3fe24ad0805d53d1fafc328fbe2eb5a8067b1ba2a3eea20a96"},
    {"{idx: {images: images, labels: masks, ignore: 2}}",
     "4e67bb10521c4e0538126ed6a933394e0202c543ec5150c9e8f14a4f47c290cb"},
    {"{npy: {features: bytes.npy, labels: classes.npy}}",
     "cf0f917c351ff380035eaa94289f21c66a755767fe9a06fa589ed1f2316fbd91"},
    {"{npy: {features: bytes.npy, labels: pixels.npy}}",
     "e27de6f0eff6066bf13b59329618c66f5f74d856b654d55c7f32c9a4be3ba5f7"},
    {"{npy: {features: floats.npy}}", "b64e1c63cc24f0cc6d306a2d2396d06cb9802f2790996e77ff662ed85c3ff820"},
    {"{npy: {features: floats.npy, labels: classes.npy}}",
     "7a743a4f84aeb947465446547f2680c29c110de5b4775515496faaf6e872f70f"},
    {"{npy: {features: floats.npy, labels: values.npy}}",
     "9d5a74e47b99bea05bd7a84a7a4df1022adead4959adbfe5391780ec766a6684"},
    {"{csv: {path: table}}", "7c3390d132c59af3e99f6f3d6fa82f4082d49bfa5789cc890321f13e663eba3b"},
    {"{csv: {path: table, label: value}}",
     "45e4aada2f2ac5167fe86fb008d5acf204e770155a98afcca147dc0c752ed10b"},
    {"{csv: {path: table, label: none}}", "873c7eb3b4fc291e21a5b4c1256cf3163dc0436c1ee03d793963954b9861cbe0"},
    {"{csv: {path: named, categories: [b]}}",
     "44a26ee838b39e7905e7c5c99cdaaa27b2deb69c99e7042855d7f03af15bc0ce"},
    {"{csv: {path: names, categories: [b]}}",
     "7ae2f4b4d5dc5c9c0e1104bc84f0b25bb08f5b3b12e175dd2ebce331f020e2cc"},
    {"{csv: {path: table, standardize: true}}",
     "d8ab75f0272ba0462ca0138422fbd9896e4a116079fe7515b2e8153576f2e523"},
    {"{json: {path: rows}}", "d12ed5bf993af850ac4577e3d2fd1364b81dd83d939d6a941a387f4e605cbd8d"},
    {"{series: {path: table, window: 2}}",
     "e739fc036d6bbf6ae5bc0e78a6d574d0dc050591662db3f864268e8ca6b34b06"},
    {"{series: {path: long, window: 2, horizon: 2}}",
     "96632e50e6a2db4d859c5d1a63dfcda2249b3e8d9291fd29ec6895a788f8cfee"},
    {"{series: {path: long, window: 2, horizon: 2, every_step: true}}",
     "fa1ef0fcf68ee939f4dcd2d17781fd3bba6a9790c4a463b74b7964c80e2a22f3"},
    {"{series: {path: long, window: 2, inputs: [a], targets: [label]}}",
     "158c8f90fbeaa8c785b4c126ed66cfc88ca6a2551f8e7b1dece3c9489fb1e34d"},
    {"{text: {path: texts}}", "4a988844eef8bc8a030e47713e543f32df99a46bf01c530ebe024c6b5e679f1b"},
    {"{text: {path: lines, labels: false}}",
     "325a0369dca5097fdcf3e6bff2310a57f771dec6b66906486d9dcb2ce9f1a3e9"},
    {"{text: {path: tags, tags: true}}", "762f264abf6e4bc1865cc64bb4e21335e348a114fa34b74e0312b2152a391a34"},
    {"{text: {path: lines, labels: false, next: true}}",
     "cfe81a733214b0ece3ca14638943e24edf3985bf5ac026cf82b0fe03a837c016"},
    {"{corpus: {path: corpus, window: 4}}",
     "6d15277e6a963dceaa9b83144b8adcbcafa4cb6a90291d29eb5d46230318cb40"},
    {"{corpus: {path: corpus, window: 4, stride: 3}}",
     "46b9a9e85dd30c95c4fc13a58627bfbbe42b55d93975ecf3b3bdad908932c1da"},
    {"{corpus: {path: corpus, window: 2, unit: words}}",
     "08463f892eb1b9f3b5bbde04013cf516126d75c37827c43863fed9706e210f84"},
    {"{folder: {path: folder}}", "b15b4128ca5305d64e59fd57bedfefe9a975398d38255afd34d2216bafeb1e37"},
    {"{folder: {path: folder/cats, masks: folder/dogs, classes: 256}}",
     "9876c9d26bb270194a557faba07ef13e43d39010d9de9718243084054ec93fd7"},
    {"{shards: {path: archive.tar}}", "df65dfd5ce89b2f60fd2d427d539ea8869804cdc3577c445746ba96f70105eb0"},
    {"{shards: {path: other.tar}}", "7fee115bd4b046444f136105009ebcdaadd98fda285f8c54f7793074988fc6e5"},
    {"{shards: {path: archive.tar, label: \"\"}}",
     "7dfe226647c599d3be44b0683a16c9a9714f325272f210ba86f2d1bd675cffa1"},
    {"{tfrecord: {path: plain.tfrecord, height: 2, width: 2}}",
     "77affbeacfe6146eca75988c1824f3d3b5e91acdef92d5565872e4a9ce144204"},
    {"{join: {sources: {left: {csv: {path: table, label: none}}, right: {idx: {images: images, labels: "
     "labels}}}}}",
     "dcce97dca05c85a120eba7735ddec0102bed4c5252f16c7d98039fcade11ead9"},
    {"{join: {sources: {right: {csv: {path: table, label: none}}, left: {idx: {images: images, labels: "
     "labels}}}}}",
     "1d03314dc3477fc6fa1c17695c35d0e69f3c3ae6efb9166751f8c1601c5bc473"},
    {"{join: {sources: {left: {csv: {path: table}}, right: {idx: {images: images}}}}}",
     "2371b059e81507363b2eac97c9e38072900f87672a09e8b9f6fd91b9acbf0b6c"},
};

static void equal_data_keep_their_digest(void **unused)
{
    char digest[LENGTH(pinned)][65];
    bool same = true;
    (void)unused;
    for (int i = 0; i < LENGTH(pinned); i++) {
        tr_source *source = must_open(pinned[i].description);
        assert_int_equal(tr_source_digest(source, digest[i]), TR_OK);
        tr_source_close(&source);
        if (strcmp(digest[i], pinned[i].digest) == 0) continue;
        same = false;
        print_message("%s: %s\n", pinned[i].description, digest[i]);
    }
    if (!same) fail_msg("runs over these data would not be resumed");
    for (int i = 0; i < LENGTH(pinned); i++)
        for (int k = 0; k < i; k++)
            if (strcmp(digest[i], digest[k]) == 0)
                fail_msg("%s is not told from %s", pinned[i].description, pinned[k].description);
}

/* One byte of the files is another one: of the last example, and of its label. */
static void contents_tell(void **unused)
{
    static const struct {
        const char *description, *file;
        int from_end;
    } cases[] = {
        {"{idx: {images: images, labels: labels}}", "images", 1},
        {"{idx: {images: images, labels: labels}}", "labels", 2},
        {"{npy: {features: bytes.npy, labels: classes.npy}}", "bytes.npy", 1},
        {"{npy: {features: bytes.npy, labels: classes.npy}}", "classes.npy", 2},
        {"{npy: {features: bytes.npy, labels: pixels.npy}}", "pixels.npy", 2},
        {"{npy: {features: floats.npy, labels: values.npy}}", "floats.npy", 2},
        {"{npy: {features: floats.npy, labels: values.npy}}", "values.npy", 2},
        {"{csv: {path: table}}", "table", 4},
        {"{csv: {path: table, label: value}}", "table", 2},
        {"{csv: {path: named, categories: [b]}}", "named", 6},
        {"{series: {path: table, window: 2}}", "table", 2},
        {"{text: {path: texts}}", "texts", 2},
        {"{corpus: {path: corpus, window: 4}}", "corpus", 6},
        {"{shards: {path: archive.tar}}", "archive.tar", 3 * 512},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++) {
        char before[65], after[65];
        tr_source *source = must_open(cases[i].description);
        assert_int_equal(tr_source_digest(source, before), TR_OK);
        tr_source_close(&source);
        struct bytes file = read_file(test_path(cases[i].file));
        file.data[file.size - (size_t)cases[i].from_end] ^= 1;
        write_file(cases[i].file, file.data, file.size);
        source = must_open(cases[i].description);
        assert_int_equal(tr_source_digest(source, after), TR_OK);
        tr_source_close(&source);
        file.data[file.size - (size_t)cases[i].from_end] ^= 1;
        write_file(cases[i].file, file.data, file.size);
        free(file.data);
        if (strcmp(before, after) == 0) fail_msg("%s: case %d", cases[i].description, i);
    }
}

/* In another packing they are the same. */
static void packing_does_not_matter(void **unused)
{
    char plain[65], packed[65];
    (void)unused;
    tr_source *source = must_open("{tfrecord: {path: plain.tfrecord, height: 2, width: 2}}");
    assert_int_equal(tr_source_digest(source, plain), TR_OK);
    tr_source_close(&source);
    source = must_open("{tfrecord: {path: packed.tfrecord, height: 2, width: 2}}");
    assert_int_equal(tr_source_digest(source, packed), TR_OK);
    tr_source_close(&source);
    assert_string_equal(plain, packed);
}

/* Parts of a source are those examples, and the same ones have the same digest. */
static void parts_have_digests(void **unused)
{
    char digest[3][65];
    (void)unused;
    for (int i = 0; i < 3; i++) {
        tr_source *first, *second;
        const struct tr_split split = {.seed = i == 2 ? 2 : 1, .share = 0.3};
        assert_int_equal(tr_split_first(must_open("{csv: {path: table}}"), &split, &first), TR_OK);
        assert_int_equal(tr_split_second(first, &second), TR_OK);
        assert_int_equal(tr_source_digest(i == 1 ? second : first, digest[i]), TR_OK);
        tr_source_close(&second);
        tr_source_close(&first);
    }
    assert_string_not_equal(digest[0], digest[1]);
    assert_string_not_equal(digest[0], digest[2]);
}

static void a_lack_of_memory_is_told(void **unused)
{
    char digest[65];
    (void)unused;
    for (int i = 0; i < LENGTH(pinned); i++) {
        tr_source *source = must_open(pinned[i].description);
        for (int64_t at = 0, done = 0; !done; at++) {
            const int64_t live = tr_alloc_live();
            refuse_begin(at);
            const tr_status status = tr_source_digest(source, digest);
            done = refuse_end();
            if (status != (done ? TR_OK : TR_ENOMEM))
                fail_msg("%s: allocation %d: %s", pinned[i].description, (int)at, tr_status_name(status));
            if (tr_alloc_live() != live) fail_msg("%s: allocation %d leaks", pinned[i].description, (int)at);
        }
        assert_string_equal(digest, pinned[i].digest);
        tr_source_close(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_data_keep_their_digest), cmocka_unit_test(contents_tell),
        cmocka_unit_test(packing_does_not_matter),      cmocka_unit_test(parts_have_digests),
        cmocka_unit_test(a_lack_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, write_samples, NULL);
}
