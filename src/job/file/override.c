#include "job/file/override.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/text.h"
#include "job/file/short_forms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The length of an option's text: up to the next comma outside of brackets. */
static size_t option_length(const char *text)
{
    int depth = 0;
    size_t length = 0;
    for (; text[length] && (text[length] != ',' || depth > 0); length++)
        depth += (text[length] == '[') - (text[length] == ']');
    return length;
}

/* Writes "pipeline", or "parameter-server,mode=async,servers=2", as the `strategy:` of the file. */
static tr_status set_strategy(tr_config *root, const char *text)
{
    size_t length = strcspn(text, ",");
    char *name = tr_format("%.*s", (int)length, text);
    if (!name) return TR_ENOMEM;
    /* A name for options to be added below it. */
    tr_status status = text[length] ? tr_config_put_nothing(root, NULL, "strategy")
                                    : tr_config_put_text(root, NULL, "strategy", name);
    for (const char *at = text + length; *at && status == TR_OK; at += length) {
        length = option_length(++at);
        if (length == 0) continue;
        char *assignment = tr_format("strategy.%s.%.*s", name, (int)length, at);
        status = assignment ? tr_config_set(root, assignment) : TR_ENOMEM;
        tr_free(assignment);
    }
    tr_free(name);
    return status;
}

static tr_status put_seed(tr_config *root, uint64_t seed)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return tr_config_put_text(root, NULL, "seed", text);
}

/* A data set from the program needs no line in the file. */
static tr_status put_given(tr_config *root, const char *name)
{
    enum tr_data_set set;
    const tr_config *data = tr_config_get(root, "data");
    if (tr_data_set_find(name, &set) != TR_OK || (data && tr_config_get(data, name))) return TR_OK;
    char *assignment = tr_format("data.%s={memory: {name: %s}}", name, name);
    tr_status status = assignment ? tr_config_set(root, assignment) : TR_ENOMEM;
    tr_free(assignment);
    return status;
}

tr_status tr_job_override(tr_config *root, const struct tr_job_settings *settings)
{
    if (settings->steps > 0 && settings->epochs > 0)
        return tr_fail(TR_EINVAL,
                       "`steps` %" PRId64 " and `epochs` %" PRId64 " both say how long to train; give one",
                       settings->steps, settings->epochs);
    for (int i = 0; i < settings->given_count; i++) TR_TRY(put_given(root, settings->given[i].name));
    if (settings->strategy) TR_TRY(set_strategy(root, settings->strategy));
    for (int i = 0; i < settings->set_count; i++)
        TR_TRY(tr_config_set_in(root, settings->set[i], tr_job_short_form, (void *)(uintptr_t)settings));
    if (settings->has_seed) TR_TRY(put_seed(root, settings->seed));
    if (settings->steps > 0) {
        TR_TRY(tr_config_put_integer(root, "train", "steps", settings->steps));
        TR_TRY(tr_config_put_integer(root, "train", "epochs", 0));
    }
    if (settings->epochs > 0) {
        TR_TRY(tr_config_put_integer(root, "train", "epochs", settings->epochs));
        TR_TRY(tr_config_put_integer(root, "train", "steps", 0));
    }
    return TR_OK;
}
