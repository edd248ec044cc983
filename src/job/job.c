#include "job/job.h"

#include "base/alloc.h"

static void release_sections(struct tr_job *job)
{
    tr_options_release(tr_file_option_table, tr_file_option_count, &job->file);
    tr_options_release(tr_data_option_table, tr_data_option_count, &job->data);
    tr_options_release(tr_input_option_table, tr_input_option_count, &job->input);
    tr_options_release(tr_distill_option_table, tr_distill_option_count, &job->distill);
    tr_options_release(tr_train_option_table, tr_train_option_count, &job->train);
}

void tr_job_destroy(struct tr_job **handle)
{
    struct tr_job *job = *handle;
    if (!job) return;
    for (int i = 0; i < TR_SETS; i++) tr_source_close(&job->source[i]);
    tr_sampler_destroy(&job->sampler);
    tr_model_destroy(&job->model);
    tr_adapters_release(&job->adapters);
    release_sections(job);
    tr_config_destroy(&job->root);
    tr_free(job->state);
    tr_free(job);
    *handle = NULL;
}

tr_status tr_job_text(const struct tr_job *job, char **text)
{
    return tr_config_dump(job->root, text);
}
