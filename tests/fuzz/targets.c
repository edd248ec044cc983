/* The list of targets, and what they share: inputs in parts, files, sources. */
#include "fuzz/fuzz.h"

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/ops.h"
#include "data/source.h"
#include "scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUZZ_ENTRY(name) {#name, fuzz_##name},
const struct fuzz_target fuzz_targets[] = {FUZZ_TARGETS(FUZZ_ENTRY){NULL, NULL}};
#undef FUZZ_ENTRY

const struct fuzz_target *fuzz_target_called(const char *name)
{
    for (const struct fuzz_target *target = fuzz_targets; target->name; target++)
        if (strcmp(target->name, name) == 0) return target;
    return NULL;
}

/* ---- inputs ---- */

unsigned fuzz_choice(struct fuzz_input *input, unsigned count)
{
    if (input->size == 0) return 0;
    input->size--;
    return *input->data++ % count;
}

struct fuzz_input fuzz_part(struct fuzz_input *input)
{
    struct fuzz_input part = {input->data, 0};
    if (input->size < 2) return part;
    size_t length = (size_t)input->data[0] | (size_t)input->data[1] << 8;
    part.data = input->data + 2;
    part.size = length < input->size - 2 ? length : input->size - 2;
    input->data = part.data + part.size;
    input->size -= 2 + part.size;
    return part;
}

char *fuzz_string(struct fuzz_input input)
{
    char *text = malloc(input.size + 1);
    FUZZ_DEMAND(text);
    memcpy(text, input.data, input.size);
    text[input.size] = '\0';
    return text;
}

/* ---- files ---- */

const char *fuzz_file(int index, const void *data, size_t size)
{
    static int descriptor[2] = {-1, -1};
    static char name[2][32];
    if (descriptor[index] < 0) {
        descriptor[index] = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_DEMAND(descriptor[index] >= 0);
        snprintf(name[index], sizeof name[index], "/proc/self/fd/%d", descriptor[index]);
    }
    FUZZ_DEMAND(ftruncate(descriptor[index], 0) == 0);
    FUZZ_DEMAND(pwrite(descriptor[index], data, size, 0) == (ssize_t)size);
    return name[index];
}

static char directory[SCRATCH_PATH];

static void remove_directory(void)
{
    tr_file_remove(NULL, directory);
}

const char *fuzz_directory(void)
{
    if (!directory[0]) {
        scratch_make(directory);
        atexit(remove_directory);
    }
    return directory;
}

const char *fuzz_path(const char *name)
{
    static char path[4][SCRATCH_PATH];
    static int next;
    char *at = path[next++ % 4];
    return scratch_join(at, fuzz_directory(), name);
}

void fuzz_write(const char *name, const void *data, size_t size)
{
    char folder[SCRATCH_PATH];
    const char *path = fuzz_path(name);
    for (const char *slash = strchr(path + strlen(directory) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        mkdir(folder, 0700);
    }
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_DEMAND(file >= 0);
    FUZZ_DEMAND(write(file, data, size) == (ssize_t)size);
    close(file);
}

/* ---- sources ---- */

static void read_all(const tr_source *source)
{
    const struct tr_source_info *info = tr_source_info(source);
    int64_t capacity = tr_source_capacity(source), length;
    FUZZ_DEMAND(info->count >= 1 && capacity >= 1 && capacity < 1 << 24);
    int32_t *features = malloc((size_t)capacity * sizeof *features),
            *label = malloc(sizeof *label * (size_t)(info->values + capacity + 1));
    FUZZ_DEMAND(features && label);
    for (int64_t i = 0; i < info->count; i++) {
        *label = 0;
        if (tr_source_read(source, i, features, capacity, &length, label) != TR_OK) continue;
        FUZZ_DEMAND(length >= 1 && length <= capacity);
        if (info->labels == TR_LABEL_CLASS) FUZZ_DEMAND(*label >= 0 && *label < info->classes);
        for (int64_t k = 0; info->labels == TR_LABEL_PIXELS && k < (int64_t)info->height * info->width; k++)
            FUZZ_DEMAND(label[k] >= TR_NO_LABEL && label[k] < info->classes);
        for (int64_t k = 0; info->labels == TR_LABEL_TOKENS && k < length; k++)
            FUZZ_DEMAND(label[k] >= TR_NO_LABEL && label[k] < info->classes);
        if (info->features != TR_FEATURE_TOKENS) {
            FUZZ_DEMAND(length == capacity);
            continue;
        }
        for (int64_t k = 0; k < length; k++) FUZZ_DEMAND(features[k] >= 0 && features[k] < info->vocabulary);
    }
    free(label);
    free(features);
}

/* Its tokens, where there is a second text. */
static void read_second(const tr_source *source)
{
    const struct tr_source_parts *parts = source->parts;
    if (!parts || !parts->second[0]) return;
    int32_t *tokens = malloc((size_t)parts->second_tokens * sizeof *tokens);
    FUZZ_DEMAND(tokens && source->info.features == TR_FEATURE_TOKENS);
    for (int64_t i = 0; i < source->info.count; i++) {
        int64_t length = 0;
        FUZZ_DEMAND(source->class->read_second(source, i, tokens, &length) == TR_OK);
        FUZZ_DEMAND(length >= 1 && length <= parts->second_tokens);
        for (int64_t k = 0; k < length; k++)
            FUZZ_DEMAND(tokens[k] >= 0 && tokens[k] < parts->second_vocabulary);
    }
    free(tokens);
}

void fuzz_read_source(const tr_source *source)
{
    char *text = NULL, digest[65];
    const char *state_name;
    read_all(source);
    read_second(source);
    FUZZ_DEMAND(tr_source_digest(source, digest) == TR_OK);
    FUZZ_DEMAND(tr_source_state(source, &state_name, &text) == TR_OK);
    tr_text_free(text);
    text = NULL;
    /* For people, whatever the texts in it hold. */
    if (tr_source_show(source, 0, 1, 80, &text) == TR_OK) tr_text_free(text);
}

void fuzz_source(const char *description, const char *place, const char *state)
{
    tr_source *source = NULL;
    int64_t live = tr_alloc_live();
    if (tr_source_open(description, place, state, &source) == TR_OK) {
        fuzz_read_source(source);
        tr_source_close(&source);
    } else {
        FUZZ_DEMAND(tr_error_message()[0] != '\0');
    }
    FUZZ_DEMAND(source == NULL);
    FUZZ_DEMAND(tr_alloc_live() == live);
}
