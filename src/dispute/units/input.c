/* Units of inputs: gathered examples, and images. */
#include "base/numbers/rng.h"
#include "dispute/units/numbers.h"

UNIT(gather_rows)
{
    if (!a->start) {
        const int64_t index = wide(a->index + to->at / a->width);
        return in(a->x + index * a->stride + to->at % a->width);
    }
    const struct unit_example row = example_of(a->offset, a->rows, to->at);
    return in(a->x + wide(a->start + wide(a->index + row.number)) + to->at - row.begin);
}

UNIT(load_images)
{
    const int64_t c = to->at % a->channels, pixel = to->at / a->channels;
    const int64_t row = pixel / a->out_w / a->out_h, i = pixel / a->out_w % a->out_h;
    int64_t j = pixel % a->out_w, top = (a->in_h - a->out_h) / 2, left = (a->in_w - a->out_w) / 2;
    const uint8_t *image = a->source + wide(a->index + row) * a->in_h * a->in_w * a->channels;
    if (a->random) {
        uint32_t words[4];
        tr_rng_philox((tr_rng_key){a->key[0], a->key[1]}, a->first_example + (uint32_t)row,
                      (uint32_t)whole((const int32_t *)&a->scalars->step), 0, 0, words);
        top = (int64_t)(words[0] % (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1)) - a->pad;
        left = (int64_t)(words[1] % (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1)) - a->pad;
        if (a->flip && (words[2] & 1)) j = a->out_w - 1 - j;
    }
    const int64_t h = i + top, w = j + left;
    struct num x = constant(0);
    if (h >= 0 && h < a->in_h && w >= 0 && w < a->in_w) {
        const struct num byte = in_byte(image + (h * a->in_w + w) * a->channels + c);
        x = unit_emit(TR_PROGRAM_FLOAT, byte, byte, byte, byte);
    }
    return fused(x, constant(a->scale[c % 4]), constant(a->shift[c % 4]));
}

UNIT(load_labels)
{
    const int64_t pixel = to->at, row = pixel / a->out_w / a->out_h, i = pixel / a->out_w % a->out_h;
    int64_t j = pixel % a->out_w, top = (a->in_h - a->out_h) / 2, left = (a->in_w - a->out_w) / 2;
    const int32_t *labels = a->source + (a->index ? wide(a->index + row) : row) * a->in_h * a->in_w;
    if (a->random) {
        uint32_t words[4];
        tr_rng_philox((tr_rng_key){a->key[0], a->key[1]}, a->first_example + (uint32_t)row,
                      (uint32_t)whole((const int32_t *)&a->scalars->step), 0, 0, words);
        top = (int64_t)(words[0] % (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1)) - a->pad;
        left = (int64_t)(words[1] % (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1)) - a->pad;
        if (a->flip && (words[2] & 1)) j = a->out_w - 1 - j;
    }
    const int64_t h = i + top, w = j + left;
    const bool inside = h >= 0 && h < a->in_h && w >= 0 && w < a->in_w;
    return inside ? in(labels + h * a->in_w + w) : word(0xffffffffu);
}

/* The place that pixel (i, j) of the output samples, in 1/65536 pixel. */
static void look(const struct tr_image_view *view, int64_t i, int64_t j, int64_t *v, int64_t *u)
{
    *v = wide(&view->down) + i * whole(&view->down_i) + j * whole(&view->down_j);
    *u = wide(&view->right) + i * whole(&view->right_i) + j * whole(&view->right_j);
}

static bool lies_in(int64_t i, int64_t j, const int32_t *top, const int32_t *left, const int32_t *height,
                    const int32_t *width)
{
    return i >= whole(top) && i < whole(top) + whole(height) && j >= whole(left) &&
           j < whole(left) + whole(width);
}

/* A pixel of an output with its image. */
struct seen {
    const struct tr_op_augment_images *a;
    const struct tr_image_view *view;
    int64_t image, v, u;
};

static struct num value_at(const struct seen *seen, int64_t h, int64_t w, int64_t c)
{
    const struct tr_op_augment_images *a = seen->a;
    if (h < 0 || h >= a->in_h || w < 0 || w >= a->in_w) return constant(0);
    const int64_t at = ((seen->image * a->in_h + h) * a->in_w + w) * a->channels + c;
    if (a->numbers) return in(a->numbers + at);
    const struct num byte = in_byte(a->source + at);
    return unit_emit(TR_PROGRAM_FLOAT, byte, byte, byte, byte);
}

