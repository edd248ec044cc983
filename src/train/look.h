/* A look inside a run while it goes on: the gradient's norm, and histograms of parameters, mean gradients and
 * activations.
 *
 * What a step leaves behind depends on how the ranks share it, so each rank looks at what passes by: the
 * outputs of the layers that it computes, and the gradients that it updates with. These are added over the
 * ranks, which gives the same figures under every strategy that comes to the same gradients. Looking changes
 * no number of the run. Of an asynchronous strategy only the chief's parameters can be looked at.
 */
#ifndef TR_TRAIN_LOOK_H
#define TR_TRAIN_LOOK_H

#include "io/histogram.h"
#include "strategy/strategy.h"

enum tr_look_at {
    TR_LOOK_NORM = 1,      /* of the gradient */
    TR_LOOK_HISTOGRAMS = 2 /* of everything */
};

typedef struct tr_look tr_look;

/* All borrowed for the life of the look; `comm` may be NULL. `histograms`: they may be asked for. Returned,
   destroy with tr_look_destroy(). TR_ENOMEM. */
tr_status tr_look_create(tr_device *device, const struct tr_job *job, tr_comm *comm, tr_strategy *strategy,
                         bool histograms, tr_look **out);
/* Accepts NULL, nulls the handle; before the strategy. */
void tr_look_destroy(tr_look **look);

/* The next step is to be looked at; `what`: enum tr_look_at, the same on all ranks. Local. */
void tr_look_begin(tr_look *look, unsigned what);
/* It is done, with these figures; nothing happens if it was not to be looked at. Brings the ranks' figures
   together. Collective, but the chief's alone if asynchronous. */
tr_status tr_look_end(tr_look *look, const struct tr_step_figures *figures);

/* On the chief, about the last step that was looked at: */

/* NaN where it was not seen as a whole. */
double tr_look_norm(const tr_look *look);
/* Of parameter, and of layer, `i` of the model; NULL where nothing was seen. Borrowed until the next look. */
const struct tr_histogram *tr_look_parameter(const tr_look *look, int i);
const struct tr_histogram *tr_look_gradient(const tr_look *look, int i);
const struct tr_histogram *tr_look_activation(const tr_look *look, int i);

#endif
