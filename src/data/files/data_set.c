#include "data/files/data_set.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/numbers/hash.h"
#include "base/text/text.h"
#include "data/describe.h"
#include "data/files/inflate.h"
#include "data/source.h"

#include <string.h>

/* The contents are the originals of 1998, but every mirror packs them itself, so packed sizes differ. */
static const struct tr_data_file mnist_files[] = {
    {"train-images-idx3-ubyte.gz", 0, NULL,
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte.gz", 0, NULL,
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte.gz", 0, NULL,
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte.gz", 0, NULL,
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};
static const char *const mnist_mirrors[] = {
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    NULL,
};
static const struct tr_data_part mnist_parts[] = {
    {"train", "{idx: {images: mnist/train-images-idx3-ubyte.gz, labels: mnist/train-labels-idx1-ubyte.gz}}"},
    {"test", "{idx: {images: mnist/t10k-images-idx3-ubyte.gz, labels: mnist/t10k-labels-idx1-ubyte.gz}}"},
};

static const struct tr_data_file fashion_files[] = {
    {"train-images-idx3-ubyte.gz", 26421880,
     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", NULL},
    {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
     NULL},
    {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
     NULL},
    {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
     NULL},
};
static const char *const fashion_mirrors[] = {
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    NULL,
};
static const struct tr_data_part fashion_parts[] = {
    {"train", "{idx: {images: fashion-mnist/train-images-idx3-ubyte.gz, labels: "
              "fashion-mnist/train-labels-idx1-ubyte.gz}}"},
    {"test", "{idx: {images: fashion-mnist/t10k-images-idx3-ubyte.gz, labels: "
             "fashion-mnist/t10k-labels-idx1-ubyte.gz}}"},
};

static const struct tr_data_file cifar_files[] = {
    {"cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
     NULL},
};
static const char *const cifar_mirrors[] = {
    "https://www.cs.toronto.edu/~kriz/",
    NULL,
};
static const struct tr_data_part cifar_parts[] = {
    {"train", "{cifar: {path: cifar-10/cifar-10-binary.tar.gz, part: train}}"},
    {"test", "{cifar: {path: cifar-10/cifar-10-binary.tar.gz, part: test}}"},
};

static const struct tr_data_file sst2_files[] = {
    {"train.tsv", 0, "ec192f833a64da08f475488a77b0d0b47db47acd0f458bd18433fc793b569920", NULL},
    {"dev.tsv", 0, "eddea6b39e601dd4e7a672b53cc40fdf6019fa80522f351206c24340ca5d9359", NULL},
    {"test.tsv", 0, "831169c7e2e429d6026e1bdbb542f33b636e3e596caad9602ebc953c205928b7", NULL},
};
static const char *const no_mirrors[] = {NULL};
static const struct tr_data_part sst2_parts[] = {
    {"train", "{text: {path: sst2/train.tsv}}"},
    {"dev", "{text: {path: sst2/dev.tsv}}"},
    {"test", "{text: {path: sst2/test.tsv}}"},
};

static const struct tr_data_file shakespeare_files[] = {
    {"input.txt.gz", 0, NULL, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"},
};
static const struct tr_data_part shakespeare_parts[] = {
    {"train", "{corpus: {path: shakespeare/input.txt.gz, window: 64, end: 0.9}}"},
    {"validation", "{corpus: {path: shakespeare/input.txt.gz, window: 64, begin: 0.9}}"},
};

static const char *const train_validation[] = {"train", "validation", NULL};
static const char *const train_test[] = {"train", "test", NULL};
static const char *const train_dev_test[] = {"train", "dev", "test", NULL};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static const struct tr_data_set_entry entries[] = {
    {
        .public = {"mnist", "handwritten digits: 60,000 + 10,000 images of 28 x 28, 10 classes",
                   "LeCun, Cortes, Burges; ships with Trireme", true, train_test},
        .files = mnist_files,
        .file_count = COUNT(mnist_files),
        .parts = mnist_parts,
        .mirrors = mnist_mirrors,
    },
    {
        .public = {"fashion-mnist", "pieces of clothing: 60,000 + 10,000 images of 28 x 28, 10 classes",
                   "Xiao, Rasul, Vollgraf 2017, Zalando Research", true, train_test},
        .files = fashion_files,
        .file_count = COUNT(fashion_files),
        .parts = fashion_parts,
        .mirrors = fashion_mirrors,
    },
    {
        .public = {"cifar-10", "photographs: 50,000 + 10,000 images of 32 x 32 in colour, 10 classes",
                   "Krizhevsky 2009, University of Toronto", true, train_test},
        .files = cifar_files,
        .file_count = COUNT(cifar_files),
        .parts = cifar_parts,
        .mirrors = cifar_mirrors,
    },
    {
        .public = {"sst2", "sentences from film reviews: 6,920 + 872 + 1,821, negative or positive",
                   "Stanford Sentiment Treebank, Socher et al. 2013; ships with Trireme", false,
                   train_dev_test},
        .files = sst2_files,
        .file_count = COUNT(sst2_files),
        .parts = sst2_parts,
        .mirrors = no_mirrors,
    },
    {
        .public = {"shakespeare", "plays of Shakespeare: 1,115,394 characters, the last tenth to validate",
                   "Karpathy 2015, char-rnn; ships with Trireme", false, train_validation},
        .files = shakespeare_files,
        .file_count = COUNT(shakespeare_files),
        .parts = shakespeare_parts,
        .mirrors = no_mirrors,
    },
};

const struct tr_data_set_info *tr_data_set_at(int index)
{
    return index >= 0 && index < COUNT(entries) ? &entries[index].public : NULL;
}

const struct tr_data_set_entry *tr_data_set_entry(const char *name)
{
    const char *names[COUNT(entries)];
    for (int i = 0; i < COUNT(entries); i++) {
        names[i] = entries[i].public.name;
        if (strcmp(names[i], name) == 0) return &entries[i];
    }
    char *description = tr_describe_file(name);
    if (description) {
        tr_fail(TR_ENOTFOUND, "\"%s\" is no data set that is known by name; describe what to read: '%s'",
                name, description);
        tr_free(description);
        return NULL;
    }
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "data set ");
    tr_text_add_unknown(&text, name, names, COUNT(entries));
    tr_fail(TR_ENOTFOUND, "%s", text.failed ? "there is no such data set" : text.bytes);
    tr_text_release(&text);
    return NULL;
}

tr_status tr_data_set_describe(const char *name, const char *part, char **description)
{
    const struct tr_data_set_entry *entry = tr_data_set_entry(name);
    if (!entry) return TR_ENOTFOUND;
    for (int i = 0; entry->public.parts[i]; i++) {
        if (strcmp(entry->parts[i].name, part) != 0) continue;
        *description = tr_strdup(entry->parts[i].description);
        return *description ? TR_OK : TR_ENOMEM;
    }
    struct tr_text known = TR_TEXT_INIT;
    for (int i = 0; entry->public.parts[i]; i++) {
        tr_text_addf(&known, "%s%s", i > 0 ? ", " : "", entry->public.parts[i]);
    }
    tr_fail(TR_ENOTFOUND, "data set %s has no part \"%s\"; it has %s", name, part,
            known.bytes ? known.bytes : "");
    tr_text_release(&known);
    return TR_ENOTFOUND;
}

tr_status tr_data_set_open(const char *name, const char *part, const char *directory, const char *state,
                           tr_source **out)
{
    char *description;
    TR_TRY(tr_data_set_describe(name, part, &description));
    tr_status status = tr_source_open(description, directory, state, out);
    tr_free(description);
    if (status == TR_ENOTFOUND)
        tr_fail_in(status, "data set %s is missing; download it: trireme data fetch %s", name, name);
    return status;
}

/* ---- files that are not there ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool has_file(const struct tr_data_set_entry *entry, const char *name)
{
    for (int i = 0; i < entry->file_count; i++)
        if (strcmp(entry->files[i].name, name) == 0) return true;
    return false;
}

/* `folder` is the set's own directory within `directory`. */
static char *advice_for(const struct tr_data_set_entry *entry, const char *folder, const char *directory,
                        const char *file)
{
    const char *set = entry->public.name;
    bool listed = has_file(entry, file);
    if (listed && !entry->public.can_fetch)
        return tr_format("; data set %s ships with Trireme: take it from a copy, or check the path", set);
    if (!listed && !ends_with(file, ".tfrecord")) return tr_strdup("; check the path");
    struct tr_text text = TR_TEXT_INIT;
    char *advice;
    tr_text_addf(&text, "; `trireme data %s %s ", listed ? "fetch" : "convert", set);
    if (!listed) tr_text_add_word(&text, folder);
    tr_text_add(&text, listed ? "--dir " : " --dir ");
    tr_text_add_word(&text, directory);
    tr_text_addf(&text, "` %s it", listed ? "gets" : "makes");
    return tr_text_finish(&text, &advice) == TR_OK ? advice : NULL;
}

char *tr_data_set_advice(const char *path)
{
    char *advice = NULL, *folder = tr_path_parent(path), *directory = folder ? tr_path_parent(folder) : NULL;
    if (!directory) goto out;
    for (int i = 0; i < COUNT(entries) && !advice; i++)
        if (strcmp(tr_path_name(folder), entries[i].public.name) == 0)
            advice = advice_for(&entries[i], folder, directory, tr_path_name(path));
    if (!advice) advice = tr_strdup("; check the path");
out:
    tr_free(directory);
    tr_free(folder);
    return advice;
}

tr_status tr_data_map(const char *path, struct tr_file_map *out)
{
    tr_status status = tr_file_map(path, out);
    if (status != TR_ENOTFOUND) return status;
    char *advice = tr_data_set_advice(path);
    if (!advice) return TR_ENOMEM;
    tr_fail(status, "open \"%s\": No such file or directory%s", path, advice);
    tr_free(advice);
    return status;
}

/* ---- verifying ---- */

/* Compares the SHA-256 of a gzip file's contents. */
static tr_status hash_contents(const char *path, const struct tr_file_map *map, char text[TR_SHA256_TEXT])
{
    enum { PIECE = 1 << 20 };
    tr_status status;
    tr_inflate *inflate = NULL;
    tr_sha256 *hash = NULL;
    uint8_t *piece = tr_alloc(PIECE, 1);
    if (!piece) return TR_ENOMEM;
    TR_TRY_GOTO(tr_inflate_create(path, map->data, map->size, TR_PACKING_GZIP, &inflate), out);
    TR_TRY_GOTO(tr_sha256_begin(&hash), out);
    for (size_t got = PIECE; got == PIECE;) {
        TR_TRY_GOTO(tr_inflate_read(inflate, piece, PIECE, &got), out);
        tr_sha256_add(hash, piece, got);
        if (tr_inflate_offset(inflate) > TR_UNPACKED_MAX) {
            status = tr_fail(TR_ECORRUPT, "%s: unpacks to far more than the data set has; get the file again",
                             path);
            goto out;
        }
    }
    status = tr_sha256_end(&hash, text);
out:
    tr_sha256_destroy(&hash);
    tr_inflate_destroy(&inflate);
    tr_free(piece);
    return status;
}

tr_status tr_data_file_verify(const struct tr_data_file *file, const char *path)
{
    struct tr_file_map map;
    char text[TR_SHA256_TEXT] = "";
    TR_TRY(tr_file_map(path, &map));
    tr_status status;
    bool packed = tr_packing_of(map.data, map.size) == TR_PACKING_GZIP;
    const char *expected = file->contents && packed ? file->contents
                           : file->sha256           ? file->sha256
                                                    : file->contents;
    if (file->contents && packed) {
        status = hash_contents(path, &map, text);
        if (status == TR_EFORMAT) status = TR_ECORRUPT;
    } else {
        status = tr_sha256_of(map.data, map.size, text);
    }
    tr_file_unmap(&map);
    if (status == TR_OK && strcmp(text, expected) != 0) {
        status = tr_fail(TR_ECORRUPT, "%s: SHA-256 is %s, should be %s; remove the file and fetch it again",
                         path, text, expected);
    }
    return status;
}

static char *file_path(const char *directory, const char *set, const char *file)
{
    return tr_format("%s/%s/%s", directory ? directory : ".", set, file);
}

static void tell(tr_data_report report, void *user, const char *path, enum tr_data_file_state state)
{
    if (report) report(user, path, state, state == TR_DATA_FILE_BAD ? tr_error_message() : "");
}

tr_status tr_data_set_verify(const char *name, const char *directory, tr_data_report report, void *user)
{
    const struct tr_data_set_entry *entry = tr_data_set_entry(name);
    if (!entry) return TR_ENOTFOUND;
    int missing = 0, bad = 0;
    for (int i = 0; i < entry->file_count; i++) {
        char *path = file_path(directory, name, entry->files[i].name);
        if (!path) return TR_ENOMEM;
        tr_status status = tr_data_file_verify(&entry->files[i], path);
        missing += status == TR_ENOTFOUND;
        bad += status != TR_OK && status != TR_ENOTFOUND;
        tell(report, user, path,
             status == TR_OK          ? TR_DATA_FILE_GOOD
             : status == TR_ENOTFOUND ? TR_DATA_FILE_MISSING
                                      : TR_DATA_FILE_BAD);
        tr_free(path);
        if (status == TR_ENOMEM) return status;
    }
    if (bad == 0 && missing == 0) return TR_OK;
    return tr_fail(
        bad > 0 ? TR_ECORRUPT : TR_ENOTFOUND, "data set %s in %s: of %d files %d are bad and %d missing; %s",
        name, directory ? directory : ".", entry->file_count, bad, missing,
        entry->public.can_fetch ? "trireme data fetch gets them" : "take them from a copy of Trireme");
}

/* ---- fetching ---- */

tr_status tr_data_set_fetch(const char *name, const char *mirror, const char *directory,
                            tr_data_progress progress, tr_data_report report, void *user)
{
    const struct tr_data_set_entry *entry = tr_data_set_entry(name);
    const char *const own[] = {mirror, NULL};
    if (!entry) return TR_ENOTFOUND;
    char *folder = tr_format("%s/%s", directory ? directory : ".", name);
    if (!folder) return TR_ENOMEM;
    tr_status status = TR_OK;
    for (int i = 0; status == TR_OK && i < entry->file_count; i++) {
        char *path = tr_path_join(folder, entry->files[i].name);
        if (!path) status = TR_ENOMEM;
        enum tr_data_file_state state = TR_DATA_FILE_GOOD;
        tr_status before = status == TR_OK ? tr_data_file_verify(&entry->files[i], path) : status;
        if (before == TR_ENOMEM) status = before; /* which says nothing of the file */
        if (status == TR_OK && before != TR_OK) {
            state = TR_DATA_FILE_FETCHED;
            if (!entry->public.can_fetch && !mirror) {
                status = tr_fail(TR_EUNSUPPORTED,
                                 "data set %s has no public mirror: %s ships with Trireme; take it from a "
                                 "copy of Trireme",
                                 name, entry->files[i].name);
            }
            if (status == TR_OK) status = tr_file_make_directories(NULL, folder);
            if (status == TR_OK)
                status =
                    tr_data_file_fetch(&entry->files[i], mirror ? own : entry->mirrors, path, progress, user);
        }
        if (status != TR_OK) state = before == TR_ENOTFOUND ? TR_DATA_FILE_MISSING : TR_DATA_FILE_BAD;
        if (path) tell(report, user, path, state);
        tr_free(path);
    }
    tr_free(folder);
    return status;
}
