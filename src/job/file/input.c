#include "job/file/input.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "data/tables/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what the data say ---- */

static struct tr_shape shape_of_source(const struct tr_source_info *info)
{
    switch (info->features) {
    case TR_FEATURE_IMAGE:
        return (struct tr_shape){3, {info->height, info->width, info->channels}, false};
    case TR_FEATURE_FLOATS:
        return (struct tr_shape){1, {info->floats}, false};
    default:
        return (struct tr_shape){0, {0}, true};
    }
}

/* ---- what is resolved ----
 *
 * Options and tree both receive what the data, or the directory of the file, add to the file, since a
 * checkpoint keeps the tree.
 */

tr_status tr_job_resolve_text(struct tr_job *job, char **option, const char *section, const char *key,
                              const char *text)
{
    char *copy = tr_strdup(text);
    if (!copy) return TR_ENOMEM;
    tr_free(*option);
    *option = copy;
    return tr_config_put_text(job->root, section, key, text);
}

static tr_status set_shape(struct tr_job *job, const struct tr_shape *shape)
{
    char size[TR_MAX_RANK][24];
    const char *text[TR_MAX_RANK];
    job->input.shape.count = shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        job->input.shape.item[i] = shape->size[i];
        snprintf(size[i], sizeof size[i], "%" PRId64, shape->size[i]);
        text[i] = size[i];
    }
    return tr_config_put_texts(job->root, "input", "shape", shape->rank, text);
}

/* Numbers that form an image. */
static tr_status set_image(struct tr_job *job, const struct tr_source_info *info)
{
    const int32_t side[3] = {info->height, info->width, info->channels};
    char size[3][24];
    const char *text[3];
    for (int i = 0; i < 3; i++) {
        job->input.image.item[i] = side[i];
        snprintf(size[i], sizeof size[i], "%" PRId32, side[i]);
        text[i] = size[i];
    }
    job->input.image.count = 3;
    return tr_config_put_texts(job->root, "input", "image", 3, text);
}

#define TEXT_SHAPE " tokens" /* behind the name of a text */

/* The parts of joined data, each as "photo 28x28x3", a text as "review tokens" in front, and another one with
   its vocabulary, "summary tokens 900". */
static tr_status set_sources(struct tr_job *job, const struct tr_source_parts *parts)
{
    struct tr_string_list *sources = &job->input.sources;
    sources->item = tr_alloc_zero(TR_SOURCE_PARTS + 2, sizeof *sources->item);
    if (!sources->item) return TR_ENOMEM;
    for (int32_t i = -2; i < parts->count; i++) {
        char shape[TR_SHAPE_TEXT];
        if ((i == -2 && !parts->text[0]) || (i == -1 && !parts->second[0])) continue;
        char *text =
            i == -2   ? tr_format("%s" TEXT_SHAPE, parts->text)
            : i == -1 ? tr_format("%s" TEXT_SHAPE " %" PRId32, parts->second, parts->second_vocabulary)
                      : tr_format("%s %s", parts->part[i].name, tr_shape_text(&parts->part[i].shape, shape));
        if (!text) return TR_ENOMEM;
        sources->item[sources->count++] = text;
    }
    return tr_config_put_texts(job->root, "input", "sources", sources->count,
                               (const char *const *)sources->item);
}

/* Parses a line of set_sources(): images first. */
static tr_status read_source(const char *text, struct tr_named_shape *part)
{
    const char *blank = strrchr(text, ' ');
    size_t length = blank ? (size_t)(blank - text) : 0;
    long long size[3];
    int used = 0;
    if (length == 0 || length >= sizeof part->name || memchr(text, ' ', length)) return TR_EINVAL;
    memcpy(part->name, text, length);
    part->name[length] = '\0';
    if (part->name[strcspn(part->name, "./\t\n\"")]) return TR_EINVAL;
    int count = sscanf(blank, " %9lld%nx%9lldx%9lld%n", &size[0], &used, &size[1], &size[2], &used);
    if ((count != 1 && count != 3) || blank[used]) return TR_EINVAL;
    part->shape = (struct tr_shape){count, {0}, false};
    for (int i = 0; i < count; i++) part->shape.size[i] = size[i];
    return tr_shape_check(&part->shape, part->name);
}

