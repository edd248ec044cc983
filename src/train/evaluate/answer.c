#include "train/evaluate/answer.h"

#include "base/numbers/mathf.h"

static void softmax(int64_t width, float *output)
{
    float most = output[0], sum = 0;
    for (int64_t k = 1; k < width; k++) most = output[k] > most ? output[k] : most;
    for (int64_t k = 0; k < width; k++) sum += output[k] = tr_expf(output[k] - most);
    for (int64_t k = 0; k < width; k++) output[k] /= sum;
}

static void answer_one(const struct tr_loss *loss, int64_t width, float *output)
{
    const struct tr_loss_class *class = tr_loss_class_of(loss);
    if (class->classifies)
        softmax(width, output);
    else if (class->answers)
        for (int64_t k = 0; k < width; k++) output[k] = tr_sigmoidf(output[k]);
}

void tr_answer(const struct tr_job *job, int64_t rows, float *output)
{
    const struct tr_loss *loss = &job->model->loss;
    int64_t width = tr_shape_count(&job->model->output);
    for (int64_t r = 0; r < rows; r++) {
        if (loss->head_count == 0) answer_one(loss, width, output + r * width);
        float *part = output + r * width;
        for (int32_t h = 0; h < loss->head_count; part += loss->head[h++].outputs)
            answer_one(&loss->head[h], loss->head[h].outputs, part);
    }
}
