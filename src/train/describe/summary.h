/* Facts about a network without running it: sizes and operations of its layers, memory of a step. */
#ifndef TR_TRAIN_SUMMARY_H
#define TR_TRAIN_SUMMARY_H

#include "checkpoint/checkpoint.h"
#include "data/cache/store.h"
#include "job/job.h"
#include "trireme/inspect.h"

/* Of one example, or of one token where the layer's input is a sequence. */
struct tr_layer_summary {
    int64_t parameters;
    int64_t bytes;      /* kept of its forward pass for its backward pass, output included */
    int64_t operations; /* of the forward pass: 2 for a multiply-add */
    bool per_token;
    bool again; /* a training step computes it twice (train.recompute) */
};

struct tr_summary {
    tr_store *store; /* that data are opened through */
    struct tr_job *job;
    tr_checkpoint *checkpoint;      /* NULL for a model file */
    struct tr_layer_summary *layer; /* [job->model->layer_count] */
    /* Tokens of the longest example, to which the figures below refer; 0 without sequences; -1 if unknown,
       and then these figures are unknown, too. */
    int64_t tokens;
    int64_t second_tokens;    /* of the longest second text, 0 without one */
    int64_t operations;       /* of a forward pass of one example */
    int64_t step_operations;  /* of a training step: forward, gradients of inputs and of parameters */
    int64_t again_operations; /* of these, operations computed again in backward */
    int64_t base_parameters;  /* of the base of adapters, not among the parameters */
    int64_t base_bytes;       /* of their file, which is mapped */
    int64_t parameter_bytes;
    int64_t gradient_bytes;  /* of a training step, including those that wait in the tree of microbatches */
    int64_t state_bytes;     /* moments and averages that the optimizer keeps */
    int64_t pass_bytes;      /* of a training step: outputs, their gradients, buffers */
    int64_t teacher_bytes;   /* of the parameters and the pass of a teacher */
    int64_t inference_bytes; /* of a forward pass of one example */
};

/* Inspects a model file, or a checkpoint or directory of them. `set` [set_count] are overrides. Returned,
   release with tr_summary_release(), also after a failure. */
tr_status tr_summary_make(const struct tr_inspect_settings *what, struct tr_summary *out);
void tr_summary_release(struct tr_summary *summary);

#endif
