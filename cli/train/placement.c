#include "cli/train/placement.h"

#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_microbatches(struct tr_table *table, const struct tr_train_place *place)
{
    if (place->first_microbatch == place->end_microbatch)
        tr_table_cell(table, "none");
    else if (place->first_microbatch + 1 == place->end_microbatch)
        tr_table_cell(table, "%" PRId64, place->first_microbatch);
    else
        tr_table_cell(table, "%" PRId64 " to %" PRId64, place->first_microbatch, place->end_microbatch - 1);
}

static void add_layers(struct tr_table *table, const struct tr_train_place *place)
{
    if (strcmp(place->first_layer, place->last_layer) == 0)
        tr_table_cell(table, "%s", *place->first_layer ? place->first_layer : "none");
    else
        tr_table_cell(table, "%s to %s", place->first_layer, place->last_layer);
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
        struct tr_train_place place = TR_TRAIN_PLACE_INIT;
        TR_TRY(tr_trainer_place(trainer, rank, &place));
        bool computes = place.first_microbatch < place.end_microbatch;
        tr_table_cell(&table, "%d", rank);
        tr_table_cell(&table, "%s", place.host);
        tr_table_cell(&table, "%s", place.role);
        tr_table_cell(&table, "%s", computes ? place.device : "nothing");
        add_microbatches(&table, &place);
        add_layers(&table, &place);
        tr_table_cell(&table, "%s", tr_text_from_bytes(place.memory, figure));
        tr_table_cell(&table, "%s", tr_text_from_count(place.parameters, figure));
        tr_table_cell(&table, "%s", tr_text_from_count(place.updates, figure));
        tr_table_cell(&table, "%s", place.holder);
    }
    tr_table_finish(&table, &text);
    TR_TRY(tr_text_finish(&text, &lines));
    cli_fprintf(to_stderr ? stderr : stdout, "%s strategy, %d process%s\n%s", info.strategy, info.ranks,
                info.ranks == 1 ? "" : "es", lines);
    tr_free(lines);
    return TR_OK;
}
