/* Import of adapters from PEFT. */
#include "export/adapters/peft.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/text/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_MAX ((uint64_t)1 << 20)
#define PREFIX     "base_model.model."
#define ITEM_SIZE  (TR_NAME_SIZE + 16)

/* One of our tensors. */
struct made {
    char name[2 * TR_NAME_SIZE];
    float *values;
    int64_t shape[2];
};

struct reading {
    const char *config, *weights; /* paths, for messages */
    int64_t rank;
    double alpha, dropout;
    tr_safetensors *file;
    struct made *made;
    int64_t count;
    char (*item)[ITEM_SIZE]; /* of adapters.on */
    int32_t items;
};

bool tr_peft_is_directory(const char *path)
{
    char *config = tr_file_is_directory(path) ? tr_path_join(path, PEFT_CONFIG) : NULL;
    const bool is = config && tr_file_exists(config);
    tr_free(config);
    return is;
}

/* ---- adapter_config.json ---- */

/* Whether a member changes nothing: it is missing, null, false, empty, or `usual`. */
static bool is_nothing(const struct tr_json_value *value, const char *usual)
{
    switch (value->kind) {
    case TR_JSON_NULL:
        return true;
    case TR_JSON_BOOL:
        return !value->truth;
    case TR_JSON_TEXT:
        return !*value->text || (usual && strcmp(value->text, usual) == 0);
    case TR_JSON_ARRAY:
    case TR_JSON_OBJECT:
        return value->count == 0;
    default:
        return false;
    }
}

/* Refuses options that would be computed otherwise. Members for unknown kinds of adapters mostly begin
   with "use_". */
static tr_status check_member(const struct reading *reading, const struct tr_json_value *member)
{
    static const char *const others[] = {"bias",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "modules_to_save",
                                         "lora_bias",
                                         "layer_replication",
                                         "trainable_token_indices",
                                         "target_parameters",
                                         "alora_invocation_tokens",
                                         "arrow_config",
                                         "kasa_config",
                                         "velora_config",
                                         "monteclora_config"};
    bool matters = strncmp(member->key, "use_", 4) == 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        matters |= strcmp(member->key, others[i]) == 0;
    if (!matters || is_nothing(member, strcmp(member->key, "bias") == 0 ? "none" : NULL)) return TR_OK;
    return tr_fail(TR_EUNSUPPORTED,
                   "%s: \"%s\" is set, which makes other adapters than those of plain LoRA; merge "
                   "them with PEFT (merge_and_unload) and import the network",
                   reading->config, member->key);
}

static tr_status read_numbers(struct reading *reading, const struct tr_json_value *root)
{
    const char *type;
    TR_TRY(tr_json_get_text(root, reading->config, "peft_type", &type));
    if (strcmp(type, "LORA") != 0)
        return tr_fail(TR_EUNSUPPORTED, "%s: peft_type is \"%s\"; LORA is known", reading->config, type);
    TR_TRY(tr_json_get_integer(root, reading->config, "r", 1, 1 << 16, &reading->rank));
    reading->alpha = tr_json_number_or_nan(root, "lora_alpha");
    reading->dropout = tr_json_find(root, "lora_dropout") ? tr_json_number_or_nan(root, "lora_dropout") : 0;
    if (!(reading->alpha > 0 && reading->alpha <= 1e6))
        return tr_fail(TR_EFORMAT, "%s: lora_alpha is no number above 0", reading->config);
    if (!(reading->dropout >= 0 && reading->dropout < 1))
        return tr_fail(TR_EFORMAT, "%s: lora_dropout is no number from 0 to below 1", reading->config);
    for (const struct tr_json_value *member = root->first; member; member = member->next)
        TR_TRY(check_member(reading, member));
    return TR_OK;
}

static tr_status read_config(struct reading *reading)
{
    struct tr_file_content content;
    tr_json *document;
    TR_TRY(tr_file_read(reading->config, CONFIG_MAX, &content));
    tr_status status = tr_json_parse(content.data, content.size, reading->config, &document);
    tr_free(content.data);
    if (status != TR_OK) return status;
    status = read_numbers(reading, tr_json_root(document));
    tr_json_destroy(&document);
    return status;
}

