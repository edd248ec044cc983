/* Images from bytes: the part of a source image that a row shows is converted line by line: directly from
 * the source where possible, else from a line that is assembled first (border, mirror image).
 */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels.h"
#include "device/cpu/vectors/vec.h"

#include "base/numbers/rng.h"

#include <string.h>

/* Four bytes are written for each. */
#define NANOSECONDS_PER_BYTE (4.0 / VW)

/* Up to this many channels a line is converted as one run; above, each pixel is. */
#define RUN_CHANNELS 16

/* Scale and shift of the elements of a run, which repeat with the period of the channels. */
struct factors {
    int64_t period;
    float scale[RUN_CHANNELS + VW], shift[RUN_CHANNELS + VW];
};

static struct factors factors_of(const struct tr_op_load_images *a)
{
    struct factors f = {.period = a->channels <= RUN_CHANNELS ? a->channels : 4};
    for (int64_t i = 0; i < f.period + VW; i++) {
        f.scale[i] = a->scale[i % f.period % 4];
        f.shift[i] = a->shift[i % f.period % 4];
    }
    return f;
}

/* Converts `count` bytes, the first of which is of the first channel. */
static void convert(const struct factors *f, const uint8_t *from, int64_t count, float *to)
{
    int64_t phase = 0, step = VW % f->period, i = 0;
    for (; i + VW <= count; i += VW) {
        vf x = v_to_float(vi_load_bytes(from + i));
        v_store(to + i, v_fma(x, v_load(f->scale + phase), v_load(f->shift + phase)));
        phase += step;
        if (phase >= f->period) phase -= f->period;
    }
    if (i == count) return;
    vf x = v_to_float(vi_load_bytes_part(from + i, count - i));
    v_store_part(to + i, v_fma(x, v_load(f->scale + phase), v_load(f->shift + phase)), count - i);
}

static void convert_pixels(const struct tr_op_load_images *a, const struct factors *f, const uint8_t *from,
                           int64_t pixels, float *to)
{
    if (a->channels <= RUN_CHANNELS) {
        convert(f, from, pixels * a->channels, to);
        return;
    }
    for (int64_t p = 0; p < pixels; p++)
        convert(f, from + p * a->channels, a->channels, to + p * a->channels);
}

/* The part of the source image that a row shows. */
struct view {
    int64_t top, left;
    bool flip;
};

static struct view view_of(const struct tr_op_load_images *a, int64_t row)
{
    struct view view = {(a->in_h - a->out_h) / 2, (a->in_w - a->out_w) / 2, false};
    if (!a->random) return view;
    uint32_t words[4];
    tr_rng_key key = {a->key[0], a->key[1]};
    tr_rng_philox(key, a->first_example + (uint32_t)row, a->scalars->step, 0, 0, words);
    view.top = (int64_t)(words[0] % (uint32_t)(a->in_h + 2 * a->pad - a->out_h + 1)) - a->pad;
    view.left = (int64_t)(words[1] % (uint32_t)(a->in_w + 2 * a->pad - a->out_w + 1)) - a->pad;
    view.flip = a->flip && (words[2] & 1);
    return view;
}

/* Assembles the bytes of an output line from line h of the image, with zeros outside. */
static void assemble(const struct tr_op_load_images *a, const uint8_t *image, int64_t h, struct view view,
                     uint8_t *line)
{
    int64_t channels = a->channels;
    memset(line, 0, (size_t)(a->out_w * channels));
    if (h < 0 || h >= a->in_h) return;
    int64_t begin = view.left < 0 ? -view.left : 0;
    int64_t end = a->in_w - view.left < a->out_w ? a->in_w - view.left : a->out_w;
    const uint8_t *from = image + (h * a->in_w + view.left) * channels;
    if (!view.flip && begin < end)
        memcpy(line + begin * channels, from + begin * channels, (size_t)((end - begin) * channels));
    for (int64_t j = begin; view.flip && j < end; j++)
        for (int64_t c = 0; c < channels; c++)
            line[(a->out_w - 1 - j) * channels + c] = from[j * channels + c];
}

/* One image; `line` holds out_w * channels bytes. */
static void load_image(const struct tr_op_load_images *a, const struct factors *f, int64_t row, uint8_t *line)
{
    struct view view = view_of(a, row);
    int64_t in_line = (int64_t)a->in_w * a->channels, out_line = (int64_t)a->out_w * a->channels;
    const uint8_t *image = a->source + a->index[row] * a->in_h * in_line;
    float *y = a->y + row * a->out_h * out_line;
    bool within = !view.flip && view.left >= 0 && view.left + a->out_w <= a->in_w;
    if (within && a->in_w == a->out_w && view.top >= 0 && view.top + a->out_h <= a->in_h) {
        convert_pixels(a, f, image + view.top * in_line, (int64_t)a->out_h * a->out_w, y);
        return;
    }
    for (int64_t i = 0; i < a->out_h; i++, y += out_line) {
        int64_t h = i + view.top;
        const uint8_t *from = line;
        if (within && h >= 0 && h < a->in_h)
            from = image + h * in_line + view.left * a->channels;
        else
            assemble(a, image, h, view, line);
        convert_pixels(a, f, from, a->out_w, y);
    }
}

struct loading {
    const struct tr_op_load_images *op;
    const struct cpu_device *cpu;
    struct factors factors;
};

static void load_images_part(void *arguments, int member, int size)
{
    const struct loading *loading = arguments;
    int64_t begin, end;
    tr_team_chunk(loading->op->rows, 1, member, size, &begin, &end);
    for (int64_t r = begin; r < end; r++)
        load_image(loading->op, &loading->factors, r, cpu_scratch(loading->cpu, member));
}

tr_status CPU_KERNEL(load_images)(tr_device *device, const struct tr_op_load_images *a)
{
    struct cpu_device *cpu = cpu_device_of(device);
    tr_status status = cpu_reserve(cpu, (size_t)a->out_w * (size_t)a->channels, 0);
    if (status != TR_OK) return status;
    struct loading loading = {.op = a, .cpu = cpu, .factors = factors_of(a)};
    double bytes = (double)a->rows * a->out_h * a->out_w * a->channels;
    cpu_run(cpu, bytes * NANOSECONDS_PER_BYTE, load_images_part, &loading);
    return TR_OK;
}
