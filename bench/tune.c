/* Measures the sizes of blocks for this processor, and prints them as a row of src/device/cpu/blocks.c:
 *
 *   bench_tune [isa [threads [rounds]]]        the best set, one thread, 2 rounds
 *
 * Each size in turn is tried with other values against its best value, in interleaved pairs, on the layers
 * whose kernels use it. Another value is taken if the median of the pairs gains 1 % or more. A round goes
 * through all sizes. Run it on an idle machine; bench/guard confirms the row.
 */
#include "layers.h"

#include "base/processor.h"
#include "device/cpu/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAIRS 9 /* odd */
#define GAIN  0.99
/* A measurement repeats layers for at least this many seconds. */
#define LEAST_SECONDS 0.02

static const struct dense_shape dense_shapes[] = {
    {4096, 2304, 512, 4}, {50, 3136, 1024, 2}, {100, 784, 500, 4},
    {128, 2048, 1024, 4}, {768, 128, 512, 1},  {2048, 384, 1536, 1},
};
static const struct conv_shape conv_shapes[] = {
    {32, 64, 256, 12, 10, 3, 0, 4, 1}, {50, 32, 64, 14, 14, 5, 2, 2, 1}, {50, 1, 32, 28, 28, 5, 2, 2, 1}};
static const struct conv_shape winograd_shapes[] = {{32, 256, 512, 10, 8, 3, 0, 4, 1},
                                                    {64, 64, 256, 12, 10, 3, 0, 4, 1},
                                                    {64, 16, 16, 32, 32, 3, 1, 4, 1},
                                                    {64, 64, 64, 8, 8, 3, 1, 4, 1}};

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* Which layers and passes depend on a size, by the beginning of its name. */
enum kind { DENSE, CONV, WINOGRAD };
static const struct {
    const char *prefix;
    enum kind kind;
    bool passes[PASSES];
} effects[] = {
    {"product_", DENSE, {true, true, false}},       {"gradient_", DENSE, {false, false, true}},
    {"conv_gradient_", CONV, {false, false, true}}, {"conv_in_place", CONV, {false, false, true}},
    {"conv_band", CONV, {true, true, false}},       {"winograd_gradient_", WINOGRAD, {false, false, true}},
    {"winograd_", WINOGRAD, {true, true, false}},
};

static const struct size {
    const char *name;
    size_t offset;
    int64_t least, most;
} sizes[] = {
#define ENTRY(field, least, most, cache, help) {#field, offsetof(struct cpu_blocks, field), least, most},
    CPU_BLOCKS(ENTRY)
#undef ENTRY
};

#define LAYERS_MOST 8

struct workload {
    struct layer layer[LAYERS_MOST];
    int count, repeats[LAYERS_MOST][PASSES];
};

static struct workload loads[3];

static void open_loads(tr_device *device)
{
    for (int i = 0; i < LENGTH(dense_shapes); i++)
        layer_open_dense(&loads[DENSE].layer[loads[DENSE].count++], device, &dense_shapes[i]);
    for (int i = 0; i < LENGTH(conv_shapes); i++)
        layer_open_conv(&loads[CONV].layer[loads[CONV].count++], device, &conv_shapes[i], false);
    for (int i = 0; i < LENGTH(winograd_shapes); i++)
        layer_open_conv(&loads[WINOGRAD].layer[loads[WINOGRAD].count++], device, &winograd_shapes[i], true);
    for (int k = 0; k < LENGTH(loads); k++)
        for (int i = 0; i < loads[k].count; i++)
            for (enum pass pass = 0; pass < PASSES; pass++) {
                layer_run(&loads[k].layer[i], pass); /* grows the scratch memory */
                const double begin = seconds();
                layer_run(&loads[k].layer[i], pass);
                loads[k].repeats[i][pass] = 1 + (int)(LEAST_SECONDS / (seconds() - begin));
            }
}

static void close_loads(void)
{
    for (int k = 0; k < LENGTH(loads); k++)
        for (int i = 0; i < loads[k].count; i++) layer_close(&loads[k].layer[i]);
}