/* The name of a text, which comes first; false: it is none. With `vocabulary`: of a second one. */
static bool read_text_source(const char *text, char name[TR_NAMED_SHAPE_NAME], int32_t *vocabulary)
{
    const char *blank = strchr(text, ' ');
    int used = 0;
    if (!blank || blank == text || blank - text >= TR_NAMED_SHAPE_NAME) return false;
    if (vocabulary ? sscanf(blank, TEXT_SHAPE " %9" SCNd32 "%n", vocabulary, &used) != 1 || blank[used] ||
                         *vocabulary < 1
                   : strcmp(blank, TEXT_SHAPE) != 0)
        return false;
    snprintf(name, TR_NAMED_SHAPE_NAME, "%.*s", (int)(blank - text), text);
    return !name[strcspn(name, "./\t\n\"")];
}

static tr_status read_sources(const struct tr_job *job, struct tr_source_parts *parts)
{
    const struct tr_string_list *sources = &job->input.sources;
    const tr_config *node = job->file.input ? job->file.input : job->root;
    *parts = (struct tr_source_parts){0};
    int32_t first = sources->count > 0 && read_text_source(sources->item[0], parts->text, NULL);
    if (first && sources->count > 1)
        first += read_text_source(sources->item[1], parts->second, &parts->second_vocabulary);
    if (sources->count > TR_SOURCE_PARTS)
        return tr_config_fail(TR_EINVAL, node, "there are %d sources, at most %d can be", (int)sources->count,
                              TR_SOURCE_PARTS);
    for (; first + parts->count < sources->count; parts->count++) {
        struct tr_named_shape *part = &parts->part[parts->count];
        bool image = false, read = read_source(sources->item[first + parts->count], part) == TR_OK;
        if (read) image = part->shape.rank == 3;
        if (!read || (image && (first || parts->images < parts->count)))
            return tr_config_fail(TR_EINVAL, node,
                                  "sources: \"%s\" is no name with a shape, images first, as \"photo "
                                  "28x28x3\"; leave `sources` out: they follow from the data",
                                  sources->item[first + parts->count]);
        parts->images += image;
    }
    return TR_OK;
}

tr_status tr_job_input_names(const struct tr_job *job, const tr_config *train, struct tr_source_parts *parts)
{
    return job->input.sources.count > 0 ? read_sources(job, parts) : tr_join_names(train, parts);
}

static tr_status set_classes(struct tr_job *job, const struct tr_source_info *info)
{
    struct tr_string_list *classes = &job->input.classes;
    if (info->classes > TR_OPTION_STRINGS_MAX)
        return tr_fail(TR_EINVAL, "the training data have names of %d classes; at most %d can be kept",
                       (int)info->classes, TR_OPTION_STRINGS_MAX);
    TR_TRY(tr_config_put_texts(job->root, "input", "classes", info->classes, info->class_names));
    classes->item = tr_alloc_zero((size_t)info->classes, sizeof *classes->item);
    if (!classes->item) return TR_ENOMEM;
    /* As in the tree: names come from files and may not be valid UTF-8. */
    const tr_config *list = tr_config_get(tr_config_get(job->root, "input"), "classes");
    for (; classes->count < info->classes; classes->count++)
        if (!(classes->item[classes->count] = tr_strdup(tr_config_text(tr_config_at(list, classes->count)))))
            return TR_ENOMEM;
    return TR_OK;
}

/* Image files of 16 bits enter as those of 8 bits do, as 0 to 1. */
static tr_status set_scale(struct tr_job *job)
{
    static const char *const scale[] = {"1/65535"};
    if (tr_config_get(job->file.input, "scale")) return TR_OK;
    job->input.scale = (struct tr_float_list){.count = 1, .item = {(float)(1 / 65535.0)}};
    return tr_config_put_texts(job->root, "input", "scale", 1, scale);
}

