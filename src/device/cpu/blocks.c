#include "device/cpu/blocks.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct cpu_blocks_row cpu_blocks_table[] = {
    /* Measured on Zen 4, 1 MiB of second-level cache. */
    {NULL,
     0,
     0,
     NULL,
     {.product_depth = 256,
      .product_columns = 512,
      .product_group = 9 * 256 * 512,
      .product_band = 672 * 512,
      .product_rows = 672,
      .product_few = 10,
      .gradient_rows = 256,
      .gradient_columns = 512,
      .gradient_waiting = 3072 * 14 * 32,
      .conv_band = 256 << 10,
      .conv_gradient_pixels = 1024,
      .conv_gradient_waiting = 3072 * 14 * 32,
      .conv_in_place = 32,
      .winograd_band_least = 128 << 10,
      .winograd_band_most = 640 << 10,
      .winograd_few_band = 96 << 10,
      .winograd_gradient_z = 256 << 10,
      .winograd_gradient_v = 1536 << 10,
      .winograd_gradient_waiting = 2048 << 10}},
};

static bool suits(const struct cpu_blocks_row *row, const struct tr_processor *processor, const char *isa)
{
    if (row->isa && strcmp(row->isa, isa) != 0) return false;
    if (!row->vendor) return true;
    return strcmp(row->vendor, processor->vendor) == 0 &&
           (row->family == 0 || row->family == processor->family) &&
           (row->model_end == 0 || processor->model < row->model_end);
}

const struct cpu_blocks *cpu_blocks_find(const struct tr_processor *processor, const char *isa)
{
    const struct cpu_blocks_row *row = cpu_blocks_table;
    while (!suits(row, processor, isa)) row++;
    return &row->blocks;
}
