/* Units of inputs: examples that are gathered, and images. */
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

const struct unit_entry unit_input[] = {UNIT_ENTRY(gather_rows) UNIT_ENTRY(load_images)
                                            UNIT_ENTRY(load_labels) UNIT_END};
