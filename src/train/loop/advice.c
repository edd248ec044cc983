/* Warnings at the beginning of a run, about valid settings that are probably unintended. */
#include "train/loop/run.h"

#include "base/text/counted.h"
#include "nn/losses/table.h"

#include <stdio.h>
#include <string.h>

/* A loss that applies to its input a function that the network's last layer has applied already. */
static void warn_of_twice(const struct run *run)
{
    static const struct {
        const char *layer, *loss;
    } pairs[] = {{"softmax", "softmax_cross_entropy"}, {"sigmoid", "binary_cross_entropy"}};
    const struct tr_model *model = run->trainer->job->model;
    const struct tr_layer *last = &model->layers[model->layer_count - 1];
    const char *loss = tr_loss_classes.entries[model->loss.kind]->name;
    char text[400];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (strcmp(last->class->name, pairs[i].layer) != 0 || strcmp(loss, pairs[i].loss) != 0) continue;
        snprintf(text, sizeof text,
                 "the network ends with %s (layer \"%s\"), which %s applies, too: applied twice it learns "
                 "slowly; leave "
                 "the layer out",
                 pairs[i].layer, last->name, loss);
        trainer_warn(run, text);
    }
}

/* A batch larger than an epoch. */
static void warn_of_batch(const struct run *run)
{
    const struct tr_job *job = run->trainer->job;
    int64_t batch = job->train.batch;
    char text[240], examples[TR_COUNTED_SIZE];
    if (!job->source[TR_SET_TRAIN]) return;
    int64_t count = tr_source_info(job->source[TR_SET_TRAIN])->count;
    if (batch <= count) return;
    snprintf(text, sizeof text,
             "train.batch is %lld, the training data have %s: every step takes them all; a smaller batch "
             "learns in more "
             "steps",
             (long long)batch, tr_counted(count, "example", examples));
    trainer_warn(run, text);
}

void trainer_advise(const struct run *run)
{
    warn_of_twice(run);
    warn_of_batch(run);
}
