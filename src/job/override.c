#include "job/override.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

tr_status tr_job_set(tr_config *root, const char *format, ...)
{
    char assignment[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(assignment, sizeof assignment, format, arguments);
    va_end(arguments);
    return tr_config_set(root, assignment);
}

/* "pipeline", or "parameter-server,mode=async,servers=2", as the `strategy:` of the file. */
static tr_status set_strategy(tr_config *root, const char *text)
{
    struct tr_text assignment = TR_TEXT_INIT;
    char *string = NULL;
    size_t name = strcspn(text, ",");
    int depth = 0;
    bool key = true;
    tr_text_add(&assignment, "strategy=");
    if (text[name]) {
        tr_text_add(&assignment, "{");
        tr_text_add_bytes(&assignment, text, name);
        tr_text_add(&assignment, ": {");
        for (const char *c = text + name + 1; *c; c++) {
            depth += (*c == '[') - (*c == ']');
            if (*c == '=' && key)
                tr_text_add(&assignment, ": ");
            else
                tr_text_add_bytes(&assignment, c, 1);
            key = (key && *c != '=') || (*c == ',' && depth == 0);
        }
        tr_text_add(&assignment, "}}");
    } else {
        tr_text_add(&assignment, text);
    }
    tr_status status = tr_text_finish(&assignment, &string);
    if (status == TR_OK) status = tr_config_set(root, string);
    tr_text_release(&assignment);
    tr_free(string);
    return status;
}

tr_status tr_job_override(tr_config *root, const struct tr_job_settings *settings)
{
    if (settings->strategy) TR_TRY(set_strategy(root, settings->strategy));
    for (int i = 0; i < settings->set_count; i++) TR_TRY(tr_config_set(root, settings->set[i]));
    if (settings->has_seed) TR_TRY(tr_job_set(root, "seed=%" PRIu64, settings->seed));
    if (settings->steps > 0) {
        TR_TRY(tr_job_set(root, "train.steps=%" PRId64, settings->steps));
        TR_TRY(tr_config_set(root, "train.epochs=0"));
    }
    return TR_OK;
}
