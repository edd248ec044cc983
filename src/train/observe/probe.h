/* A probe of a run under way: the gradient's norm, and histograms of parameters, mean gradients and
 * activations.
 *
 * The data that remain after a step depend on the strategy, so each rank observes data as they are
 * computed: the outputs of its layers, and the gradients that it updates with. These are added over the
 * ranks, which gives the same figures under every strategy with the same gradients. Probing changes no
 * number of the run. Of an asynchronous strategy only the root's parameters can be probed.
 */
#ifndef TR_TRAIN_PROBE_H
#define TR_TRAIN_PROBE_H

#include "io/histogram.h"
#include "strategy/strategy.h"

enum tr_probe_at {
    TR_PROBE_NORM = 1,      /* of the gradient */
    TR_PROBE_HISTOGRAMS = 2 /* of everything */
};

typedef struct tr_probe tr_probe;

/* All borrowed for the life of the probe; `comm` may be NULL. `histograms`: these may be requested.
   Returned, destroy with tr_probe_destroy(). TR_ENOMEM. */
tr_status tr_probe_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy *strategy,
                          bool histograms, tr_probe **out);
/* Accepts NULL, nulls the handle; before the strategy. */
void tr_probe_destroy(tr_probe **probe);

/* The next step is to be probed; `what`: enum tr_probe_at, the same on all ranks. Local. */
void tr_probe_begin(tr_probe *probe, unsigned what);
/* Call after it; does nothing if it was not to be probed. Adds the ranks' figures. Collective; if
   asynchronous, called only by the root. */
tr_status tr_probe_end(tr_probe *probe);

/* On the root, about the last step that was probed: */

/* NaN where not completely observed. */
double tr_probe_norm(const tr_probe *probe);
/* Of parameter, and of layer, `i` of the model; NULL where there are none. Borrowed until the next one. */
const struct tr_histogram *tr_probe_parameter(const tr_probe *probe, int i);
const struct tr_histogram *tr_probe_gradient(const tr_probe *probe, int i);
const struct tr_histogram *tr_probe_activation(const tr_probe *probe, int i);

#endif