tr_status tr_job_input_resolve(struct tr_job *job)
{
    const tr_source *source = job->source[TR_SET_TRAIN];
    const struct tr_source_info *info = tr_source_info(source);
    struct tr_shape shape = shape_of_source(info);
    if (source->parts && job->input.sources.count == 0) TR_TRY(set_sources(job, source->parts));
    if (info->features == TR_FEATURE_TOKENS) {
        if (job->input.vocabulary == 0) {
            job->input.vocabulary = info->vocabulary;
            TR_TRY(tr_config_put_integer(job->root, "input", "vocabulary", info->vocabulary));
        }
    } else if (job->input.shape.count == 0) {
        TR_TRY(set_shape(job, &shape));
        if (info->steps > 0 && job->input.steps == 0) {
            job->input.steps = info->steps;
            TR_TRY(tr_config_put_integer(job->root, "input", "steps", info->steps));
        }
        if (tr_source_is_number_image(info) && job->input.image.count == 0) TR_TRY(set_image(job, info));
        if (source->range == TR_RANGE_PICTURE) TR_TRY(set_scale(job));
    }
    if (info->class_names && info->classes > 0 && job->input.classes.count == 0)
        TR_TRY(set_classes(job, info));
    return TR_OK;
}

/* Checks that scale, shift, pad and crop fit every image. Those of numbers may have many channels. */
static tr_status check_image(const struct tr_job *job, const struct tr_shape *image, bool numbers)
{
    const struct tr_input_options *input = &job->input;
    const tr_config *node = job->file.input ? job->file.input : job->root;
    int64_t channels = image->size[2];
    if (channels > 4 && numbers && (input->scale.count > 1 || input->shift.count > 1))
        return tr_config_fail(TR_EINVAL, node,
                              "scale and shift are one number for images of more than 4 channels, these have "
                              "%" PRId64,
                              channels);
    if (channels > 4 && !numbers)
        return tr_config_fail(TR_EINVAL, node, "images have %" PRId64 " channels; at most 4 are supported",
                              channels);
    if ((input->scale.count > 1 && input->scale.count != channels) ||
        (input->shift.count > 1 && input->shift.count != channels))
        return tr_config_fail(TR_EINVAL, node,
                              "scale and shift take one number, or one for each of %" PRId64 " channels",
                              channels);
    for (int i = 0; i < 2; i++)
        if (input->crop[i] > image->size[i] + 2 * input->pad)
            return tr_config_fail(TR_EINVAL, node,
                                  "crop [%d, %d] is larger than the padded image %" PRId64 "x%" PRId64,
                                  input->crop[0], input->crop[1], image->size[0] + 2 * input->pad,
                                  image->size[1] + 2 * input->pad);
    return TR_OK;
}

static tr_status check_parts(const struct tr_job *job)
{
    const struct tr_source_parts *parts = &job->parts;
    int64_t floats = 0;
    for (int32_t i = 0; i < parts->images; i++) TR_TRY(check_image(job, &parts->part[i].shape, false));
    for (int32_t i = 0; i < parts->count; i++) floats += tr_shape_count(&parts->part[i].shape);
    if (parts->count == 0 || (job->stored.rank == 1 && job->stored.size[0] == floats)) return TR_OK;
    return tr_config_fail(TR_EINVAL, job->file.input ? job->file.input : job->root,
                          "the sources have %" PRId64
                          " numbers together, which the shape of the input is not; leave it out",
                          floats);
}

static tr_status check_steps(const struct tr_job *job, const tr_config *node)
{
    const int64_t steps = job->input.steps, numbers = job->stored.size[0];
    if (steps == 0) return TR_OK;
    if (job->features != TR_FEATURE_FLOATS)
        return tr_config_fail(TR_EINVAL, node,
                              "steps are of numbers, and examples are images; leave it out, or take "
                              "the layer tokens");
    if (job->input.sources.count > 0)
        return tr_config_fail(TR_EINVAL, node,
                              "steps are of one source, and examples have several; leave it out");
    if (numbers % steps == 0) return TR_OK;
    return tr_config_fail(TR_EINVAL, node,
                          "%" PRId64 " numbers an example are no %" PRId64
                          " vectors of one size; give steps that "
                          "divide them",
                          numbers, steps);
}

