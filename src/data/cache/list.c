/* Lists the contents of the data cache for people. */
#include "trireme/data.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "data/cache/files.h"
#include "data/cache/unpacked.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct listing {
    tr_data_cache_visit visit;
    void *user;
};

static bool is_entry(const struct tr_cache_file *file)
{
    return strcmp(file->name + TR_SHA256_TEXT - 1, TR_CACHE_DATA) == 0;
}

/* "60,000 images 28x28x1, 10 classes". */
static void describe(const struct tr_source_info *info, struct tr_text *text)
{
    static const char *const kinds[] = {
        [TR_FEATURE_IMAGE] = "images", [TR_FEATURE_FLOATS] = "examples", [TR_FEATURE_TOKENS] = "texts"};
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(text, "%s %s", tr_text_from_count(info->count, number), kinds[info->features]);
    if (info->features == TR_FEATURE_IMAGE)
        tr_text_addf(text, " %" PRId32 "x%" PRId32 "x%" PRId32, info->height, info->width, info->channels);
    if (tr_source_is_number_image(info))
        tr_text_addf(text, " of %" PRId32 "x%" PRId32 "x%" PRId32 " numbers", info->height, info->width,
                     info->channels);
    else if (info->features == TR_FEATURE_FLOATS)
        tr_text_addf(text, " of %s numbers", tr_text_from_count(info->floats, number));
    if (info->labels == TR_LABEL_CLASS || info->labels == TR_LABEL_PIXELS)
        tr_text_addf(text, ", %" PRId32 " classes", info->classes);
}

/* The entry as a run would open it; NULL where a run would not use it. */
static tr_status open_entry(const struct tr_cache_file *file, tr_source **out)
{
    char key[TR_SHA256_TEXT];
    struct tr_file_map map;
    uint64_t size;
    int descriptor;
    *out = NULL;
    if (tr_cache_open_file(file->path, &descriptor, &size) != TR_OK) return TR_OK;
    memcpy(key, file->name, sizeof key - 1);
    key[sizeof key - 1] = '\0';
    tr_status status = tr_file_map_open(descriptor, file->path, size, &map);
    if (status == TR_OK) status = tr_unpacked_open(&map, file->path, key, true, out);
    close(descriptor);
    return status == TR_ENOMEM ? status : TR_OK;
}

static tr_status list_file(void *user, const struct tr_cache_file *file)
{
    const struct listing *listing = user;
    tr_source *source;
    struct tr_text text = TR_TEXT_INIT;
    char *examples;
    if (!is_entry(file)) return TR_OK;
    TR_TRY(open_entry(file, &source));
    if (source)
        describe(&source->info, &text);
    else
        tr_text_add(&text, "");
    tr_status status = tr_text_finish(&text, &examples);
    if (status == TR_OK) {
        struct tr_data_cache_entry entry = {file->path, file->size, file->used[0], source != NULL, examples};
        listing->visit(listing->user, &entry);
        tr_free(examples);
    }
    tr_source_close(&source);
    return status;
}

/* A cache whose directory does not exist is empty. */
static tr_status each(const char *directory, tr_status (*visit)(void *user, const struct tr_cache_file *file),
                      void *user)
{
    tr_status status = tr_cache_check_directory(NULL, directory, false);
    if (status == TR_ENOTFOUND) return TR_OK;
    return status == TR_OK ? tr_cache_each(NULL, directory, visit, user) : status;
}

tr_status tr_data_cache_list(const char *directory, tr_data_cache_visit visit, void *user)
{
    struct listing listing = {visit, user};
    return each(directory, list_file, &listing);
}

struct clearing {
    int entries;
    int64_t bytes;
};

static tr_status remove_file(void *user, const struct tr_cache_file *file)
{
    struct clearing *clearing = user;
    TR_TRY(tr_file_remove(NULL, file->path));
    clearing->entries += is_entry(file);
    clearing->bytes += file->size;
    return TR_OK;
}

tr_status tr_data_cache_clear(const char *directory, int *entries, int64_t *bytes)
{
    struct clearing clearing = {0};
    tr_status status = each(directory, remove_file, &clearing);
    if (entries) *entries = clearing.entries;
    if (bytes) *bytes = clearing.bytes;
    return status;
}
