#include "checkpoint/sample.h"

#include "base/files/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

const char *const sample_tensor_name[SAMPLE_TENSORS] = {"dense.weight", "dense.bias", "dense.weight.m",
                                                        "updates"};

struct sample {
    float weight[15], bias[5], moment[15];
    int64_t updates;
    struct tr_stored_tensor parameters[2], optimizer[2];
};

static void lay_out(struct sample *sample)
{
    sample->parameters[0] =
        (struct tr_stored_tensor){sample_tensor_name[0], TR_DTYPE_F32, 2, {3, 5}, sample->weight};
    sample->parameters[1] =
        (struct tr_stored_tensor){sample_tensor_name[1], TR_DTYPE_F32, 1, {5}, sample->bias};
    sample->optimizer[0] =
        (struct tr_stored_tensor){sample_tensor_name[2], TR_DTYPE_F32, 2, {3, 5}, sample->moment};
    sample->optimizer[1] =
        (struct tr_stored_tensor){sample_tensor_name[3], TR_DTYPE_I64, 0, {0}, &sample->updates};
}

static void fill(struct sample *sample, int64_t step)
{
    memset(sample, 0, sizeof *sample);
    lay_out(sample);
    for (int i = 0; i < 15; i++) {
        sample->weight[i] = (float)step + 0.01f * (float)i;
        sample->moment[i] = (float)step * -0.5f + (float)i;
    }
    for (int i = 0; i < 5; i++) sample->bias[i] = (float)(step * 100 + i);
    sample->updates = step << 40;
}

static const char digest[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/* Where a sample goes: a run directory, or a sink. */
struct target {
    const tr_file_system *files;
    const char *run;
    int64_t keep;
    const struct tr_stored_sink *sink;
};

static tr_status write_sample(const struct target *target, int64_t step)
{
    struct sample sample;
    char yaml[64];
    fill(&sample, step);
    snprintf(yaml, sizeof yaml, "layers: []\nstep: %lld\n", (long long)step);
    const struct tr_checkpoint_metric metrics[] = {{"loss", 1.0 / (double)(step + 3)}, {"accuracy", 0.1}};
    const struct tr_checkpoint_file kept[] = {{"model.yaml", yaml, strlen(yaml)}, {"empty.txt", "", 0}};
    const struct tr_checkpoint_content content = {
        .facts = {.step = step,
                  .seed = UINT64_MAX - (uint64_t)step,
                  .microbatches = 4,
                  .model_digest = digest,
                  .data_digest = "",
                  .parameter_hash = digest,
                  .metrics = metrics,
                  .metric_count = 2},
        .group = {[TR_CHECKPOINT_PARAMETERS] = {sample.parameters, 2},
                  [TR_CHECKPOINT_OPTIMIZER] = {sample.optimizer, 2}},
        .files = kept,
        .file_count = 2};
    return target->sink ? tr_checkpoint_pack(target->sink, &content)
                        : tr_checkpoint_save(target->files, target->run, target->keep, &content, NULL);
}

tr_status sample_save(const tr_file_system *files, const char *run, int64_t keep, int64_t step)
{
    return write_sample(&(struct target){.files = files, .run = run, .keep = keep}, step);
}

tr_status sample_pack(const struct tr_stored_sink *sink, int64_t step)
{
    return write_sample(&(struct target){.sink = sink}, step);
}

int64_t sample_load(const char *path, tr_status *status, bool *skipped)
{
    tr_checkpoint *checkpoint;
    tr_status opened = tr_checkpoint_open(path, &checkpoint);
    if (status) *status = opened;
    if (opened != TR_OK) {
        assert_null(checkpoint);
        assert_true(tr_error_message()[0] != '\0');
        return -1;
    }
    if (skipped) *skipped = tr_checkpoint_skipped(checkpoint) != NULL;
    return sample_check(&checkpoint);
}

int64_t sample_check(tr_checkpoint **handle)
{
    tr_checkpoint *checkpoint = *handle;
    struct sample expected, found = {0};
    char yaml[64];
    const struct tr_checkpoint_facts *facts = tr_checkpoint_facts(checkpoint);
    int64_t step = facts->step;
    fill(&expected, step);
    lay_out(&found);
    assert_true(facts->seed == UINT64_MAX - (uint64_t)step);
    assert_int_equal(facts->microbatches, 4);
    assert_string_equal(facts->program, "trireme " TRIREME_VERSION);
    assert_string_equal(facts->model_digest, digest);
    assert_string_equal(facts->data_digest, "");
    assert_string_equal(facts->parameter_hash, digest);
    assert_int_equal(facts->metric_count, 2);
    assert_string_equal(facts->metrics[0].name, "loss");
    assert_true(facts->metrics[0].value == 1.0 / (double)(step + 3));
    assert_true(facts->metrics[1].value == 0.1);

    assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_PARAMETERS, found.parameters, 2), TR_OK);
    assert_int_equal(tr_checkpoint_load(checkpoint, TR_CHECKPOINT_OPTIMIZER, found.optimizer, 2), TR_OK);
    assert_memory_equal(found.weight, expected.weight, sizeof expected.weight);
    assert_memory_equal(found.bias, expected.bias, sizeof expected.bias);
    assert_memory_equal(found.moment, expected.moment, sizeof expected.moment);
    assert_true(found.updates == expected.updates);

    size_t size;
    snprintf(yaml, sizeof yaml, "layers: []\nstep: %lld\n", (long long)step);
    assert_string_equal(tr_checkpoint_file(checkpoint, "model.yaml", &size), yaml);
    assert_int_equal(size, strlen(yaml));
    assert_string_equal(tr_checkpoint_file(checkpoint, "empty.txt", NULL), "");
    assert_null(tr_checkpoint_file(checkpoint, "missing.txt", NULL));
    tr_checkpoint_close(handle);
    return step;
}

int64_t sample_count(const char *directory, const char *end)
{
    struct tr_file_names names;
    if (!tr_file_exists(directory)) return 0;
    assert_int_equal(tr_file_list(NULL, directory, &names), TR_OK);
    int64_t count = 0;
    for (int64_t i = 0; i < names.count; i++) {
        size_t length = strlen(names.name[i]);
        count += length >= strlen(end) && strcmp(names.name[i] + length - strlen(end), end) == 0;
    }
    tr_file_names_free(&names);
    return count;
}