static tr_status check_image_of_numbers(const struct tr_job *job, const tr_config *node)
{
    const struct tr_input_options *input = &job->input;
    const struct tr_int_list *image = &input->image;
    if (input->range.count > 0 &&
        (image->count == 0 || input->range.count != 2 || !(input->range.item[0] < input->range.item[1])))
        return tr_config_fail(TR_EINVAL, node,
                              image->count == 0
                                  ? "range is of images of numbers, and examples are %s; leave it out"
                                  : "range takes the least and the most of the stored values of "
                                    "%s, two numbers in ascending order, as [0, 4095]",
                              image->count > 0                    ? "images"
                              : job->features == TR_FEATURE_IMAGE ? "images of bytes"
                                                                  : "numbers");
    if (image->count == 0) return TR_OK;
    if (job->features != TR_FEATURE_FLOATS || input->sources.count > 0 || input->steps > 0)
        return tr_config_fail(
            TR_EINVAL, node,
            "image makes one of the numbers of one source, and examples are %s; leave it out",
            job->features != TR_FEATURE_FLOATS ? "images"
            : input->steps > 0                 ? "sequences"
                                               : "of several");
    if (image->count != 3 || job->stored.size[0] % image->item[0] != 0 ||
        job->stored.size[0] / image->item[0] % image->item[1] != 0 ||
        job->stored.size[0] / image->item[0] / image->item[1] != image->item[2])
        return tr_config_fail(TR_EINVAL, node,
                              "image takes height, width and channels, whose product is the %" PRId64
                              " numbers of an example",
                              job->stored.size[0]);
    return check_image(job, &(struct tr_shape){3, {image->item[0], image->item[1], image->item[2]}, false},
                       true);
}

/* Several sources and tokens: one of them is a text. */
static tr_status check_beside_text(const struct tr_job *job, const tr_config *node)
{
    if (job->input.sources.count == 0 ||
        (job->parts.text[0] && (job->parts.count > 0 || job->parts.second[0])))
        return TR_OK;
    return tr_config_fail(
        TR_EINVAL, node,
        "there is a vocabulary, and of the sources none is a text with numbers or another text beside it, as "
        "[review tokens, facts 4]; leave `sources` out: they follow from the data");
}

tr_status tr_job_input_read(struct tr_job *job)
{
    const struct tr_input_options *input = &job->input;
    const tr_config *node = job->file.input ? job->file.input : job->root;
    if (input->vocabulary > 0) {
        if (input->shape.count)
            return tr_config_fail(TR_EINVAL, node,
                                  "give either a shape (images, numbers) or a vocabulary (text)");
        job->features = TR_FEATURE_TOKENS;
        job->stored = (struct tr_shape){0, {0}, true};
        TR_TRY(read_sources(job, &job->parts));
        return check_beside_text(job, node);
    }
    int32_t rank = input->shape.count;
    if (rank < 1 || rank > 3)
        return tr_config_fail(
            TR_EINVAL, node,
            "the shape of the input has %d sizes; images have [height, width, channels], numbers one size",
            (int)rank);
    job->features = rank == 1 ? TR_FEATURE_FLOATS : TR_FEATURE_IMAGE;
    job->stored = (struct tr_shape){rank, {0}, false};
    for (int32_t i = 0; i < rank; i++) job->stored.size[i] = input->shape.item[i];
    if (rank == 2) job->stored.size[job->stored.rank++] = 1;
    TR_TRY(tr_shape_check(&job->stored, "input"));
    TR_TRY(check_steps(job, node));
    TR_TRY(check_image_of_numbers(job, node));
    TR_TRY(read_sources(job, &job->parts));
    if (job->parts.text[0])
        return tr_config_fail(TR_EINVAL, node,
                              "\"%s\" is a text, and there is no vocabulary; leave `sources` out: they "
                              "follow from the data",
                              job->parts.text);
    if (job->features == TR_FEATURE_FLOATS || job->parts.count > 0) return check_parts(job);
    return check_image(job, &job->stored, false);
}

static struct tr_shape crop(const struct tr_job *job, struct tr_shape image)
{
    for (int i = 0; i < 2; i++)
        if (job->input.crop[i]) image.size[i] = job->input.crop[i];
    return image;
}

bool tr_job_is_number_image(const struct tr_job *job)
{
    return job->features == TR_FEATURE_FLOATS && job->input.image.count == 3 && job->parts.count == 0;
}

void tr_job_image(const struct tr_job *job, struct tr_shape *stored, struct tr_shape *wanted)
{
    const struct tr_int_list *image = &job->input.image;
    *stored = tr_job_is_number_image(job)
                  ? (struct tr_shape){3, {image->item[0], image->item[1], image->item[2]}, false}
                  : job->stored;
    *wanted = crop(job, *stored);
}

/* Item `i` of a list that holds one number for each channel, or one for all. */
static float of_channel(const struct tr_float_list *list, int i)
{
    return list->item[list->count > 1 && i < list->count ? i : 0];
}

