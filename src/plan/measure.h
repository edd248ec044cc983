/* Measures this machine's time for the parts of a job that ranks compute. */
#ifndef TR_PLAN_MEASURE_H
#define TR_PLAN_MEASURE_H

#include "device/device.h"
#include "job/job.h"
#include "plan/costs.h"

/* A rank's part of a step. */
struct tr_measured_part {
    int64_t rows, microbatches;
};

struct tr_measurement {
    const struct tr_job *job; /* its training data are open */
    const struct tr_device_choice *device;
    const struct tr_measured_part *part; /* [parts] */
    int parts;
    int copies;     /* copies that compute at the same time, like ranks of one host */
    double seconds; /* for each part, about */
};

struct tr_measured_rates {
    double memory; /* bytes per second at which one of the copies adds numbers */
    double beside; /* seconds of processors that other threads (reading data, for example) take for each
                      second that a thread computes; 0 where several threads compute, or a device: their
                      time is the clock's, which includes it */
};

/* Adds the costs of all operations, not settled. All borrowed for the call. Errors as those of a training.
 */
tr_status tr_measure(const struct tr_measurement *measurement, tr_costs *costs,
                     struct tr_measured_rates *rates);

#endif
