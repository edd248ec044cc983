/* The initializers: their forms in a model file, and filling.
 *
 * Element e of a parameter takes word e % 4 of the Philox block with counter (parameter, e / 4 as two words,
 * 0).
 */
#include "optim/initializer.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/multiversion.h"
#include "optim/normal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define FIELD(name) offsetof(struct tr_initializer, name)

static const struct tr_option constant_options[] = {
    {.key = "value", .type = TR_OPTION_DOUBLE, .offset = FIELD(value), .help = "the value of every element"}};

static const struct tr_option normal_options[] = {
    {.key = "deviation",
     .type = TR_OPTION_DOUBLE,
     .offset = FIELD(deviation),
     .least = 0,
     .most = INFINITY,
     .help = "standard deviation"},
    {.key = "mean", .type = TR_OPTION_DOUBLE, .offset = FIELD(mean), .fallback = "0", .help = "mean"}};

static const struct tr_option uniform_options[] = {
    {.key = "low", .type = TR_OPTION_DOUBLE, .offset = FIELD(low), .help = "least value"},
    {.key = "high", .type = TR_OPTION_DOUBLE, .offset = FIELD(high), .help = "greatest value"}};

static const struct tr_option scale_options[] = {{.key = "scale",
                                                  .type = TR_OPTION_DOUBLE,
                                                  .offset = FIELD(scale),
                                                  .fallback = "1",
                                                  .least = 0,
                                                  .most = INFINITY,
                                                  .help = "factor on the spread"}};

#define OPTIONS(table) TR_ENTRY_OPTIONS(table, struct tr_initializer)

static const struct tr_entry kinds[] = {
    [TR_INIT_CONSTANT] = {.name = "constant",
                          .help = "one value everywhere; a number alone means this",
                          OPTIONS(constant_options)},
    [TR_INIT_ZEROS] = {.name = "zeros", .help = "0 everywhere"},
    [TR_INIT_ONES] = {.name = "ones", .help = "1 everywhere"},
    [TR_INIT_NORMAL] = {.name = "normal", .help = "normal distribution", OPTIONS(normal_options)},
    [TR_INIT_TRUNCATED_NORMAL] = {.name = "truncated_normal",
                                  .help = "normal distribution restricted to two deviations around the mean; "
                                          "`deviation` is that before the restriction",
                                  OPTIONS(normal_options)},
    [TR_INIT_UNIFORM] = {.name = "uniform",
                         .help = "uniform between low and high; `uniform: 0.1` means [-0.1, 0.1]",
                         OPTIONS(uniform_options)},
    [TR_INIT_GLOROT_UNIFORM] = {.name = "glorot_uniform",
                                .help = "uniform within +- scale * sqrt(6 / (fan_in + fan_out))",
                                OPTIONS(scale_options)},
    [TR_INIT_GLOROT_NORMAL] = {.name = "glorot_normal",
                               .help = "normal with deviation scale * sqrt(2 / (fan_in + fan_out))",
                               OPTIONS(scale_options)},
    [TR_INIT_HE_UNIFORM] = {.name = "he_uniform",
                            .help = "uniform within +- scale * sqrt(6 / fan_in)",
                            OPTIONS(scale_options)},
    [TR_INIT_HE_NORMAL] = {.name = "he_normal",
                           .help = "normal with deviation scale * sqrt(2 / fan_in)",
                           OPTIONS(scale_options)}};

#define ENTRY(kind) [TR_INIT_##kind] = &kinds[TR_INIT_##kind]
static const struct tr_entry *const entries[] = {
    ENTRY(CONSTANT),
    ENTRY(ZEROS),
    ENTRY(ONES),
    ENTRY(NORMAL),
    ENTRY(TRUNCATED_NORMAL),
    ENTRY(UNIFORM),
    ENTRY(GLOROT_UNIFORM),
    ENTRY(GLOROT_NORMAL),
    ENTRY(HE_UNIFORM),
    ENTRY(HE_NORMAL),
    NULL,
};
#undef ENTRY

const struct tr_registry tr_initializers = {
    .kind = "initializer",
    .form = "a number (constant), a name such as he_normal, or a name with its options such as "
            "{truncated_normal: 0.1}",
    .entries = entries,
};

/* ---- forms in a model file ---- */

