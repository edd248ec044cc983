#include "job/feed/draw.h"

#include "base/numbers/math.h"

#include <math.h>

enum {
    DRAW_SHIFT,
    DRAW_TURN,
    DRAW_COLOUR,
    DRAW_ERASE,
    DRAW_ERASE_PLACE,
    DRAW_MIX,
    DRAW_RANDOM = 16, /* and on */
    DRAW_BETA = 64    /* and on */
};

#define PI 3.14159265358979323846

/* Attempts at a number of a Beta distribution. */
#define ATTEMPTS 64

static void words_of(const struct tr_draw *draw, uint32_t number, uint32_t words[4])
{
    tr_rng_philox(draw->key, draw->example, draw->step, number, draw->which, words);
}

static double unit(uint32_t word)
{
    return (double)word * 0x1p-32;
}

static double from_to(double least, double most, uint32_t word)
{
    return least + (most - least) * unit(word);
}

static int64_t rounded(double x)
{
    return (int64_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* ---- affine maps ---- */

/* Maps a row and a column, relative to the middle of the output, to place[0..1] * them + shift[0..1],
   relative to the middle of the part of the image that is shown. */
struct map {
    double row[2], column[2], shift[2];
};

/* Composes: first `by`, then the present map. */
static void add(struct map *map, const struct map *by)
{
    const struct map was = *map;
    for (int i = 0; i < 2; i++) {
        const double *from = i == 0 ? was.row : was.column;
        double *to = i == 0 ? map->row : map->column;
        for (int k = 0; k < 2; k++) to[k] = from[0] * by->row[k] + from[1] * by->column[k];
        map->shift[i] = from[0] * by->shift[0] + from[1] * by->shift[1] + was.shift[i];
    }
}

/* Counterclockwise as seen by a viewer. */
static void turn(struct map *map, double degrees)
{
    const double angle = degrees * (PI / 180), c = tr_cos(angle), s = tr_cos(angle - PI / 2);
    add(map, &(struct map){{c, s}, {-s, c}, {0, 0}});
}

static void settle(const struct map *map, const struct tr_op_load_images *plain, int64_t top, int64_t left,
                   struct tr_image_view *view)
{
    const int64_t h = plain->out_h - 1, w = plain->out_w - 1;
    view->down_i = (int32_t)rounded(map->row[0] * 65536);
    view->down_j = (int32_t)rounded(map->row[1] * 65536);
    view->right_i = (int32_t)rounded(map->column[0] * 65536);
    view->right_j = (int32_t)rounded(map->column[1] * 65536);
    const int64_t down = h * view->down_i + w * view->down_j, right = h * view->right_i + w * view->right_j;
    view->down = (2 * top + h) * 32768 - (down - (down & 1)) / 2 + rounded(map->shift[0] * 65536);
    view->right = (2 * left + w) * 32768 - (right - (right & 1)) / 2 + rounded(map->shift[1] * 65536);
}

/* ---- randaugment ---- */

enum {
    IDENTITY,
    ROTATE,
    SHEAR_X,
    SHEAR_Y,
    TRANSLATE_X,
    TRANSLATE_Y,
    BRIGHTNESS,
    CONTRAST,
    SATURATION, /* the last one: only colours */
    OPERATIONS
};

/* One operation with a strength from -1 to 1. */
static void operate(int operation, double strength, const struct tr_op_load_images *plain, struct map *map,
                    double factor[3])
{
    switch (operation) {
    case ROTATE:
        turn(map, 30 * strength);
        break;
    case SHEAR_X:
        add(map, &(struct map){{1, 0}, {0.3 * strength, 1}, {0, 0}});
        break;
    case SHEAR_Y:
        add(map, &(struct map){{1, 0.3 * strength}, {0, 1}, {0, 0}});
        break;
    case TRANSLATE_X:
        add(map, &(struct map){{1, 0}, {0, 1}, {0, 0.45 * strength * plain->out_w}});
        break;
    case TRANSLATE_Y:
        add(map, &(struct map){{1, 0}, {0, 1}, {0.45 * strength * plain->out_h, 0}});
        break;
    case BRIGHTNESS:
    case CONTRAST:
    case SATURATION:
        factor[operation - BRIGHTNESS] *= 1 + 0.9 * strength;
        break;
    default:
        break;
    }
}

static void draw_operations(const struct tr_augment_options *options, const struct tr_op_load_images *plain,
                            const struct tr_draw *draw, struct map *map, double factor[3])
{
    const uint32_t operations = plain->channels == 3 ? OPERATIONS : SATURATION;
    for (int32_t k = 0; k < options->randaugment; k++) {
        uint32_t words[4];
        words_of(draw, DRAW_RANDOM + (uint32_t)k, words);
        const double strength = options->magnitude / 30;
        operate((int)(words[0] % operations), words[1] & 1 ? -strength : strength, plain, map, factor);
    }
}

/* ---- the view ---- */

static void draw_map(const struct tr_augment_options *options, const struct tr_draw *draw, struct map *map)
{
    uint32_t words[4];
    words_of(draw, DRAW_TURN, words);
    if (options->rotate > 0) turn(map, from_to(-options->rotate, options->rotate, words[0]));
    if (options->zoom.count == 0) return;
    const double zoom = from_to((double)options->zoom.item[0], (double)options->zoom.item[1], words[1]);
    add(map, &(struct map){{1 / zoom, 0}, {0, 1 / zoom}, {0, 0}});
}

static void draw_factors(const struct tr_augment_options *options, const struct tr_draw *draw,
                         double factor[3])
{
    const double most[3] = {options->brightness, options->contrast, options->saturation};
    uint32_t words[4];
    words_of(draw, DRAW_COLOUR, words);
    for (int i = 0; i < 3; i++) factor[i] = most[i] > 0 ? from_to(1 - most[i], 1 + most[i], words[i]) : 1;
}

static int32_t side_of(double length, int32_t most)
{
    const int64_t side = rounded(length);
    return (int32_t)(side < 1 ? 1 : side > most ? most : side);
}

static void draw_erased(const struct tr_augment_options *options, const struct tr_op_load_images *plain,
                        const struct tr_draw *draw, struct tr_image_view *view)
{
    uint32_t words[4], place[4];
    words_of(draw, DRAW_ERASE, words);
    if (options->erase == 0 || unit(words[0]) >= options->erase) return;
    const bool given = options->erase_area.count == 2;
    const double least = given ? (double)options->erase_area.item[0] : 0.02,
                 most = given ? (double)options->erase_area.item[1] : 0.33,
                 area = (double)plain->out_h * plain->out_w * from_to(least, most, words[1]),
                 ratio = tr_exp(from_to(tr_log(0.3), tr_log(3.3), words[2]));
    words_of(draw, DRAW_ERASE_PLACE, place);
    view->height = side_of(sqrt(area * ratio), plain->out_h);
    view->width = side_of(sqrt(area / ratio), plain->out_w);
    view->top = (int32_t)(place[0] % (uint32_t)(plain->out_h - view->height + 1));
    view->left = (int32_t)(place[1] % (uint32_t)(plain->out_w - view->width + 1));
}

void tr_draw_view(const struct tr_input_options *input, const struct tr_op_load_images *plain,
                  const struct tr_draw *draw, struct tr_image_view *out)
{
    struct map map = {{1, 0}, {0, 1}, {0, 0}};
    int64_t top = (plain->in_h - plain->out_h) / 2, left = (plain->in_w - plain->out_w) / 2;
    double factor[3];
    uint32_t words[4];
    words_of(draw, DRAW_SHIFT, words);
    *out = (struct tr_image_view){0};
    if (plain->random) {
        top = (int64_t)(words[0] % (uint32_t)(plain->in_h + 2 * plain->pad - plain->out_h + 1)) - plain->pad;
        left = (int64_t)(words[1] % (uint32_t)(plain->in_w + 2 * plain->pad - plain->out_w + 1)) - plain->pad;
        if (plain->flip && (words[2] & 1)) map.column[1] = -1;
    }
    draw_map(&input->augment, draw, &map);
    draw_factors(&input->augment, draw, factor);
    draw_operations(&input->augment, plain, draw, &map, factor);
    settle(&map, plain, top, left, out);
    out->brightness = (float)factor[0];
    out->contrast = (float)factor[1];
    out->saturation = (float)factor[2];
    draw_erased(&input->augment, plain, draw, out);
}

/* ---- mixing ---- */

/* Jöhnk's method: u^(1/a) / (u^(1/a) + v^(1/a)) where that sum is at most 1. */
static double draw_beta(double a, const struct tr_draw *draw)
{
    for (uint32_t k = 0; k < ATTEMPTS; k++) {
        uint32_t words[4];
        words_of(draw, DRAW_BETA + k, words);
        const double x = tr_pow(((double)words[0] + 0.5) * 0x1p-32, 1 / a),
                     y = tr_pow(((double)words[1] + 0.5) * 0x1p-32, 1 / a);
        if (x + y <= 1 && x + y > 0) return x / (x + y);
    }
    return 0.5;
}

/* The part of `length` places around `centre` that lies within an image of `size`. */
static int32_t cut(int64_t centre, int64_t length, int32_t size, int32_t *begin)
{
    int64_t first = centre - length / 2, end = first + length;
    if (first < 0) first = 0;
    if (end > size) end = size;
    *begin = (int32_t)first;
    return (int32_t)(end > first ? end - first : 0);
}

void tr_draw_mix(const struct tr_augment_options *options, int32_t height, int32_t width,
                 const struct tr_draw *draw, struct tr_image_mix *out, double *share)
{
    uint32_t words[4];
    words_of(draw, DRAW_MIX, words);
    const bool both = options->mixup > 0 && options->cutmix > 0,
               blends = both ? (words[0] & 1) == 0 : options->mixup > 0;
    const double part = draw_beta(blends ? options->mixup : options->cutmix, draw);
    *out = (struct tr_image_mix){.share = 1};
    if (blends) {
        out->share = (float)part;
        *share = (double)out->share;
        return;
    }
    const double side = sqrt(1 - part);
    out->height = cut(words[1] % (uint32_t)height, rounded(height * side), height, &out->top);
    out->width = cut(words[2] % (uint32_t)width, rounded(width * side), width, &out->left);
    *share = 1 - (double)out->height * out->width / ((double)height * width);
}
