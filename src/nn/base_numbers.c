#include "nn/base_numbers.h"

#include "base/alloc.h"
#include "base/fail.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A device that reads the base. */
struct reader {
    tr_device *device;
    int uses;            /* 0: the entry is free */
    void *memory;        /* its own copy, or NULL */
    const float **place; /* [count] */
};

struct tr_base_numbers {
    int count;
    const float **host; /* [count] */
    void (*release)(void *user);
    void *user;
    pthread_mutex_t lock; /* of the readers */
    struct reader *reader;
    size_t readers;
};

tr_status tr_base_hash_add(tr_sha256 *hash, const struct tr_parameter *parameter, const float *values)
{
    char shape[TR_SHAPE_TEXT], line[sizeof parameter->name + TR_SHAPE_TEXT + 2];
    int length =
        snprintf(line, sizeof line, "%s %s\n", parameter->name, tr_shape_text(&parameter->shape, shape));
    for (int64_t k = 0; k < parameter->count; k++)
        if (!isfinite(values[k]))
            return tr_fail(TR_ENONFINITE, "tensor \"%.200s\" holds %g at element %" PRId64, parameter->name,
                           (double)values[k], k);
    tr_sha256_add(hash, line, (size_t)length);
    tr_sha256_add(hash, values, (size_t)parameter->count * sizeof(float));
    return TR_OK;
}

static tr_status make_hash(const struct tr_model *model, const float *const *host, char hex[TR_SHA256_TEXT])
{
    tr_sha256 *hash;
    TR_TRY(tr_sha256_begin(&hash));
    tr_status status = TR_OK;
    for (int i = 0; i < model->base_count && status == TR_OK; i++)
        status = tr_base_hash_add(hash, &model->base[i], host[i]);
    if (status == TR_OK) return tr_sha256_end(&hash, hex);
    tr_sha256_destroy(&hash);
    return status;
}

static void destroy(struct tr_base_numbers *numbers)
{
    /* Passes, the readers, must be destroyed before their model. */
    tr_free(numbers->reader);
    pthread_mutex_destroy(&numbers->lock);
    if (numbers->release) numbers->release(numbers->user);
    tr_free(numbers->host);
    tr_free(numbers);
}

tr_status tr_model_take_base(struct tr_model *model, const float *const *host, void (*release)(void *user),
                             void *user)
{
    char hash[TR_SHA256_TEXT];
    struct tr_base_numbers *numbers = tr_alloc_zero(1, sizeof *numbers);
    const float **copy = tr_alloc((size_t)model->base_count + 1, sizeof *copy);
    tr_status status = numbers && copy ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = make_hash(model, host, hash);
    if (status == TR_OK && pthread_mutex_init(&numbers->lock, NULL) != 0) status = TR_ENOMEM;
    if (status != TR_OK) {
        tr_free(copy);
        tr_free(numbers);
        if (release) release(user);
        return status;
    }
    memcpy(copy, host, (size_t)model->base_count * sizeof *copy);
    numbers->count = model->base_count;
    numbers->host = copy;
    numbers->release = release;
    numbers->user = user;
    if (model->base_numbers) model->destroy_base_numbers(model->base_numbers);
    model->base_numbers = numbers;
    model->destroy_base_numbers = destroy;
    memcpy(model->base_hash, hash, sizeof hash);
    return TR_OK;
}

const float *const *tr_base_numbers_host(const struct tr_model *model)
{
    return model->base_numbers ? model->base_numbers->host : NULL;
}

/* ---- readers ---- */

static void close_reader(struct reader *reader)
{
    if (reader->memory) tr_device_free(reader->device, reader->memory);
    tr_free(reader->place);
    *reader = (struct reader){0};
}

static tr_status copy_to_device(const struct tr_model *model, struct reader *reader)
{
    const struct tr_base_numbers *numbers = model->base_numbers;
    TR_TRY(
        tr_device_alloc(reader->device, ((size_t)model->base_floats + 1) * sizeof(float), &reader->memory));
    for (int i = 0; i < numbers->count; i++) {
        float *to = (float *)reader->memory + model->base[i].offset;
        reader->place[i] = to;
        TR_TRY(tr_device_to_device(reader->device, to, numbers->host[i],
                                   (size_t)model->base[i].count * sizeof(float)));
    }
    return tr_device_wait(reader->device);
}

static tr_status open_reader(const struct tr_model *model, tr_device *device, struct reader *reader)
{
    const struct tr_base_numbers *numbers = model->base_numbers;
    *reader = (struct reader){.device = device};
    reader->place = tr_alloc((size_t)numbers->count + 1, sizeof *reader->place);
    if (!reader->place) return TR_ENOMEM;
    bool reads = true;
    for (int i = 0; i < numbers->count && reads; i++) {
        reader->place[i] = tr_device_adopt(device, numbers->host[i]);
        reads = reader->place[i] != NULL;
    }
    return reads ? TR_OK : copy_to_device(model, reader);
}

static struct reader *find_reader(const struct tr_base_numbers *numbers, const tr_device *device)
{
    for (size_t i = 0; i < numbers->readers; i++)
        if (numbers->reader[i].device == device) return &numbers->reader[i];
    return NULL;
}

static tr_status enter(const struct tr_model *model, tr_device *device, struct reader **out)
{
    struct tr_base_numbers *numbers = model->base_numbers;
    struct reader made, *place = NULL;
    *out = find_reader(numbers, device);
    if (*out) return TR_OK;
    for (size_t i = 0; i < numbers->readers; i++)
        if (numbers->reader[i].uses == 0) place = &numbers->reader[i];
    if (!place) {
        if (!tr_grow(&numbers->reader, (int64_t)numbers->readers, sizeof *numbers->reader)) return TR_ENOMEM;
        place = &numbers->reader[numbers->readers++];
        *place = (struct reader){0};
    }
    tr_status status = open_reader(model, device, &made);
    if (status != TR_OK) {
        close_reader(&made);
        return status;
    }
    *place = made;
    *out = place;
    return TR_OK;
}

tr_status tr_base_numbers_enter(const struct tr_model *model, tr_device *device, const float *const **out)
{
    struct tr_base_numbers *numbers = model->base_numbers;
    struct reader *reader;
    *out = NULL;
    if (model->base_count == 0) return TR_OK;
    if (!numbers)
        return tr_fail(TR_EINVAL, "the network has adapters, but the numbers of their base are not there");
    pthread_mutex_lock(&numbers->lock);
    tr_status status = enter(model, device, &reader);
    if (status == TR_OK) {
        reader->uses++;
        *out = reader->place;
    }
    pthread_mutex_unlock(&numbers->lock);
    return status;
}

void tr_base_numbers_leave(const struct tr_model *model, tr_device *device)
{
    struct tr_base_numbers *numbers = model->base_numbers;
    if (model->base_count == 0 || !numbers) return;
    pthread_mutex_lock(&numbers->lock);
    struct reader *reader = find_reader(numbers, device);
    if (reader && --reader->uses == 0) close_reader(reader);
    pthread_mutex_unlock(&numbers->lock);
}
