#include "train/loop/told_job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const char *place;

static void write_file(const char *name, const char *text)
{
    char path[SCRATCH_PATH];
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, name), text, strlen(text)));
}

void told_job_make(const char *directory)
{
    place = directory;
    write_file("tiny.csv", "a,b,y\n1,2,3\n2,-1,1\n-1,3,2\n0.5,0.25,0.75\n1,1,2\n");
    write_file("tiny.yaml", "name: tiny\n"
                            "data: {train: {csv: {path: tiny.csv, label: value}}}\n"
                            "layers: [{dense: 1}]\nloss: mean_squared_error\n"
                            "optimizer: {rule: sgd, rate: 0.01}\n"
                            "train: {batch: 2, steps: 8, log_every: 3}\n");
    write_file("tags.tsv", "the dog runs\t0 1 2\na cat sleeps now\t0 1 2 -\ndog\t1\n");
    write_file("tags.yaml", "name: tags\n"
                            "data: {train: {text: {path: tags.tsv, tags: true, max_tokens: 4}}}\n"
                            "input: {classes: [det, noun, verb]}\n"
                            "layers: [{embedding: 4}, {dense: 3}]\n"
                            "optimizer: {rule: sgd, rate: 0.1}\n"
                            "train: {batch: 3, steps: 3, log_every: 1}\n");
}

void told_job_begin(struct job *job, const char *name)
{
    static char path[SCRATCH_PATH];
    job_begin(job, scratch_join(path, place, name));
}

void near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-9 * fabs(expected))) fail_msg("%.17g is not %.17g", got, expected);
}

int hear(void *user, const struct tr_train_event *event)
{
    struct heard *heard = user;
    assert_int_equal(event->size, sizeof *event);
    switch (event->kind) {
    case TR_EVENT_STEP:
        assert_true(heard->steps < 16);
        heard->step[heard->steps++] = *event;
        return 0;
    case TR_EVENT_PROGRESS:
        heard->progress[heard->progresses++] = *event;
        return heard->progresses == 3;
    case TR_EVENT_END:
        heard->end = *event;
        snprintf(heard->hash, sizeof heard->hash, "%s", event->hash);
        heard->ends++;
        return 0;
    default:
        heard->others++;
        return 0;
    }
}