/* ---- adapter_model.safetensors ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The module and the letter of a tensor's name. */
static tr_status parse_name(const struct reading *reading, const char *name, struct peft_module *module,
                            char *letter)
{
    char text[PEFT_NAME];
    const char *begin = name + strlen(PREFIX);
    const bool a = ends_with(name, ".lora_A.weight"), b = ends_with(name, ".lora_B.weight");
    const size_t tail = strlen(".lora_A.weight");
    if (strncmp(name, PREFIX, strlen(PREFIX)) == 0 && (a || b) && strlen(begin) > tail) {
        snprintf(text, sizeof text, "%.*s", (int)(strlen(begin) - tail), begin);
        *letter = a ? 'a' : 'b';
        if (strlen(begin) - tail < sizeof text && peft_find_module(text, module)) return TR_OK;
    }
    return tr_fail(
        TR_EUNSUPPORTED,
        "\"%s\": tensor \"%.150s\" is none of an adapter beside an attention or dense layer of GPT-2, "
        "Llama, Mistral or Qwen2",
        reading->weights, name);
}

static tr_status add_item(struct reading *reading, const struct peft_module *module)
{
    char item[ITEM_SIZE];
    snprintf(item, sizeof item, "%s%s%s", module->layer, module->part ? "." : "",
             module->part ? module->part : "");
    for (int32_t i = 0; i < reading->items; i++)
        if (strcmp(reading->item[i], item) == 0) return TR_OK;
    if (reading->items == TR_OPTION_STRINGS_MAX)
        return tr_fail(TR_EUNSUPPORTED, "\"%s\" has adapters in more than %d places", reading->weights,
                       TR_OPTION_STRINGS_MAX);
    if (!tr_grow(&reading->item, reading->items, sizeof *reading->item)) return TR_ENOMEM;
    memcpy(reading->item[reading->items++], item, sizeof item);
    return TR_OK;
}

/* Transposes a PEFT tensor [rows][columns] to ours, [columns][rows]. */
static tr_status take_tensor(struct reading *reading, const struct tr_safetensors_entry *entry)
{
    struct peft_module module;
    char letter = 0, text[TR_STORED_TEXT];
    const struct tr_stored_tensor *tensor = &entry->tensor;
    TR_TRY(parse_name(reading, tensor->name, &module, &letter));
    if (tensor->rank != 2 || tensor->dtype != TR_DTYPE_F32 ||
        tensor->shape[letter == 'a' ? 0 : 1] != reading->rank)
        return tr_fail(TR_EMISMATCH,
                       "\"%s\": tensor \"%.150s\" is %s; an adapter of rank %" PRId64 " has F32[%s]",
                       reading->weights, tensor->name, tr_stored_describe(tensor, text), reading->rank,
                       letter == 'a' ? "rank,in" : "out,rank");
    TR_TRY(add_item(reading, &module));
    if (!tr_grow(&reading->made, reading->count, sizeof *reading->made)) return TR_ENOMEM;
    struct made *made = &reading->made[reading->count];
    *made = (struct made){.shape = {tensor->shape[1], tensor->shape[0]}};
    snprintf(made->name, sizeof made->name, "%s.%s%slora_%c", module.layer, module.part ? module.part : "",
             module.part ? "_" : "", letter);
    const size_t floats = (size_t)(entry->bytes / sizeof(float));
    float *theirs = tr_alloc(floats + 1, sizeof *theirs);
    made->values = tr_alloc(floats + 1, sizeof *made->values);
    reading->count++;
    tr_status status = theirs && made->values ? TR_OK : TR_ENOMEM;
    if (status == TR_OK) status = tr_safetensors_read(reading->file, entry, theirs, NULL);
    for (int64_t i = 0; status == TR_OK && i < made->shape[0]; i++)
        for (int64_t k = 0; k < made->shape[1]; k++)
            made->values[i * made->shape[1] + k] = theirs[k * made->shape[0] + i];
    tr_free(theirs);
    return status;
}

static tr_status read_weights(struct reading *reading)
{
    TR_TRY(tr_safetensors_open(reading->weights, &reading->file));
    for (int64_t i = 0; i < tr_safetensors_count(reading->file); i++)
        TR_TRY(take_tensor(reading, tr_safetensors_at(reading->file, i)));
    if (reading->count == 0) return tr_fail(TR_EFORMAT, "\"%s\" has no tensor", reading->weights);
    return TR_OK;
}

/* ---- ours ---- */