float tr_job_scale(const struct tr_job *job, int i)
{
    const bool given = tr_config_get(job->file.input, "scale") != NULL;
    return given || !tr_job_is_number_image(job) ? of_channel(&job->input.scale, i) : 1;
}

float tr_job_shift(const struct tr_job *job, int i)
{
    return of_channel(&job->input.shift, i);
}

bool tr_job_fits_numbers(const struct tr_job *job)
{
    struct tr_shape stored, wanted;
    if (!tr_job_is_number_image(job)) return false;
    tr_job_image(job, &stored, &wanted);
    bool fits = !tr_shape_equal(&stored, &wanted);
    for (int i = 0; i < 4; i++) fits = fits || tr_job_scale(job, i) != 1 || tr_job_shift(job, i) != 0;
    return fits;
}

void tr_job_input_parts(const struct tr_job *job, struct tr_source_parts *parts)
{
    *parts = job->parts;
    for (int32_t i = 0; i < parts->images; i++) parts->part[i].shape = crop(job, parts->part[i].shape);
}

struct tr_shape tr_job_input_shape(const struct tr_job *job)
{
    struct tr_shape shape = job->stored;
    struct tr_source_parts parts;
    if (job->features == TR_FEATURE_IMAGE) return crop(job, shape);
    if (job->features == TR_FEATURE_TOKENS) return shape;
    if (tr_job_is_number_image(job)) {
        struct tr_shape stored, wanted;
        tr_job_image(job, &stored, &wanted);
        shape.size[0] = tr_shape_count(&wanted);
        return shape;
    }
    tr_job_input_parts(job, &parts);
    if (parts.count > 0) shape.size[0] = 0;
    for (int32_t i = 0; i < parts.count; i++) shape.size[0] += tr_shape_count(&parts.part[i].shape);
    return shape;
}

/* ---- sources ---- */

static bool same_parts(const struct tr_source_parts *a, const struct tr_source_parts *b)
{
    for (int32_t i = 0; a->count == b->count && i < a->count; i++)
        if (strcmp(a->part[i].name, b->part[i].name) != 0 ||
            !tr_shape_equal(&a->part[i].shape, &b->part[i].shape))
            return false;
    return a->count == b->count && strcmp(a->text, b->text) == 0 && strcmp(a->second, b->second) == 0 &&
           a->second_vocabulary <= b->second_vocabulary;
}

static void add_parts(const struct tr_source_parts *parts, struct tr_text *text)
{
    char shape[TR_SHAPE_TEXT];
    const char *between = parts->count > 0 ? ", " : "";
    if (parts->count == 0 && !parts->text[0]) tr_text_add(text, "none");
    if (parts->text[0])
        tr_text_addf(text, "%s" TEXT_SHAPE "%s", parts->text, parts->second[0] ? ", " : between);
    if (parts->second[0])
        tr_text_addf(text, "%s" TEXT_SHAPE " %" PRId32 "%s", parts->second, parts->second_vocabulary,
                     between);
    for (int32_t i = 0; i < parts->count; i++)
        tr_text_addf(text, "%s%s %s", i ? ", " : "", parts->part[i].name,
                     tr_shape_text(&parts->part[i].shape, shape));
}

/* Inputs are found by these names. */
static tr_status check_source_parts(const struct tr_job *job, const tr_source *source, const char *name)
{
    static const struct tr_source_parts none;
    const struct tr_source_parts *parts = source->parts ? source->parts : &none;
    struct tr_text text = TR_TEXT_INIT;
    if (same_parts(parts, &job->parts)) return TR_OK;
    add_parts(parts, &text);
    tr_text_add(&text, ", the network takes ");
    add_parts(&job->parts, &text);
    tr_status status = text.failed
                           ? TR_ENOMEM
                           : tr_fail(TR_EMISMATCH,
                                     "the joined sources of the %s data are %s; give them the same names "
                                     "and shapes",
                                     name, text.bytes);
    tr_text_release(&text);
    return status;
}

/* Of a loss that compares what one example holds: pairs have a class, triples have none. */
static tr_status check_pairs(const struct tr_job *job, const struct tr_source_info *info, const char *name)
{
    if (!tr_job_takes_classes(job)) return TR_OK;
    if (info->labels != TR_LABEL_CLASS)
        return tr_fail(
            TR_EMISMATCH,
            "the %s data have no classes, which %s needs; give each pair 1 (same) or 0 (different)", name,
            tr_loss_class_of(&job->model->loss)->name);
    if (info->classes > 2)
        return tr_fail(TR_EMISMATCH,
                       "the %s data have %d classes, %s takes two: give each pair 1 (same) or 0 (different)",
                       name, info->classes, tr_loss_class_of(&job->model->loss)->name);
    return TR_OK;
}

