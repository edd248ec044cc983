#include "train/evaluate/answer.h"

#include "base/numbers/mathf.h"

static void softmax(int64_t width, float *output)
{
    float most = output[0], sum = 0;
    for (int64_t k = 1; k < width; k++) most = output[k] > most ? output[k] : most;
    for (int64_t k = 0; k < width; k++) sum += output[k] = tr_expf(output[k] - most);
    for (int64_t k = 0; k < width; k++) output[k] /= sum;
}

void tr_answer(const struct tr_job *job, int64_t rows, float *output)
{
    const int64_t width = tr_job_width(job);
    struct tr_answer_part part[TR_LOSS_HEADS];
    const int32_t parts = tr_loss_parts(&job->model->loss, width, part);
    for (int64_t r = 0; r < rows; r++) {
        for (int32_t i = 0; i < parts; output += part[i++].outputs) {
            if (part[i].kind == TR_ANSWER_CLASSES) softmax(part[i].outputs, output);
            for (int64_t k = 0; part[i].kind == TR_ANSWER_YES && k < part[i].outputs; k++)
                output[k] = tr_sigmoidf(output[k]);
            for (int64_t k = 0; part[i].logs && k < part[i].outputs; k++) output[k] = tr_expf(output[k]);
        }
    }
}