static tr_status give(const struct reading *reading, void **bytes, size_t *size)
{
    static const struct tr_stored_metadata metadata[] = {{"format", "trireme"}};
    struct tr_stored_tensor *tensors = tr_alloc((size_t)reading->count, sizeof *tensors);
    if (!tensors) return TR_ENOMEM;
    for (int64_t i = 0; i < reading->count; i++) {
        const struct made *made = &reading->made[i];
        tensors[i] = (struct tr_stored_tensor){
            made->name, TR_DTYPE_F32, 2, {made->shape[0], made->shape[1]}, made->values};
    }
    tr_status status = tr_safetensors_to_memory(tensors, reading->count, metadata, 1, bytes, size);
    tr_free(tensors);
    return status;
}

static tr_status put_adapters(const struct reading *reading, const char *base, tr_config *root)
{
    char number[TR_TEXT_NUMBER_SIZE];
    const char *items[TR_OPTION_STRINGS_MAX];
    char *absolute = tr_path_absolute(base);
    if (!absolute) return TR_ENOMEM;
    tr_status status = tr_config_put_text(root, "adapters", "base", absolute);
    tr_free(absolute);
    for (int32_t i = 0; i < reading->items; i++) items[i] = reading->item[i];
    if (status == TR_OK) status = tr_config_put_integer(root, "adapters", "rank", reading->rank);
    if (status == TR_OK)
        status = tr_config_put_text(root, "adapters", "alpha", tr_text_from_double(reading->alpha, number));
    if (status == TR_OK)
        status =
            tr_config_put_text(root, "adapters", "dropout", tr_text_from_double(reading->dropout, number));
    if (status == TR_OK) status = tr_config_put_texts(root, "adapters", "on", reading->items, items);
    return status;
}

/* The model file of the base with an added section. */
static tr_status make_model(const struct reading *reading, const char *name, const tr_checkpoint *base,
                            char **model)
{
    size_t size;
    const char *text = tr_checkpoint_file(base, TR_JOB_FILE, &size), *path = tr_checkpoint_path(base);
    tr_config *root;
    if (!text)
        return tr_fail(TR_EFORMAT, "checkpoint \"%s\" keeps no %s; it was not written by training", path,
                       TR_JOB_FILE);
    TR_TRY(tr_config_parse(text, size, path, &root));
    tr_status status = TR_OK;
    const tr_config *input = tr_config_get(root, "input");
    if (tr_config_get(root, "adapters"))
        status = tr_fail(TR_EUNSUPPORTED,
                         "the base \"%s\" has adapters itself; give the network beside which "
                         "those of PEFT were trained",
                         path);
    /* Shared tensors are read again for each of ours that takes them. */
    if (status == TR_OK && input && tr_config_get(input, "state"))
        status = tr_config_put_text(root, "input", "state", "");
    if (status == TR_OK) status = tr_config_put_text(root, NULL, "name", name);
    if (status == TR_OK) status = put_adapters(reading, path, root);
    if (status == TR_OK) status = tr_config_dump(root, model);
    tr_config_destroy(&root);
    return status;
}

static tr_status read_all(struct reading *reading, const char *name, const char *base, char **model,
                          void **bytes, size_t *size)
{
    tr_checkpoint *checkpoint;
    TR_TRY(read_config(reading));
    TR_TRY(read_weights(reading));
    TR_TRY(tr_checkpoint_open(base, &checkpoint));
    tr_status status = make_model(reading, name, checkpoint, model);
    tr_checkpoint_close(&checkpoint);
    return status == TR_OK ? give(reading, bytes, size) : status;
}

tr_status tr_peft_read(const char *directory, const char *base, char **model, void **bytes, size_t *size)
{
    struct reading reading = {0};
    char *config = tr_path_join(directory, PEFT_CONFIG), *weights = tr_path_join(directory, PEFT_WEIGHTS);
    char *name = tr_strdup(directory);
    tr_status status = TR_ENOMEM;
    for (size_t n = name ? strlen(name) : 0; n > 1 && name[n - 1] == '/'; n--) name[n - 1] = 0;
    *model = NULL;
    *bytes = NULL;
    *size = 0;
    reading.config = config;
    reading.weights = weights;
    if (config && weights && name) status = read_all(&reading, tr_path_name(name), base, model, bytes, size);
    for (int64_t i = 0; i < reading.count; i++) tr_free(reading.made[i].values);
    tr_free(reading.made);
    tr_free(reading.item);
    tr_safetensors_close(&reading.file);
    tr_free(name);
    tr_free(weights);
    tr_free(config);
    return status;
}