/* The shorthands of `uniform`: x for [-x, x], or [low, high]. */
static tr_status read_uniform(const tr_config *node, struct tr_initializer *out)
{
    const struct tr_option *low = &uniform_options[0], *high = &uniform_options[1];
    char where[TR_CONFIG_PATH_SIZE];
    if (tr_config_kind(node) == TR_CONFIG_SCALAR) {
        TR_TRY(tr_option_set(high, tr_config_text(node), tr_config_location(node, where, sizeof where), out));
        out->low = -out->high;
    } else {
        if (tr_config_count(node) != 2)
            return tr_config_fail(TR_EINVAL, node, "a list of %d; expected [low, high]",
                                  (int)tr_config_count(node));
        for (int32_t i = 0; i < 2; i++) {
            const tr_config *item = tr_config_at(node, i);
            if (tr_config_kind(item) != TR_CONFIG_SCALAR)
                return tr_config_fail(TR_EINVAL, item, "expected a number, found %s",
                                      tr_config_kind_name(item));
            TR_TRY(tr_option_set(i ? high : low, tr_config_text(item),
                                 tr_config_location(item, where, sizeof where), out));
        }
    }
    return TR_OK;
}

static tr_status read_options(const tr_config *node, struct tr_initializer *out)
{
    const struct tr_entry *kind = &kinds[out->kind];
    enum tr_config_kind form = node ? tr_config_kind(node) : TR_CONFIG_NULL;
    TR_TRY(tr_options_defaults(kind->options, kind->option_count, out));
    if (out->kind != TR_INIT_UNIFORM)
        return tr_options_read(kind->options, kind->option_count, node, kind->name, out);
    if (form == TR_CONFIG_SCALAR || form == TR_CONFIG_SEQUENCE) {
        TR_TRY(read_uniform(node, out));
    } else {
        TR_TRY(tr_options_read(kind->options, kind->option_count, node, kind->name, out));
    }
    if (out->low <= out->high) return TR_OK;
    char low[TR_TEXT_NUMBER_SIZE], high[TR_TEXT_NUMBER_SIZE];
    return tr_config_fail(TR_EINVAL, node, "low %s is greater than high %s",
                          tr_text_from_double(out->low, low), tr_text_from_double(out->high, high));
}

static bool fits_float(double value)
{
    return fabs(value) <= (double)FLT_MAX;
}

/* Reads a form; the numbers are not checked here. */
static tr_status read_form(const tr_config *node, struct tr_initializer *out)
{
    const char *number = tr_config_text(node);
    if (number && !tr_text_double(number, &out->value)) return TR_OK; /* kind is CONSTANT already */
    const struct tr_entry *kind;
    const tr_config *options;
    TR_TRY(tr_registry_choose(&tr_initializers, node, &kind, &options));
    out->kind = (enum tr_initializer_kind)(kind - kinds);
    /* Without options, messages still need a place: no value (null) is read like an empty mapping. */
    if (options) return read_options(options, out);
    tr_status status = read_options(NULL, out);
    return status == TR_EINVAL ? tr_config_fail(status, node, "%s", tr_error_message()) : status;
}

static tr_status read_node(const tr_config *node, struct tr_initializer *out)
{
    TR_TRY(read_form(node, out));
    bool fits = fits_float(out->value) && fits_float(out->mean) && fits_float(out->deviation) &&
                fits_float(out->low) && fits_float(out->high) && fits_float(out->scale);
    return fits ? TR_OK
                : tr_config_fail(TR_EINVAL, node, "a number exceeds the range of 32-bit floats (3.4e38)");
}

tr_status tr_initializer_read(const tr_config *node, const char *fallback, struct tr_initializer *out)
{
    *out = (struct tr_initializer){.kind = TR_INIT_CONSTANT};
    if (node) return read_node(node, out);
    tr_config *tree;
    tr_status status = tr_config_parse(fallback, strlen(fallback), "default initializer", &tree);
    if (status == TR_OK) {
        status = read_node(tree, out);
        tr_config_destroy(&tree);
    }
    assert(status == TR_OK || status == TR_ENOMEM);
    return status;
}

tr_status tr_initializer_dump(const struct tr_initializer *initializer, char **out)
{
    const struct tr_entry *kind = &kinds[initializer->kind];
    char *options;
    *out = NULL;
    TR_TRY(tr_options_dump(kind->options, kind->option_count, initializer, &options));
    *out = tr_format("{\"%s\": %s}", kind->name, options);
    tr_free(options);
    return *out ? TR_OK : TR_ENOMEM;
}

