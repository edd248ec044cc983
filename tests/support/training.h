/* Runs of small jobs through the public interface, and their results for comparison.
 *
 * A function that cannot do its work ends the test.
 */
#ifndef TESTS_SUPPORT_TRAINING_H
#define TESTS_SUPPORT_TRAINING_H

#include "scratch.h"

#include "base/text/text.h"
#include "trireme/trireme.h"

/* ---- jobs ---- */

#define JOB_SETS 40

/* A model file, overrides, and where to run. Strings are borrowed. */
struct job {
    struct tr_train_settings settings;
    const char *set[JOB_SETS];
};

/* `model` is a path. One thread of the cpu device. */
void job_begin(struct job *job, const char *model);
/* Adds an override; and several, which end with NULL (NULL: none). */
void job_set(struct job *job, const char *assignment);
void job_set_all(struct job *job, const char *const *set);
/* Begins a job of the test with such overrides. */
typedef void job_beginner(struct job *job, const char *const *set);
/* Makes the trainer, or fails the test with the message. */
tr_trainer *job_trainer(struct job *job);

/* Small versions of the shipped model files, and jobs with the features that those lack; `everything` is
   the last. */
struct family {
    const char *name, *model;
    const char *data[4];   /* overrides that take the data from a scratch directory */
    const char *small[16]; /* overrides that make it small */
};
extern const struct family families[];
extern const int family_count;

/* Makes the data of the families in the scratch directory `place` and model files for the models that have
   none. */
void family_files(const char *place);
/* A scratch directory with these files, for tests that all use one; for setup and teardown of a group. */
extern char family_place[SCRATCH_PATH];
int family_place_make(void **state);
int family_place_remove(void **state);
/* The job of a family, with the network as the model file has it or small; `place` as above, borrowed. */
void family_job_large(struct job *job, const struct family *family, const char *place);
void family_job(struct job *job, const struct family *family, const char *place);

/* ---- runs ---- */

#define OUTCOME_RANKS 8
struct outcome {
    tr_status status;
    char message[1024]; /* of a failure */
    int64_t step;
    char hash[65];
    uint64_t steps_seen;   /* events of kind STEP */
    char losses[65];       /* SHA-256 over loss and accuracy of all steps seen: "" if none */
    double loss, accuracy; /* of the last step seen */
    uint64_t evaluations;  /* events of kind EVALUATION */
    double evaluated_loss, evaluated_accuracy; /* of the last one */
    int warnings, checkpoints;
    char warning[1024], checkpoint[SCRATCH_PATH]; /* the last ones */
    int shared;                                   /* events of kind SHARES */
    char shares[512];                             /* the last one's text */
    struct tr_train_statistics statistics;        /* ranks 0 if there were none; pointers are not valid */
    struct tr_train_rank rank[OUTCOME_RANKS];     /* of the first ranks */
};

/* Runs a trainer to its end. */
void trainer_outcome(tr_trainer *trainer, struct outcome *outcome);
/* Makes a trainer, runs and destroys it. A failure of either is in the outcome. */
void job_outcome(struct job *job, struct outcome *outcome);
/* The same for a job that a function of the test begins. */
struct outcome begun_outcome(job_beginner *begin, const char *const *set);
/* Fails the test unless a run to `directory` that ends after `stop` steps and is resumed has after `steps`
   the hash of `alone`. */
void expect_resumed(const struct outcome *alone, job_beginner *begin, const char *const *set,
                    const char *directory, int64_t stop, int64_t steps, const char *what);
/* Fails the test unless both succeeded and ended with the same bits; `how` describes the second. */
void expect_same(const struct outcome *expected, const struct outcome *got, const char *how);

/* The instruction sets that this machine and build have, NULL at the end; "plain" is always among them. The
   others are named on stderr as skipped. */
const char *const *training_isas(void);

/* Fails the test with the message of the library unless status is TR_OK. */
void must_train(tr_status status);
/* Writes a text to a file, and releases it. */
void must_write(const char *path, struct tr_text *text);

#endif
