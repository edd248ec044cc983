#include "job/file/settings.h"

#include "base/alloc.h"
#include "base/options/config.h"
#include "base/fail.h"
#include "job/file/monitor.h"

#include <inttypes.h>
#include <string.h>

/* ---- writing ---- */

/* A line "title: {...}". */
static tr_status add_section(struct tr_text *text, const char *title, const struct tr_option *table,
                             int32_t count, const void *object)
{
    char *dump;
    TR_TRY(tr_options_dump(table, count, object, &dump));
    tr_text_addf(text, "%s: ", title);
    tr_text_add(text, dump);
    tr_text_add(text, "\n");
    tr_free(dump);
    return TR_OK;
}

/* Adds nothing where every example comes once, so that the text equals that of versions without the
   option. */
static tr_status add_sampling(struct tr_text *text, const struct tr_train_options *train)
{
    static const char *const names[] = {"once", "balanced", "shares"};
    if (train->sampling == TR_SAMPLING_ONCE) return TR_OK;
    tr_text_addf(text, "sampling: {%s: [", names[train->sampling]);
    for (int32_t i = 0; i < train->sampling_shares.count; i++)
        tr_text_addf(text, "%s%.9g", i ? ", " : "", (double)train->sampling_shares.item[i]);
    tr_text_add(text, "]}\n");
    return TR_OK;
}

/* Adds nothing where there are no adapters. The base is identified by its hash, not its path. */
static tr_status add_adapters(struct tr_text *text, const struct tr_job *job)
{
    struct tr_adapters adapters = job->adapters;
    if (adapters.rank == 0) return TR_OK;
    adapters.base = NULL;
    return add_section(text, "adapters", tr_adapters_options, tr_adapters_option_count, &adapters);
}

/* Likewise of the teacher. */
static tr_status add_distill(struct tr_text *text, const struct tr_job *job)
{
    struct tr_distill_options distill = job->distill;
    if (!distill.teacher) return TR_OK;
    distill.teacher = NULL;
    return add_section(text, "distill", tr_distill_option_table, tr_distill_option_count, &distill);
}

tr_status tr_settings_text(const struct tr_job *job, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    tr_status status;
    struct tr_input_options input = job->input;
    input.state = NULL;
    input.classes = (struct tr_string_list){0};
    tr_text_addf(&text,
                 "trireme settings: 1\nseed: %" PRId64 "\ntrain: {batch: %" PRId64 ", microbatches: %" PRId64
                 ", shuffle: %s, last_batch: %s}\n",
                 job->file.seed, job->train.batch, job->train.microbatches,
                 job->train.shuffle ? "true" : "false", job->train.last_batch == 0 ? "keep" : "drop");
    if (job->data.validation_split > 0)
        tr_text_addf(&text, "data: {validation_split: %.17g}\n", job->data.validation_split);
    if (job->data.folds > 0)
        tr_text_addf(&text, "folds: {folds: %" PRId32 ", fold: %" PRId32 "}\n", job->data.folds,
                     job->data.fold);
    if (job->data.split == TR_SPLIT_STRATIFIED) tr_text_add(&text, "split: stratified\n");
    if (job->data.split_seed >= 0) tr_text_addf(&text, "split_seed: %" PRId64 "\n", job->data.split_seed);
    TR_TRY_GOTO(add_sampling(&text, &job->train), out);
    TR_TRY_GOTO(add_section(&text, "input", tr_input_option_table, tr_input_option_count, &input), out);
    tr_text_add(&text, "layers: ");
    tr_config_json(job->file.layers, &text);
    tr_text_add(&text, "\n");
    TR_TRY_GOTO(add_adapters(&text, job), out);
    TR_TRY_GOTO(add_distill(&text, job), out);
    tr_text_add(&text, "loss: ");
    TR_TRY_GOTO(tr_loss_dump(&job->model->loss, &text), out);
    tr_text_add(&text, "\n");
    TR_TRY_GOTO(
        add_section(&text, "optimizer", tr_optimizer_options, tr_optimizer_option_count, &job->optimizer),
        out);
    TR_TRY_GOTO(add_section(&text, "schedule", tr_schedule_options, tr_schedule_option_count,
                            &job->optimizer.schedule),
                out);
    /* The rate depends on it: it is the only state that affects the weights. */
    const char *monitor = tr_monitor_figure(job->train.monitor);
    if (job->optimizer.schedule.kind == TR_SCHEDULE_PLATEAU && strcmp(monitor, "loss") != 0)
        tr_text_addf(&text, "monitor: %s\n", monitor);
    status = tr_text_finish(&text, out);
out:
    tr_text_release(&text);
    return status;
}

