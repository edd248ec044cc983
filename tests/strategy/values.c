#include "strategy/values.h"

#include "base/files/file.h"

#include <stdio.h>

void values_job(struct job *job, const char *place, const char *line)
{
    static const char model[] =
        "name: values\n"
        "data:\n"
        "  train: {csv: {path: values.csv, label: value, label_columns: [\"1\", \"3\"]}}\n"
        "  test: {csv: {path: values.csv, label: value, label_columns: [\"1\", \"3\"]}}\n"
        "layers: [{dense: {units: 5}}, {dense: 2}]\n"
        "loss: mean_squared_error\n"
        "optimizer: {rule: sgd, rate: 1e-3}\n"
        "train: {batch: 11, microbatches: 5, steps: 5}\n";
    static char path[SCRATCH_PATH];
    for (int answers = 0; answers < 2; answers++) {
        char lines[41 * 32], *at = lines;
        for (int i = 0; i < 40; i++) {
            if (i == 29) at += snprintf(at, 32, "%s", line);
            at += snprintf(at, 32, "%d,%d,%d,%d,%d\n", i % 7, i % (answers ? 2 : 5), i * i % 11,
                           i % (answers ? 2 : 3), i % 4);
        }
        must_train(tr_file_write_atomic(NULL,
                                        scratch_join(path, place, answers ? "answers.csv" : "values.csv"),
                                        lines, (size_t)(at - lines)));
    }
    must_train(tr_file_write_atomic(NULL, scratch_join(path, place, "values.yaml"), model, sizeof model - 1));
    job_begin(job, path);
    job->settings.set = job->set;
}