static struct num interpolated(const struct seen *seen, int64_t c)
{
    const int64_t h = seen->v >> 16, w = seen->u >> 16;
    const struct num fv = constant((float)(seen->v & 0xffff) / 65536),
                     fu = constant((float)(seen->u & 0xffff) / 65536);
    const struct num p00 = value_at(seen, h, w, c), p01 = value_at(seen, h, w + 1, c);
    const struct num p10 = value_at(seen, h + 1, w, c), p11 = value_at(seen, h + 1, w + 1, c);
    const struct num above = fused(fu, sub(p01, p00), p00), below = fused(fu, sub(p11, p10), p10);
    return fused(fv, sub(below, above), above);
}

static struct num limited(const struct seen *seen, struct num x)
{
    const struct num size = constant(seen->a->most - seen->a->least), zero = constant(0);
    return if_less(x, zero, zero, if_less(size, x, size, x));
}

/* Above the least of the range. */
static struct num lit(const struct seen *seen, int64_t c)
{
    const struct num middle = constant((seen->a->most - seen->a->least) / 2);
    const struct num x = sub(interpolated(seen, c), constant(seen->a->least));
    const struct num bright = limited(seen, mul(x, in(&seen->view->brightness)));
    return limited(seen, fused(in(&seen->view->contrast), sub(bright, middle), middle));
}

static struct num tinted(const struct seen *seen, int64_t c)
{
    const struct num least = constant(seen->a->least);
    if (seen->a->channels != 3) return add(lit(seen, c), least);
    const struct num x[3] = {lit(seen, 0), lit(seen, 1), lit(seen, 2)};
    const struct num grey =
        fused(constant(0.114f), x[2], fused(constant(0.587f), x[1], mul(constant(0.299f), x[0])));
    return add(limited(seen, fused(in(&seen->view->saturation), sub(x[c], grey), grey)), least);
}

UNIT(augment_images)
{
    const int64_t c = to->at % a->channels, pixel = to->at / a->channels, j = pixel % a->out_w;
    const int64_t row = pixel / a->out_w / a->out_h, i = pixel / a->out_w % a->out_h;
    struct seen seen = {.a = a, .view = &a->view[row], .image = wide(a->index + row)};
    const struct tr_image_view *view = seen.view;
    struct num x = constant(a->erased);
    look(view, i, j, &seen.v, &seen.u);
    if (!lies_in(i, j, &view->top, &view->left, &view->height, &view->width))
        x = a->tint ? tinted(&seen, c) : interpolated(&seen, c);
    return fused(x, constant(a->scale[c % 4]), constant(a->shift[c % 4]));
}

UNIT(augment_labels)
{
    const int64_t pixel = to->at, row = pixel / a->out_w / a->out_h;
    int64_t v, u;
    look(&a->view[row], pixel / a->out_w % a->out_h, pixel % a->out_w, &v, &u);
    const int64_t h = (v + 32768) >> 16, w = (u + 32768) >> 16;
    if (h < 0 || h >= a->in_h || w < 0 || w >= a->in_w) return word(0xffffffffu);
    return in(a->source + ((a->index ? wide(a->index + row) : row) * a->in_h + h) * a->in_w + w);
}

UNIT(mix_images)
{
    const int64_t pixel = to->at / a->channels, j = pixel % a->width, i = pixel / a->width % a->height;
    const struct tr_image_mix *mix = &a->mix[pixel / a->width / a->height];
    const struct num z = in(a->z + to->at);
    if (lies_in(i, j, &mix->top, &mix->left, &mix->height, &mix->width)) return z;
    const struct num x = in(a->x + to->at), share = in(&mix->share);
    return if_equal(share, constant(1), x, fused(share, sub(x, z), z));
}

const struct unit_entry unit_input[] = {UNIT_ENTRY(gather_rows) UNIT_ENTRY(load_images) UNIT_ENTRY(
    load_labels) UNIT_ENTRY(augment_images) UNIT_ENTRY(augment_labels) UNIT_ENTRY(mix_images) UNIT_END};
