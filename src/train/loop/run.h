/* A run under way, shared by its loop of steps (run.c) and the work between them (rest.c). */
#ifndef TR_TRAIN_TRAINER_RUN_H
#define TR_TRAIN_TRAINER_RUN_H

#include "train/loop/internal.h"

/* State that the work between steps changes. */
struct marks {
    int64_t reported_step, evaluated_step, kept_step, tested_step, checked_step, saved_step;
    struct trainer_best best;
    struct tr_plateau plateau;
    bool rate_is_given;
    double given_rate;
    double reported_seconds, progressed_seconds;
    int64_t reported_examples, progressed_examples;
};

/* State of a run besides the trainer. */
struct run {
    tr_trainer *trainer;
    tr_train_listener listener;
    void *user;
    double began;                                     /* tr_clock_seconds() before the first step */
    double reported_seconds, progressed_seconds;      /* training seconds at the last report of each kind */
    int64_t reported_examples, progressed_examples;   /* since then */
    int64_t reported_step, evaluated_step, kept_step; /* when each periodic task was done last */
    int64_t tested_step;  /* steps done at the last evaluation on the test data; -1: none */
    int64_t checked_step; /* when data files were checked last */
    bool changed;         /* a changed file was named */
    int32_t request;      /* of all ranks in the last step */
    /* Whether the work after a step is unfinished, the step's figures, and the marks at its beginning, in
       case it must be repeated. */
    bool resting;
    struct tr_step_figures figures;
    struct marks marks;
};

/* Requests of a rank; all ranks act together after the step. */
enum request { REQUEST_STOP = 1, REQUEST_SAVE = 2, REQUEST_RATE = 4 };

/* ---- advice.c ---- */

/* Warns of settings that are probably unintended. */
void trainer_advise(const struct run *run);

/* ---- rest.c ---- */

/* The root calls its listener and the records. */
void trainer_tell(const struct run *run, const struct tr_train_event *event);
void trainer_warn(const struct run *run, const char *text);
/* A failed write is reported once. */
void trainer_warn_of_files(const struct run *run);
/* The shares of microbatches, when they must be reported. */
void trainer_tell_of_shares(const struct run *run);
/* The event of the last step. */
struct tr_train_event trainer_step_event(const tr_trainer *trainer, const struct tr_step_figures *figures);
/* The speed at which `examples` were learned. */
void trainer_set_rate(const tr_trainer *trainer, int64_t examples, double seconds,
                      struct tr_train_event *event);
/* The work after a step. TR_EINTERRUPTED where the run was asked to stop, and has. */
tr_status trainer_rest(struct run *run);
/* Whether nothing between the next step and the one after it needs the variables of that moment, or shows
   them to others: trainer_rest() then sends no notice. */
bool trainer_goes_on(const struct run *run);
/* The end of a successful run: the last checkpoint, the test, the hash. */
tr_status trainer_finish(struct run *run);
/* The end of a stopped run: TR_EINTERRUPTED. */
tr_status trainer_stopped(struct run *run);

#endif
