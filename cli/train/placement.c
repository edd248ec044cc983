#include "cli/train/placement.h"

#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_microbatches(struct tr_table *table, const struct tr_train_placement *placement)
{
    if (placement->first_microbatch == placement->end_microbatch)
        tr_table_cell(table, "none");
    else if (placement->first_microbatch + 1 == placement->end_microbatch)
        tr_table_cell(table, "%" PRId64, placement->first_microbatch);
    else
        tr_table_cell(table, "%" PRId64 " to %" PRId64, placement->first_microbatch,
                      placement->end_microbatch - 1);
}

static void add_layers(struct tr_table *table, const struct tr_train_placement *placement)
{
    if (strcmp(placement->first_layer, placement->last_layer) == 0)
        tr_table_cell(table, "%s", *placement->first_layer ? placement->first_layer : "none");
    else
        tr_table_cell(table, "%s to %s", placement->first_layer, placement->last_layer);
}

tr_status cli_placement_print(const tr_trainer *trainer, bool to_stderr)
{
    static const char *const heads[] = {"rank",   "host",   "role",       "computes on", "microbatches",
                                        "layers", "memory", "parameters", "updates",     "held on"};
    struct tr_table table;
    struct tr_text text = TR_TEXT_INIT;
    struct tr_train_info info = TR_TRAIN_INFO_INIT;
    char figure[TR_TEXT_NUMBER_SIZE], *lines;
    TR_TRY(tr_trainer_info(trainer, &info));
    tr_table_begin(&table, "rlllllrrrl");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) tr_table_cell(&table, "%s", heads[i]);
    for (int rank = 0; rank < info.ranks; rank++) {
        struct tr_train_placement placement = TR_TRAIN_PLACEMENT_INIT;
        TR_TRY(tr_trainer_placement(trainer, rank, &placement));
        bool computes = placement.first_microbatch < placement.end_microbatch;
        tr_table_cell(&table, "%d", rank);
        tr_table_cell(&table, "%s", placement.host);
        tr_table_cell(&table, "%s", placement.role);
        tr_table_cell(&table, "%s", computes ? placement.device : "nothing");
        add_microbatches(&table, &placement);
        add_layers(&table, &placement);
        tr_table_cell(&table, "%s", tr_text_from_bytes(placement.memory, figure));
        tr_table_cell(&table, "%s", tr_text_from_count(placement.parameters, figure));
        tr_table_cell(&table, "%s", tr_text_from_count(placement.updates, figure));
        tr_table_cell(&table, "%s", placement.holder);
    }
    tr_table_finish(&table, &text);
    TR_TRY(tr_text_finish(&text, &lines));
    cli_fprintf(to_stderr ? stderr : stdout, "%s strategy, %d process%s\n%s", info.strategy, info.ranks,
                info.ranks == 1 ? "" : "es", lines);
    tr_free(lines);
    return TR_OK;
}