static double time_of(struct cpu_device *cpu, const struct cpu_blocks *blocks, struct layer *layer,
                      enum pass pass, int repeats)
{
    cpu->blocks = *blocks;
    const double begin = seconds();
    for (int i = 0; i < repeats; i++) layer_run(layer, pass);
    return seconds() - begin;
}

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* The time with `other` over that with `best`: the median of pairs, each the geometric mean over the layers
   and passes that count. */
static double ratio(struct cpu_device *cpu, int effect, const struct cpu_blocks *best,
                    const struct cpu_blocks *other)
{
    struct workload *load = &loads[effects[effect].kind];
    double pair[PAIRS];
    for (int n = 0; n < PAIRS; n++) {
        double product = 1.0;
        int count = 0;
        for (int i = 0; i < load->count; i++)
            for (enum pass pass = 0; pass < PASSES; pass++) {
                if (!effects[effect].passes[pass]) continue;
                struct layer *layer = &load->layer[i];
                const int repeats = load->repeats[i][pass];
                const struct cpu_blocks *first = n % 2 ? other : best, *second = n % 2 ? best : other;
                const double a = time_of(cpu, first, layer, pass, repeats);
                const double b = time_of(cpu, second, layer, pass, repeats);
                product *= n % 2 ? a / b : b / a;
                count++;
            }
        pair[n] = pow(product, 1.0 / count);
    }
    qsort(pair, PAIRS, sizeof pair[0], compare);
    return pair[PAIRS / 2];
}

static int effect_of(const char *name)
{
    for (int i = 0; i < LENGTH(effects); i++)
        if (!strncmp(name, effects[i].prefix, strlen(effects[i].prefix))) return i;
    fprintf(stderr, "bench_tune: no layers are known that show what %s does; add them to `effects`\n", name);
    exit(1);
}

static void tune(struct cpu_device *cpu, struct cpu_blocks *best, const struct size *size)
{
    static const double factors[] = {0.25, 0.5, 0.75, 1.5, 2.0, 4.0};
    int64_t *value = (int64_t *)((char *)best + size->offset);
    const int64_t from = *value;
    double least = GAIN;
    int64_t taken = from;
    for (int i = 0; i < LENGTH(factors); i++) {
        const int64_t tried = (int64_t)((double)from * factors[i]);
        if (tried < size->least || tried > size->most || tried == from) continue;
        struct cpu_blocks other = *best;
        *(int64_t *)((char *)&other + size->offset) = tried;
        const double found = ratio(cpu, effect_of(size->name), best, &other);
        fprintf(stderr, "  %-26s %9lld: %.3f of the time with %lld\n", size->name, (long long)tried, found,
                (long long)from);
        if (found < least) {
            least = found;
            taken = tried;
        }
    }
    *value = taken;
}

int main(int count, char **arguments)
{
    const char *isa = count > 1 ? arguments[1] : "";
    const int threads = count > 2 ? atoi(arguments[2]) : 1, rounds = count > 3 ? atoi(arguments[3]) : 2;
    tr_device *device;
    if (tr_device_create("cpu", threads, isa, &device) != TR_OK) {
        fprintf(stderr, "bench_tune: %s\n", tr_error_message());
        return 1;
    }
    char name[16] = "";
    sscanf(device->description, "cpu (%15[^,]", name);
    struct cpu_device *cpu = cpu_device_of(device);
    struct cpu_blocks best = cpu->blocks;
    open_loads(device);
    for (int round = 0; round < rounds; round++) {
        const struct cpu_blocks before = best;
        fprintf(stderr, "round %d of %d, %s\n", round + 1, rounds, device->description);
        for (int i = 0; i < LENGTH(sizes); i++) tune(cpu, &best, &sizes[i]);
        if (!memcmp(&before, &best, sizeof best)) break;
    }
    struct tr_processor processor;
    tr_processor_find(&processor);
    printf("    {\"%s\", %d, 0, \"%s\",\n     {", processor.vendor, processor.family, name);
    for (int i = 0; i < LENGTH(sizes); i++)
        printf("%s.%s = %lld", i ? ",\n      " : "", sizes[i].name,
               (long long)*(const int64_t *)((const char *)&best + sizes[i].offset));
    printf("}},\n");
    close_loads();
    tr_device_destroy(&device);
    return 0;
}
