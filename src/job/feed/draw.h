/* The random draws of augmentation for an example: its view of the image, and its partner in a mixture.
 * They are defined to the bit, so that every process draws the same for an example.
 *
 * Words are those of philox(key(seed, TR_RNG_AUGMENT); example in the global batch, step, draw, which),
 * where `which` is 0 for the example and 1 for its partner, by draw:
 *
 *     0   top, left, flip, as load_images (device/ops/input.h) has them
 *     1   angle, zoom
 *     2   brightness, contrast, saturation
 *     3   whether a part is erased, its area, its ratio;  4: its top, its left
 *     5   mixup or cutmix, centre of the box;  6: the partner
 *     16 + k   which operation is the k-th of randaugment, its direction
 *     64 + k   attempt k at a number of a Beta distribution
 *
 * u(w) = w / 2^32; all in double, each operation rounded, with the functions of base/numbers/math.h;
 * angles, factors and lengths as in docs/reference/augmentation.md.
 */
#ifndef TR_JOB_DRAW_H
#define TR_JOB_DRAW_H

#include "base/numbers/rng.h"
#include "device/device.h"
#include "job/file/options.h"

/* The example to draw for. */
struct tr_draw {
    tr_rng_key key;
    uint32_t example, step, which;
};

/* The view of an image. `plain` has sizes, pad, flip and whether shifts and mirrors are random. Pure. */
void tr_draw_view(const struct tr_input_options *input, const struct tr_op_load_images *plain,
                  const struct tr_draw *draw, struct tr_image_view *out);

/* How an image of this size is mixed with another: the pixels, and the weight of its own label. Pure. */
void tr_draw_mix(const struct tr_augment_options *options, int32_t height, int32_t width,
                 const struct tr_draw *draw, struct tr_image_mix *out, double *share);

#endif