/* ---- comparing ---- */

/* A value in a message is cut to this. */
#define SHOWN 60

static void add_value(struct tr_text *text, const tr_config *node)
{
    struct tr_text json = TR_TEXT_INIT;
    if (!node) {
        tr_text_add(text, "not given");
        return;
    }
    tr_config_json(node, &json);
    if (json.failed) text->failed = true;
    if (json.length > SHOWN) {
        tr_text_add_bytes(text, json.bytes, SHOWN);
        tr_text_add(text, "...");
    } else if (json.bytes) {
        tr_text_add(text, json.bytes);
    }
    tr_text_release(&json);
}

/* The differences found, and how many more to list. */
struct differences {
    struct tr_text text;
    const char *between; /* text between the two values */
    int left;
};

/* Adds "path value, here value"; one of the two may be NULL. */
static void tell(struct differences *out, const tr_config *there, const tr_config *here)
{
    char path[TR_CONFIG_PATH_SIZE];
    if (out->left-- <= 0) return;
    tr_text_addf(&out->text, "%s%s ", out->text.length ? "; " : "",
                 tr_config_path(there ? there : here, path, sizeof path));
    add_value(&out->text, there);
    tr_text_add(&out->text, out->between);
    add_value(&out->text, here);
}

/* Recursion is as deep as trees may be. */
static void compare(struct differences *out, const tr_config *there, const tr_config *here)
{
    enum tr_config_kind kind = tr_config_kind(there);
    if (kind != tr_config_kind(here) ||
        (kind == TR_CONFIG_SCALAR && strcmp(tr_config_text(there), tr_config_text(here)) != 0)) {
        tell(out, there, here);
        return;
    }
    bool mapping = kind == TR_CONFIG_MAPPING;
    for (int32_t i = 0; i < tr_config_count(there); i++) {
        const tr_config *own = tr_config_at(there, i);
        const tr_config *other = mapping                     ? tr_config_get(here, tr_config_key(there, i))
                                 : i < tr_config_count(here) ? tr_config_at(here, i)
                                                             : NULL;
        if (other)
            compare(out, own, other);
        else
            tell(out, own, NULL);
    }
    for (int32_t i = 0; i < tr_config_count(here); i++) {
        bool matched =
            mapping ? tr_config_get(there, tr_config_key(here, i)) != NULL : i < tr_config_count(there);
        if (!matched) tell(out, NULL, tr_config_at(here, i));
    }
}

tr_status tr_settings_compare(const char *there, const char *here, const char *between, int most, char **out)
{
    tr_config *a = NULL, *b = NULL;
    struct differences differences = {TR_TEXT_INIT, between, most};
    tr_status status;
    TR_TRY_GOTO(tr_config_parse(there, strlen(there), "settings there", &a), out);
    TR_TRY_GOTO(tr_config_parse(here, strlen(here), "settings here", &b), out);
    compare(&differences, a, b);
    if (differences.left < 0) tr_text_addf(&differences.text, "; and %d more", -differences.left);
    status = tr_text_finish(&differences.text, out);
out:
    tr_text_release(&differences.text);
    tr_config_destroy(&b);
    tr_config_destroy(&a);
    return status;
}
