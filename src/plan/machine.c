#include "plan/machine.h"

#include "base/alloc.h"

#include <stdlib.h>

/* Larger sizes are extrapolated linearly. */
#define PARTS_MOST 6

static bool add_part(struct tr_usage *usage, struct tr_measured_part part)
{
    for (int i = 0; i < usage->parts; i++)
        if (usage->part[i].rows == part.rows && usage->part[i].microbatches == part.microbatches) return true;
    if (!tr_grow(&usage->part, usage->parts, sizeof *usage->part)) return false;
    usage->part[usage->parts++] = part;
    return true;
}

int tr_machine_expect(struct tr_machine *machine, int threads, int copies, struct tr_measured_part part)
{
    int found = 0;
    while (found < machine->usages &&
           (machine->usage[found].threads != threads || machine->usage[found].copies != copies))
        found++;
    if (found == machine->usages) {
        if (!tr_grow(&machine->usage, machine->usages, sizeof *machine->usage)) return -1;
        machine->usage[machine->usages++] = (struct tr_usage){.threads = threads, .copies = copies};
    }
    return add_part(&machine->usage[found], part) ? found : -1;
}

static int by_rows(const void *a_, const void *b_)
{
    const struct tr_measured_part *a = a_, *b = b_;
    return a->rows != b->rows ? (a->rows < b->rows) - (a->rows > b->rows)
                              : (a->microbatches < b->microbatches) - (a->microbatches > b->microbatches);
}

/* The largest first; if there are many, evenly spaced ones in between are kept. */
static void thin(struct tr_usage *usage)
{
    qsort(usage->part, (size_t)usage->parts, sizeof *usage->part, by_rows);
    if (usage->parts <= PARTS_MOST) return;
    for (int i = 0; i < PARTS_MOST; i++)
        usage->part[i] = usage->part[i * (usage->parts - 1) / (PARTS_MOST - 1)];
    usage->parts = PARTS_MOST;
}

tr_status tr_machine_measure(struct tr_machine *machine, const struct tr_job *job,
                             const struct tr_device_choice *device, double seconds,
                             tr_machine_listener listener, void *user)
{
    for (int i = 0; i < machine->usages; i++) {
        struct tr_usage *usage = &machine->usage[i];
        struct tr_device_choice choice = *device;
        choice.threads = usage->threads;
        thin(usage);
        const struct tr_measurement measurement = {
            .job = job,
            .device = &choice,
            .part = usage->part,
            .parts = usage->parts,
            .copies = usage->copies,
            .seconds = seconds,
        };
        if (listener) listener(user, usage);
        if (tr_costs_create(&usage->costs) != TR_OK) return TR_ENOMEM;
        tr_status status = tr_measure(&measurement, usage->costs, &usage->rates);
        if (status != TR_OK) return status;
        tr_costs_settle(usage->costs);
    }
    return TR_OK;
}

void tr_machine_release(struct tr_machine *machine)
{
    for (int i = 0; i < machine->usages; i++) {
        tr_free(machine->usage[i].part);
        tr_costs_destroy(&machine->usage[i].costs);
    }
    tr_free(machine->usage);
    *machine = (struct tr_machine){0};
}
