#include "base/text/json.h"
#include "receipt/format.h"
#include "receipt/receipt.h"

#include <inttypes.h>
#include <stdio.h>

static void add_sum(struct tr_json_writer *json, const char *key, const struct tr_sha256_sum *sum)
{
    char hex[TR_SHA256_TEXT];
    tr_json_text(json, key, tr_sha256_text(sum, hex));
}

tr_status tr_receipt_write(const struct tr_receipt *receipt, char **text)
{
    struct tr_json_writer json;
    char number[24];
    tr_json_begin(&json, true);
    tr_json_text(&json, "format", FORMAT_NAME);
    tr_json_integer(&json, "format_version", FORMAT_VERSION);
    tr_json_text(&json, "program", receipt->program);
    tr_json_integer(&json, "numerics", receipt->numerics);
    add_sum(&json, "settings", &receipt->settings);
    add_sum(&json, "data", &receipt->data);
    snprintf(number, sizeof number, "%" PRIu64, receipt->seed);
    tr_json_text(&json, "seed", number);
    tr_json_integer(&json, "steps", receipt->steps);
    tr_json_text(&json, "parameters", receipt->parameters);
    tr_json_text(&json, "log", receipt->log);
    tr_json_text(&json, "model", receipt->model);
    tr_json_open_object(&json, "boundaries");
    for (int64_t i = 0; i < receipt->count; i++) {
        snprintf(number, sizeof number, "%" PRId64, receipt->boundary[i].step);
        tr_json_open_array(&json, number);
        add_sum(&json, NULL, &receipt->boundary[i].root);
        add_sum(&json, NULL, &receipt->boundary[i].chain);
        tr_json_close_array(&json);
    }
    tr_json_close_object(&json);
    return tr_json_finish(&json, text);
}
