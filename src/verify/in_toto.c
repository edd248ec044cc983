/* A Statement of in-toto, version 1, with SLSA's predicate of provenance, version 1: the parameters are
 * the subject; settings and data are the materials. Digests that are not the SHA-256 of a file have other
 * names.
 */
#include "base/text/json.h"
#include "verify/forms.h"

#include <inttypes.h>
#include <stdio.h>

/* Names of things without an address. */
#define BUILD_TYPE "urn:trireme:training:1"
#define BUILDER    "urn:trireme:program:%.80s"
#define SETTINGS   "trireme_settings"
#define DATA       "trireme_data"
#define PARAMETERS "trireme_parameters"
#define STATE      "trireme_state"

static void add_digest(struct tr_json_writer *json, const char *kind, const char *hex)
{
    tr_json_open_object(json, "digest");
    tr_json_text(json, kind, hex);
    tr_json_close_object(json);
}

static void add_artifact(struct tr_json_writer *json, const char *name, const char *kind, const char *hex)
{
    tr_json_open_object(json, NULL);
    tr_json_text(json, "name", name);
    add_digest(json, kind, hex);
    tr_json_close_object(json);
}

static void add_sum(struct tr_json_writer *json, const char *name, const char *kind,
                    const struct tr_sha256_sum *sum)
{
    char hex[TR_SHA256_TEXT];
    add_artifact(json, name, kind, tr_sha256_text(sum, hex));
}

static void add_subjects(struct tr_json_writer *json, const struct form *form)
{
    const struct tr_receipt *receipt = &form->claim->receipt;
    const struct tr_receipt_boundary *last = &receipt->boundary[receipt->count - 1];
    tr_json_open_array(json, "subject");
    if (*form->parameters) add_artifact(json, "parameters.safetensors", "sha256", form->parameters);
    if (*receipt->parameters) add_artifact(json, "parameters", PARAMETERS, receipt->parameters);
    add_sum(json, "state", STATE, &last->root);
    tr_json_close_array(json);
}

static void add_definition(struct tr_json_writer *json, const struct form *form)
{
    const struct tr_receipt *receipt = &form->claim->receipt;
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, receipt->seed);
    tr_json_open_object(json, "buildDefinition");
    tr_json_text(json, "buildType", BUILD_TYPE);
    tr_json_open_object(json, "externalParameters");
    tr_json_text(json, "job", form->job);
    tr_json_text(json, "model", receipt->model);
    tr_json_text(json, "seed", seed);
    tr_json_integer(json, "steps", receipt->boundary[receipt->count - 1].step);
    tr_json_close_object(json);
    tr_json_open_object(json, "internalParameters");
    tr_json_integer(json, "numerics", receipt->numerics);
    tr_json_close_object(json);
    tr_json_open_array(json, "resolvedDependencies");
    add_sum(json, "settings", SETTINGS, &receipt->settings);
    add_sum(json, "training data", DATA, &receipt->data);
    add_sum(json, "first state", STATE, &receipt->boundary[0].root);
    tr_json_close_array(json);
    tr_json_close_object(json);
}

static void add_details(struct tr_json_writer *json, const struct form *form)
{
    char builder[128];
    snprintf(builder, sizeof builder, BUILDER, form->claim->receipt.program);
    for (char *c = builder; *c; c++)
        if (*c == ' ') *c = ':';
    tr_json_open_object(json, "runDetails");
    tr_json_open_object(json, "builder");
    tr_json_text(json, "id", builder);
    tr_json_close_object(json);
    tr_json_open_array(json, "byproducts");
    add_artifact(json, TR_RECEIPT_FILE, "sha256", form->receipt);
    tr_json_close_array(json);
    tr_json_close_object(json);
}

tr_status form_in_toto(const struct form *form, char **text)
{
    struct tr_json_writer json;
    tr_json_begin(&json, true);
    tr_json_text(&json, "_type", "https://in-toto.io/Statement/v1");
    add_subjects(&json, form);
    tr_json_text(&json, "predicateType", "https://slsa.dev/provenance/v1");
    tr_json_open_object(&json, "predicate");
    add_definition(&json, form);
    add_details(&json, form);
    tr_json_close_object(&json);
    return tr_json_finish(&json, text);
}