tr_status tr_job_check_source(const struct tr_job *job, const tr_source *source, const char *name,
                              bool labelled)
{
    const struct tr_source_info *info = tr_source_info(source);
    struct tr_shape shape = shape_of_source(info);
    int64_t outputs = tr_job_width(job);
    char have[TR_SHAPE_TEXT], want[TR_SHAPE_TEXT];
    TR_TRY(check_source_parts(job, source, name));
    if (info->features != job->features || !tr_shape_equal(&shape, &job->stored))
        return tr_fail(
            TR_EMISMATCH,
            "the %s data have inputs of shape %s, the network takes %s; check data and input.shape", name,
            tr_shape_text(&shape, have), tr_shape_text(&job->stored, want));
    if (info->steps > 0 && job->input.steps > 0 && info->steps != job->input.steps)
        return tr_fail(TR_EMISMATCH,
                       "examples of the %s data have %" PRId32 " steps, the network takes %" PRId64
                       "; give windows of one length",
                       name, info->steps, job->input.steps);
    if (info->features == TR_FEATURE_TOKENS && info->vocabulary > job->model->vocabulary)
        return tr_fail(TR_EMISMATCH,
                       "the %s data have %d words, the network %" PRId64 "; use the training vocabulary",
                       name, info->vocabulary, job->model->vocabulary);
    if (info->labels == TR_LABEL_NONE && !labelled) return TR_OK;
    if (tr_loss_embeds(&job->model->loss)) return check_pairs(job, info, name);
    if (tr_job_takes_classes(job)) {
        bool tokens = job->model->output.sequence, pixels = tr_job_pixels(job) > 0;
        if (!pixels && info->labels == TR_LABEL_PIXELS)
            return tr_fail(TR_EMISMATCH,
                           "the %s data have a label for each pixel, the network scores whole images; set "
                           "loss: {per: pixel}, and end it with a conv of a channel for each class",
                           name);
        if (pixels && info->labels != TR_LABEL_PIXELS)
            return tr_fail(
                TR_EMISMATCH,
                "the %s data have no labels of pixels, which a loss per pixel needs; give an array "
                "[count, height, width] of classes, or a folder of masks",
                name);
        if (tokens && info->labels == TR_LABEL_CLASS)
            return tr_fail(
                TR_EMISMATCH,
                "the %s data have a class for each text, the network scores for each token; end it "
                "with a \"last\" layer and a dense one",
                name);
        if (!tokens && info->labels == TR_LABEL_TOKENS)
            return tr_fail(
                TR_EMISMATCH,
                "the %s data have a label for each token, the network scores for each text; end it "
                "with a layer that keeps its tokens",
                name);
        if (!pixels && info->labels != TR_LABEL_CLASS && info->labels != TR_LABEL_TOKENS)
            return tr_fail(
                TR_EMISMATCH,
                "the %s data have no classes, which %s needs; give classes, or set the loss to one "
                "that takes values (soft_cross_entropy: the probabilities of the classes)",
                name, tr_loss_class_of(&job->model->loss)->name);
        if (info->classes > outputs)
            return tr_fail(TR_EMISMATCH,
                           "the %s data have %d classes, the network %" PRId64
                           " outputs%s; give its last layer as many %s as classes",
                           name, info->classes, outputs, pixels ? " for a pixel" : "",
                           pixels ? "filters" : "units");
    } else if (info->labels != TR_LABEL_VALUES) {
        return tr_fail(TR_EMISMATCH,
                       "the %s data have no values to predict, which %s needs; give values, or "
                       "set loss: softmax_cross_entropy for classes",
                       name, tr_loss_class_of(&job->model->loss)->name);
    } else if (info->values != tr_loss_targets(&job->model->loss, outputs)) {
        return tr_fail(TR_EMISMATCH,
                       "the %s data have %d target values, the network with %" PRId64
                       " outputs wants %" PRId64 "; give its last layer as many units as values",
                       name, info->values, outputs, tr_loss_targets(&job->model->loss, outputs));
    }
    return TR_OK;
}
