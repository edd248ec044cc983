#include "job/step/lesson.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "job/teacher.h"

struct tr_lesson {
    tr_device *device;
    struct tr_teacher teacher;
    tr_pass *pass;
    float *values; /* of the device */
    size_t memory;
};

static struct tr_pass_limits limits_of(const struct tr_pass_limits *limits, const struct tr_job *teacher)
{
    return (struct tr_pass_limits){.examples = limits->examples,
                                   .tokens = limits->tokens,
                                   .second_tokens = limits->second_tokens,
                                   .microbatches = limits->microbatches,
                                   .end_layer = teacher->model->layer_count};
}

static tr_status make(tr_lesson *lesson, const struct tr_job *job, const struct tr_pass_limits *limits)
{
    TR_TRY(tr_teacher_open(job, &lesson->teacher));
    const struct tr_model *model = lesson->teacher.job->model;
    const struct tr_pass_limits own = limits_of(limits, lesson->teacher.job);
    size_t bytes = (size_t)model->arena_floats * sizeof(float);
    void *values;
    TR_TRY(tr_pass_create(lesson->device, model, &own, &lesson->pass));
    TR_TRY(tr_pass_memory(lesson->device, model, &own, &lesson->memory));
    TR_TRY(tr_device_alloc(lesson->device, bytes + sizeof(float), &values));
    lesson->values = values;
    lesson->memory += bytes;
    TR_TRY(tr_device_to_device(lesson->device, lesson->values, lesson->teacher.values, bytes));
    TR_TRY(tr_device_wait(lesson->device));
    tr_free(lesson->teacher.values); /* they are on the device */
    lesson->teacher.values = NULL;
    return TR_OK;
}

tr_status tr_lesson_create(tr_device *device, const struct tr_job *job, const struct tr_pass_limits *limits,
                           tr_lesson **out)
{
    *out = NULL;
    if (!tr_job_is_taught(job)) return TR_OK;
    tr_lesson *lesson = tr_alloc_zero(1, sizeof *lesson);
    if (!lesson) return TR_ENOMEM;
    lesson->device = device;
    tr_status status = make(lesson, job, limits);
    if (status == TR_OK)
        *out = lesson;
    else
        tr_lesson_destroy(&lesson);
    return status;
}

void tr_lesson_destroy(tr_lesson **handle)
{
    tr_lesson *lesson = *handle;
    if (!lesson) return;
    tr_pass_destroy(&lesson->pass);
    tr_device_free(lesson->device, lesson->values);
    tr_teacher_release(&lesson->teacher);
    tr_free(lesson);
    *handle = NULL;
}

tr_status tr_lesson_give(tr_lesson *lesson, tr_feed *feed, const struct tr_batch *batch, int64_t begin,
                         const struct tr_pass_batch *described, tr_pass *pass)
{
    struct tr_pass_batch rows = *described;
    rows.microbatches = rows.nodes = 0;
    TR_TRY(tr_feed_rows(feed, lesson->pass, batch, begin, begin + rows.examples, rows.seed, rows.scalars));
    TR_TRY(tr_pass_forward(lesson->pass, &rows, lesson->values, NULL, 0));
    tr_pass_teach(pass, tr_pass_output(lesson->pass));
    return TR_OK;
}

size_t tr_lesson_memory(const tr_lesson *lesson)
{
    return lesson ? lesson->memory : 0;
}

tr_status tr_lesson_expect(const struct tr_job *job, const struct tr_pass_limits *limits, int64_t *bytes)
{
    struct tr_teacher teacher;
    size_t pass = 0;
    *bytes = 0;
    if (!tr_job_is_taught(job)) return TR_OK;
    tr_status status = tr_teacher_describe(job, &teacher);
    if (status == TR_OK) {
        const struct tr_pass_limits own = limits_of(limits, teacher.job);
        status = tr_pass_memory(NULL, teacher.job->model, &own, &pass);
        *bytes = (int64_t)pass + teacher.job->model->arena_floats * (int64_t)sizeof(float);
    }
    tr_teacher_release(&teacher);
    return status;
}

const float *tr_lesson_values(const tr_lesson *lesson, int64_t *floats)
{
    *floats = lesson ? lesson->teacher.job->model->arena_floats : 0;
    return lesson ? lesson->values : NULL;
}
