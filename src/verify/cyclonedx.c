/* A bill of materials of CycloneDX 1.6: the network as a machine-learning model, with a card that names
 * its training data. Digests that are not the SHA-256 of a file are properties.
 */
#include "base/text/json.h"
#include "verify/forms.h"

#include <inttypes.h>
#include <stdio.h>

/* Made from the receipt's digest, so that equal receipts have equal numbers: a UUID of version 8. */
static void add_serial(struct tr_json_writer *json, const struct form *form)
{
    char text[64];
    snprintf(text, sizeof text, "urn:uuid:%.8s-%.4s-8%.3s-a%.3s-%.12s", form->receipt, form->receipt + 8,
             form->receipt + 12, form->receipt + 15, form->receipt + 18);
    tr_json_text(json, "serialNumber", text);
}

static void add_hash(struct tr_json_writer *json, const char *hex)
{
    tr_json_open_array(json, "hashes");
    tr_json_open_object(json, NULL);
    tr_json_text(json, "alg", "SHA-256");
    tr_json_text(json, "content", hex);
    tr_json_close_object(json);
    tr_json_close_array(json);
}

static void add_property(struct tr_json_writer *json, const char *name, const char *value)
{
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", name);
    tr_json_text(json, "value", value);
    tr_json_close_object(json);
}

static void add_sum(struct tr_json_writer *json, const char *name, const struct tr_sha256_sum *sum)
{
    char hex[TR_SHA256_TEXT];
    add_property(json, name, tr_sha256_text(sum, hex));
}

static void add_number(struct tr_json_writer *json, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    add_property(json, name, text);
}

static void add_properties(struct tr_json_writer *json, const struct form *form)
{
    const struct tr_receipt *receipt = &form->claim->receipt;
    const struct tr_receipt_boundary *last = &receipt->boundary[receipt->count - 1];
    tr_json_open_array(json, "properties");
    add_property(json, "trireme:receipt", form->receipt);
    add_property(json, "trireme:parameters", receipt->parameters);
    add_sum(json, "trireme:state", &last->root);
    add_sum(json, "trireme:settings", &receipt->settings);
    add_number(json, "trireme:numerics", (uint64_t)receipt->numerics);
    add_number(json, "trireme:seed", receipt->seed);
    add_number(json, "trireme:steps", (uint64_t)last->step);
    tr_json_close_array(json);
}

static void add_tool(struct tr_json_writer *json, const struct form *form)
{
    tr_json_open_object(json, "tools");
    tr_json_open_array(json, "components");
    tr_json_open_object(json, NULL);
    tr_json_text(json, "type", "application");
    tr_json_text(json, "name", form->claim->receipt.program);
    tr_json_close_object(json);
    tr_json_close_array(json);
    tr_json_close_object(json);
}

static void add_model(struct tr_json_writer *json, const struct form *form)
{
    tr_json_open_object(json, "component");
    tr_json_text(json, "type", "machine-learning-model");
    tr_json_text(json, "bom-ref", "model");
    tr_json_text(json, "name", form->job);
    if (*form->parameters) add_hash(json, form->parameters);
    tr_json_open_object(json, "modelCard");
    tr_json_open_object(json, "modelParameters");
    tr_json_open_array(json, "datasets");
    tr_json_open_object(json, NULL);
    tr_json_text(json, "ref", "data");
    tr_json_close_object(json);
    tr_json_close_array(json);
    tr_json_close_object(json);
    tr_json_close_object(json);
    add_properties(json, form);
    tr_json_close_object(json);
}

static void add_data(struct tr_json_writer *json, const struct form *form)
{
    tr_json_open_array(json, "components");
    tr_json_open_object(json, NULL);
    tr_json_text(json, "type", "data");
    tr_json_text(json, "bom-ref", "data");
    tr_json_text(json, "name", "training data");
    tr_json_open_array(json, "data");
    tr_json_open_object(json, NULL);
    tr_json_text(json, "type", "dataset");
    tr_json_text(json, "name", "training data");
    tr_json_close_object(json);
    tr_json_close_array(json);
    tr_json_open_array(json, "properties");
    add_sum(json, "trireme:data", &form->claim->receipt.data);
    tr_json_close_array(json);
    tr_json_close_object(json);
    tr_json_close_array(json);
}

tr_status form_cyclonedx(const struct form *form, char **text)
{
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    tr_json_text(&json, "bomFormat", "CycloneDX");
    tr_json_text(&json, "specVersion", "1.6");
    add_serial(&json, form);
    tr_json_integer(&json, "version", 1);
    tr_json_open_object(&json, "metadata");
    add_tool(&json, form);
    add_model(&json, form);
    tr_json_close_object(&json);
    add_data(&json, form);
    return tr_json_finish(&json, text);
}
