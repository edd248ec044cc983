/* Masks beside images: the classes of pixels, as numbers in a PNG file with the name of its image. */
#include "data/images/folder_internal.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/state.h"

#include <inttypes.h>
#include <string.h>

/* The path of the mask of the image with that name; free with tr_free(), NULL when memory fails. */
static char *mask_of(const char *masks, const char *image)
{
    const char *dot = strrchr(image, '.');
    return tr_format("%s/%.*s.png", masks, (int)(dot ? dot - image : (ptrdiff_t)strlen(image)), image);
}

static char *path_of(const struct folder_source *source, int64_t index)
{
    return mask_of(source->masks, source->files[0].name[index]);
}

tr_status folder_classes_of_masks(struct folder_source *source, int32_t given, const char *state)
{
    struct tr_source_info *info = &source->base.info;
    int32_t trained = 0;
    TR_TRY(tr_state_read_classes(state, &trained));
    info->labels = TR_LABEL_PIXELS;
    info->classes = given > 0 ? given : trained;
    if (info->classes > 0) return TR_OK;
    return tr_fail(TR_EINVAL,
                   "folder: with masks, set classes, the number of classes, above every number in %s; "
                   "finding it would take reading all files",
                   source->masks);
}

static tr_status survey(struct folder_source *source, int64_t index, const char *path,
                        struct tr_image_size image)
{
    struct tr_file_map map;
    struct tr_image_size is;
    tr_status status = tr_file_map(path, &map);
    if (status != TR_OK)
        return tr_fail_in(status, "the mask of %s/%s", source->path, source->files[0].name[index]);
    status = tr_image_measure(path, map.data, map.size, &is);
    source->mask_size[index] = map.size;
    tr_file_unmap(&map);
    if (status != TR_OK || (is.height == image.height && is.width == image.width)) return status;
    return tr_fail(TR_EFORMAT,
                   "%s: %" PRId32 " x %" PRId32 " pixels, and its image %s/%s has %" PRId32 " x %" PRId32
                   "; give masks of the size of their images",
                   path, is.width, is.height, source->path, source->files[0].name[index], image.width,
                   image.height);
}

tr_status folder_survey_mask(struct folder_source *source, int64_t index, struct tr_image_size image)
{
    char *path = path_of(source, index);
    if (!path) return TR_ENOMEM;
    tr_status status = survey(source, index, path, image);
    tr_free(path);
    return status;
}

static tr_status check(const struct folder_source *source, const char *path, const uint8_t *numbers)
{
    const struct tr_source_info *info = &source->base.info;
    for (int64_t i = 0; i < tr_source_pixels(info); i++)
        if (numbers[i] >= info->classes && numbers[i] != source->ignore)
            return tr_fail(
                TR_EFORMAT,
                "%s: pixel (%" PRId64 ", %" PRId64 ") has the number %d, which is not below classes: "
                "%" PRId32 "; correct the file, set classes to at least %d, or set ignore, where it "
                "marks pixels without a class",
                path, i % info->width, i / info->width, (int)numbers[i], info->classes, numbers[i] + 1);
    return TR_OK;
}

static tr_status decode(const struct folder_source *source, const char *path, uint8_t *numbers)
{
    const struct tr_source_info *info = &source->base.info;
    const struct tr_image_size wanted = {info->height, info->width, 1};
    struct tr_image_size is;
    uint8_t *stored;
    TR_TRY(tr_image_read_numbers(path, &is, &stored));
    tr_status status = tr_image_fit_numbers(path, source->pictures.fit, stored, is, numbers, wanted);
    tr_free(stored);
    return status == TR_OK ? check(source, path, numbers) : status;
}

tr_status folder_read_mask(const struct folder_source *source, int64_t index, uint8_t *numbers)
{
    char *path = path_of(source, index);
    if (!path) return TR_ENOMEM;
    tr_status status = decode(source, path, numbers);
    tr_free(path);
    return status;
}

static void convert(const struct folder_source *source, const uint8_t *numbers, int32_t *labels)
{
    for (int64_t i = 0; i < tr_source_pixels(&source->base.info); i++)
        labels[i] = numbers[i] == source->ignore ? TR_NO_LABEL : numbers[i];
}

tr_status folder_label_pixels(const struct folder_source *source, int64_t index, int32_t *labels)
{
    const int64_t pixels = tr_source_pixels(&source->base.info);
    if (source->numbers) {
        convert(source, source->numbers + index * pixels, labels);
        return TR_OK;
    }
    uint8_t *numbers = tr_alloc((size_t)pixels, 1);
    if (!numbers) return TR_ENOMEM;
    tr_status status = folder_read_mask(source, index, numbers);
    if (status == TR_OK) convert(source, numbers, labels);
    tr_free(numbers);
    return status;
}

tr_status folder_files_with_masks(struct tr_source_files *files, const char *path, const char *masks,
                                  bool images)
{
    struct tr_file_names names = {0};
    TR_TRY(tr_source_files_add(files, NULL, masks));
    if (!images) return TR_OK;
    tr_status status = folder_list(&names, path, false);
    for (int64_t i = 0; status == TR_OK && i < names.count; i++) {
        char *mask = mask_of(masks, names.name[i]);
        status = mask ? tr_source_files_add(files, path, names.name[i]) : TR_ENOMEM;
        if (status == TR_OK) status = tr_source_files_add(files, NULL, mask);
        tr_free(mask);
    }
    tr_file_names_free(&names);
    return status;
}
