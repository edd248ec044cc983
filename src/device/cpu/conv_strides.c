#include "device/cpu/conv_strides.h"

#include "base/fail.h"

#include <string.h>

/* Nanoseconds of copying a float, estimated. */
#define COPY 0.25

struct copy {
    const struct conv_strides *strides;
    const float *from;
    float *to;
};

static int64_t pixel_floats(const struct conv_strides *s)
{
    return s->images * s->window->out_h * s->window->out_w * s->channels;
}

tr_status cpu_conv_strides_reserve(struct cpu_device *cpu, const struct conv_strides *s, float **pixels)
{
    TR_TRY(cpu_reserve(cpu, 0, (size_t)pixel_floats(s) * sizeof(float)));
    *pixels = cpu_shared(cpu);
    return TR_OK;
}

static void gather(void *arguments, int member, int size)
{
    const struct copy *copy = arguments;
    const struct tr_sliding_window *w = copy->strides->window;
    const int64_t channels = copy->strides->channels;
    int64_t line, end;
    tr_team_chunk(copy->strides->images * w->out_h, 1, member, size, &line, &end);
    float *to = copy->to + line * w->out_w * channels;
    for (; line < end; line++) {
        const int64_t in = line / w->out_h * w->in_h + line % w->out_h * w->stride_h;
        const float *from = copy->from + in * w->in_w * channels;
        for (int32_t x = 0; x < w->out_w; x++, to += channels, from += w->stride_w * channels)
            memcpy(to, from, (size_t)channels * sizeof *to);
    }
}

static void spread(void *arguments, int member, int size)
{
    const struct copy *copy = arguments;
    const struct tr_sliding_window *w = copy->strides->window;
    const int64_t channels = copy->strides->channels;
    int64_t line, end;
    tr_team_chunk(copy->strides->images * w->in_h, 1, member, size, &line, &end);
    float *to = copy->to + line * w->in_w * channels;
    for (; line < end; line++) {
        const int64_t image = line / w->in_h, y = line % w->in_h, out = y / w->stride_h;
        const bool read = y % w->stride_h == 0 && out < w->out_h;
        const float *from = copy->from + (image * w->out_h + out) * w->out_w * channels;
        for (int32_t x = 0; x < w->in_w; x++, to += channels) {
            if (read && x % w->stride_w == 0 && x / w->stride_w < w->out_w) {
                memcpy(to, from, (size_t)channels * sizeof *to);
                from += channels;
            } else {
                memset(to, 0, (size_t)channels * sizeof *to);
            }
        }
    }
}

void cpu_conv_gather(struct cpu_device *cpu, const struct conv_strides *s, const float *images, float *pixels)
{
    struct copy copy = {s, images, pixels};
    cpu_run(cpu, COPY * (double)pixel_floats(s), gather, &copy);
}

void cpu_conv_spread(struct cpu_device *cpu, const struct conv_strides *s, const float *pixels, float *images)
{
    struct copy copy = {s, pixels, images};
    cpu_run(cpu, COPY * (double)(s->images * s->window->in_h * s->window->in_w * s->channels), spread, &copy);
}
