#include "train/loop/short_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

void short_job_begin(struct job *job)
{
    for (int i = 0; i < family_count; i++)
        if (strcmp(families[i].name, "mnist-mlp") == 0) family_job(job, &families[i], family_place);
    job->settings.steps = 12;
    job_set(job, "train.log_every=1");
    job->settings.set = job->set;
}

void short_job_steps(tr_trainer *trainer, int64_t count)
{
    for (int64_t i = 0; i < count; i++) must_train(tr_trainer_step(trainer, NULL));
}

void short_job_finish(tr_trainer **trainer, char hash[65])
{
    must_train(tr_trainer_run(*trainer, NULL, NULL));
    must_train(tr_trainer_hash(*trainer, hash));
    tr_trainer_destroy(trainer);
}

void short_job_hash(char hash[65])
{
    struct job job;
    short_job_begin(&job);
    tr_trainer *trainer = job_trainer(&job);
    short_job_finish(&trainer, hash);
}

void assert_said(const char *part)
{
    if (!strstr(tr_error_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tr_error_message(), part);
}
