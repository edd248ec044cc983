#include "job/settings.h"

#include "base/alloc.h"
#include "base/config.h"
#include "base/fail.h"

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
    TR_TRY_GOTO(add_section(&text, "input", tr_input_option_table, tr_input_option_count, &input), out);
    tr_text_add(&text, "layers: ");
    tr_config_json(job->file.layers, &text);
    tr_text_add(&text, "\n");
    TR_TRY_GOTO(add_section(&text, "loss", tr_loss_options, tr_loss_option_count, &job->model->loss), out);
    TR_TRY_GOTO(
        add_section(&text, "optimizer", tr_optimizer_options, tr_optimizer_option_count, &job->optimizer),
        out);
    TR_TRY_GOTO(add_section(&text, "schedule", tr_schedule_options, tr_schedule_option_count,
                            &job->optimizer.schedule),
                out);
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

/* "path value, here value"; one of the two may be NULL. */
static bool tell(struct tr_text *text, const tr_config *there, const tr_config *here)
{
    char path[TR_CONFIG_PATH_SIZE];
    tr_text_addf(text, "%s ", tr_config_path(there ? there : here, path, sizeof path));
    add_value(text, there);
    tr_text_add(text, ", here ");
    add_value(text, here);
    return true;
}

/* Describes the first difference; false if there is none. Recursion is as deep as trees may be. */
static bool differ(struct tr_text *text, const tr_config *there, const tr_config *here)
{
    enum tr_config_kind kind = tr_config_kind(there);
    if (kind != tr_config_kind(here)) return tell(text, there, here);
    if (kind == TR_CONFIG_SCALAR)
        return strcmp(tr_config_text(there), tr_config_text(here)) != 0 && tell(text, there, here);
    bool mapping = kind == TR_CONFIG_MAPPING;
    for (int32_t i = 0; i < tr_config_count(there); i++) {
        const tr_config *own = tr_config_at(there, i);
        const tr_config *other = mapping                     ? tr_config_get(here, tr_config_key(there, i))
                                 : i < tr_config_count(here) ? tr_config_at(here, i)
                                                             : NULL;
        if (other ? differ(text, own, other) : tell(text, own, NULL)) return true;
    }
    for (int32_t i = 0; i < tr_config_count(here); i++) {
        bool matched =
            mapping ? tr_config_get(there, tr_config_key(here, i)) != NULL : i < tr_config_count(there);
        if (!matched) return tell(text, NULL, tr_config_at(here, i));
    }
    return false;
}

tr_status tr_settings_difference(const char *there, const char *here, char **out)
{
    tr_config *a = NULL, *b = NULL;
    struct tr_text text = TR_TEXT_INIT;
    tr_status status;
    TR_TRY_GOTO(tr_config_parse(there, strlen(there), "settings there", &a), out);
    TR_TRY_GOTO(tr_config_parse(here, strlen(here), "settings here", &b), out);
    differ(&text, a, b);
    status = tr_text_finish(&text, out);
out:
    tr_text_release(&text);
    tr_config_destroy(&b);
    tr_config_destroy(&a);
    return status;
}
