/* Measurements of this machine in each usage by ranks. */
#ifndef TR_PLAN_MACHINE_H
#define TR_PLAN_MACHINE_H

#include "plan/measure.h"

/* So many ranks of a host, with so many threads each. */
struct tr_usage {
    int threads, copies;
    struct tr_measured_part *part; /* [parts] that its ranks compute; owned */
    int parts;
    tr_costs *costs; /* owned; NULL: not measured yet */
    struct tr_measured_rates rates;
};

struct tr_machine {
    struct tr_usage *usage; /* [usages]; owned */
    int usages;
};

/* Notes that ranks of a usage will compute such a part; the index of the usage, -1: no memory. */
int tr_machine_expect(struct tr_machine *machine, int threads, int copies, struct tr_measured_part part);
/* Measures all noted usages, `seconds` for each part. `device` names the computing device; its threads are
   those of the usages. `listener`, or NULL, is called before each. Errors as those of a training. */
typedef void (*tr_machine_listener)(void *user, const struct tr_usage *usage);
tr_status tr_machine_measure(struct tr_machine *machine, const struct tr_job *job,
                             const struct tr_device_choice *device, double seconds,
                             tr_machine_listener listener, void *user);
void tr_machine_release(struct tr_machine *machine);

#endif