tr_status tr_initializer_markdown(char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_text_add(&text, "### Initializers\n\n| name | options | meaning |\n|---|---|---|\n");
    for (int32_t i = 0; entries[i]; i++) {
        tr_text_addf(&text, "| `%s` |", kinds[i].name);
        for (int32_t j = 0; j < kinds[i].option_count; j++) {
            const struct tr_option *option = &kinds[i].options[j];
            tr_text_addf(&text, "%s `%s`", j ? "," : "", option->key);
            if (option->fallback) tr_text_addf(&text, " (default %s)", option->fallback);
        }
        tr_text_addf(&text, " | %s |\n", kinds[i].help);
    }
    return tr_text_finish(&text, out);
}

/* ---- filling ---- */

/* Elements computed at a time: their words and doubles stay in the first-level cache. */
#define CHUNK 512

/* Words of elements [begin, begin + count), begin a multiple of 4. */
static void draw(tr_rng_key key, uint32_t parameter, int64_t begin, int32_t count, uint32_t word[CHUNK])
{
    for (int32_t i = 0; i < count; i += 4) {
        uint64_t block = (uint64_t)(begin + i) / 4;
        tr_rng_philox(key, parameter, (uint32_t)block, (uint32_t)(block >> 32), 0, word + i);
    }
}

/* out[i] = center + spread * z(cut * s[i]). Divisions take most of the time. */
TR_MULTIVERSION("avx2")
static void transform_normal(const uint32_t *word, int32_t count, double center, double spread, double cut,
                             float *out)
{
    for (int32_t i = 0; i < count; i++)
        out[i] = (float)(center + spread * normal_quantile(cut * normal_symmetric(word[i])));
}

/* out[i] = center + spread * s[i]. */
static void transform_uniform(const uint32_t *word, int32_t count, double center, double spread, float *out)
{
    for (int32_t i = 0; i < count; i++) out[i] = (float)(center + spread * normal_symmetric(word[i]));
}

/* A distribution, reduced to the numbers that filling needs. */
struct law {
    bool random, normal;
    double center, spread;
    double cut; /* of a normal: the probability within its bounds */
};

static struct law law_of(const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out)
{
    /* P(|z| < 2) */
    const double within_two = 0x1.e8b4307d3627ap-1;
    double scale = initializer->scale, in = (double)fan_in, both = (double)fan_in + (double)fan_out;
    switch (initializer->kind) {
    case TR_INIT_CONSTANT:
        return (struct law){.center = initializer->value};
    case TR_INIT_ZEROS:
        return (struct law){.center = 0};
    case TR_INIT_ONES:
        return (struct law){.center = 1};
    case TR_INIT_NORMAL:
        return (struct law){true, true, initializer->mean, initializer->deviation, 1};
    case TR_INIT_TRUNCATED_NORMAL:
        return (struct law){true, true, initializer->mean, initializer->deviation, within_two};
    case TR_INIT_UNIFORM: {
        double half = initializer->high / 2 - initializer->low / 2;
        return (struct law){true, false, initializer->low + half, half, 1};
    }
    case TR_INIT_GLOROT_UNIFORM:
        return (struct law){true, false, 0, scale * sqrt(6 / both), 1};
    case TR_INIT_GLOROT_NORMAL:
        return (struct law){true, true, 0, scale * sqrt(2 / both), 1};
    case TR_INIT_HE_UNIFORM:
        return (struct law){true, false, 0, scale * sqrt(6 / in), 1};
    case TR_INIT_HE_NORMAL:
        return (struct law){true, true, 0, scale * sqrt(2 / in), 1};
    }
    assert(0 && "every kind returns above");
    return (struct law){0};
}

void tr_initializer_fill(const struct tr_initializer *initializer, int64_t fan_in, int64_t fan_out,
                         tr_rng_key key, uint32_t parameter, int64_t begin, int64_t end, float *out)
{
    assert(fan_in >= 1 && fan_out >= 1 && begin >= 0);
    struct law law = law_of(initializer, fan_in, fan_out);
    if (!law.random) {
        for (int64_t i = 0; i < end - begin; i++) out[i] = (float)law.center;
        return;
    }
    uint32_t word[CHUNK];
    for (int64_t at = begin; at < end;) {
        int32_t skip = (int32_t)(at % 4);
        int64_t left = end - at;
        int32_t count = left < CHUNK - skip ? (int32_t)left : CHUNK - skip;
        draw(key, parameter, at - skip, skip + count, word);
        if (law.normal) {
            transform_normal(word + skip, count, law.center, law.spread, law.cut, out + (at - begin));
        } else {
            transform_uniform(word + skip, count, law.center, law.spread, out + (at - begin));
        }
        at += count;
    }
}
