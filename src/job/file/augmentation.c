#include "job/file/augmentation.h"

#include "base/fail.h"
#include "job/file/input.h"

#include <inttypes.h>

static bool has_colour(const struct tr_augment_options *options)
{
    return options->brightness > 0 || options->contrast > 0 || options->saturation > 0;
}

bool tr_augmentation_mixes(const struct tr_augment_options *options)
{
    return options->mixup > 0 || options->cutmix > 0;
}

bool tr_augmentation_tints(const struct tr_augment_options *options)
{
    return has_colour(options) || options->randaugment > 0;
}

bool tr_augmentation_is_any(const struct tr_augment_options *options)
{
    return options->rotate > 0 || options->zoom.count > 0 || has_colour(options) || options->erase > 0 ||
           options->randaugment > 0 || tr_augmentation_mixes(options);
}

/* Of the options that change colours. */
static const char *first_tint_of(const struct tr_augment_options *options)
{
    return options->brightness > 0   ? "brightness"
           : options->contrast > 0   ? "contrast"
           : options->saturation > 0 ? "saturation"
                                     : "randaugment";
}

static const char *first_of(const struct tr_augment_options *options)
{
    return options->rotate > 0        ? "rotate"
           : options->zoom.count > 0  ? "zoom"
           : has_colour(options)      ? first_tint_of(options)
           : options->erase > 0       ? "erase"
           : options->randaugment > 0 ? "randaugment"
           : options->mixup > 0       ? "mixup"
                                      : "cutmix";
}

tr_status tr_augmentation_resolve(struct tr_job *job)
{
    static const struct {
        const char *text[2];
        float item[2];
    } ranges[] = {
        [TR_RANGE_U16] = {{"0", "65535"}, {0, 65535}},
        [TR_RANGE_I16] = {{"-32768", "32767"}, {-32768, 32767}},
        [TR_RANGE_PICTURE] = {{"0", "65535"}, {0, 65535}},
    };
    const enum tr_number_range range = job->source[TR_SET_TRAIN]->range;
    struct tr_float_list *list = &job->input.range;
    if (range == TR_RANGE_OPEN || list->count > 0 || !tr_augmentation_tints(&job->input.augment))
        return TR_OK;
    *list = (struct tr_float_list){.count = 2, .item = {ranges[range].item[0], ranges[range].item[1]}};
    return tr_config_put_texts(job->root, "input", "range", 2, ranges[range].text);
}

/* Two numbers, the first not above the second. */
static tr_status check_range(const tr_config *node, const char *name, const struct tr_float_list *list)
{
    if (list->count == 0 || (list->count == 2 && list->item[0] <= list->item[1])) return TR_OK;
    return tr_config_fail(TR_EINVAL, node,
                          "%s takes the least and the most, two numbers in ascending order, as [%s]", name,
                          list->count == 1 ? "0.8, 1.25" : "0.1, 0.3");
}

static tr_status check_images(const struct tr_job *job, const tr_config *node)
{
    const struct tr_augment_options *options = &job->input.augment;
    const bool numbers = tr_job_is_number_image(job), images = numbers || job->features == TR_FEATURE_IMAGE;
    struct tr_shape image, wanted;
    if (!images && job->parts.images == 0)
        return tr_config_fail(TR_EINVAL, node, "%s changes images, and examples are %s; leave it out",
                              first_of(options), job->features == TR_FEATURE_TOKENS ? "texts" : "numbers");
    if (numbers && tr_augmentation_tints(options) && job->input.range.count == 0)
        return tr_config_fail(TR_EINVAL, node,
                              "%s needs the range of the values, and these are floats or wide integers; set "
                              "range to their least and most, as range: [0, 1]",
                              first_tint_of(options));
    if (images) tr_job_image(job, &image, &wanted);
    for (int32_t i = 0; options->saturation > 0 && i < (images ? 1 : job->parts.images); i++) {
        const struct tr_shape *stored = images ? &image : &job->parts.part[i].shape;
        if (stored->size[2] == 3) continue;
        return tr_config_fail(TR_EINVAL, node,
                              "saturation is of images of 3 channels, these have %" PRId64 "; leave it out",
                              stored->size[2]);
    }
    return TR_OK;
}

static tr_status check_mixture(const struct tr_job *job, const tr_config *node)
{
    const struct tr_augment_options *options = &job->input.augment;
    const struct tr_loss *loss = &job->model->loss;
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    const char *name = options->mixup > 0 ? "mixup" : "cutmix";
    if (job->features != TR_FEATURE_IMAGE && !tr_job_is_number_image(job))
        return tr_config_fail(TR_EINVAL, node, "%s is not for joined data; leave it out", name);
    if (loss->pixels > 0)
        return tr_config_fail(TR_EINVAL, node,
                              "%s blends the labels of images, here each pixel has one; leave it out", name);
    if (loss->class_weights.count > 0)
        return tr_config_fail(TR_EINVAL, node, "%s is not for weighted classes; leave out class_weights",
                              name);
    if (class->mixes) return TR_OK;
    return tr_config_fail(TR_EINVAL, node,
                          "%s is not for the loss %s; take softmax_cross_entropy, soft_cross_entropy, "
                          "binary_cross_entropy or mean_squared_error",
                          name, class->name);
}

tr_status tr_augmentation_settle(struct tr_job *job)
{
    const struct tr_augment_options *options = &job->input.augment;
    const tr_config *node = job->file.input ? job->file.input : job->root;
    TR_TRY(check_range(node, "zoom", &options->zoom));
    TR_TRY(check_range(node, "erase_area", &options->erase_area));
    if (options->erase == 0 && options->erase_area.count > 0)
        return tr_config_fail(TR_EINVAL, node,
                              "erase_area has no effect without erase; set erase, the share of "
                              "the images that lose a part");
    if (!tr_augmentation_is_any(options)) return TR_OK;
    TR_TRY(check_images(job, node));
    if (!tr_augmentation_mixes(options)) return TR_OK;
    TR_TRY(check_mixture(job, node));
    job->model->loss.mixes = tr_loss_class_of(&job->model->loss)->classifies;
    return TR_OK;
}
