/* Export of the network as a PyTorch module in Python source. The module has the names and shapes of
 * TR_LAYOUT_TORCH, so that load_state_dict() takes a file of tensors in that layout.
 *
 *     class Attention(...):        what PyTorch does not have, where it is needed
 *     class Net(nn.Module):
 *         def __init__(self):      a line for each layer that has parameters or options
 *         def prepare(images):     bytes to what the first layer gets; for networks on images
 *         def prepare(values):     the same for numbers that the job standardizes
 *         def probabilities(s):    scores to what people get of them, where that is something else
 *         def forward(self, x):    or (self, tokens, lengths)
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "export/formats.h"
#include "export/layout.h"
#include "export/torch/layers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct module {
    const struct tr_export *what;
    const struct tr_model *model;
    struct tr_text text;
};

/* ---- the text ---- */

static void add_head(struct module *module)
{
    const struct tr_export *what = module->what;
    struct tr_text *text = &module->text;
    tr_text_add(text, "\"\"\"The network ");
    tr_text_add_quoted(text, what->name);
    tr_text_addf(text,
                 " as a PyTorch module, written by %s.\n\n"
                 "    from safetensors.torch import load_file\n\n"
                 "    net = Net()\n"
                 "    net.load_state_dict(load_file(FILE))  # the tensors: safetensors, in the layout torch\n"
                 "    net.eval()\n"
                 "\"\"\"\n\n"
                 "import torch\n"
                 "from torch import nn\n"
                 "from torch.nn import functional as F\n\n\n",
                 what->facts->program);
}

/* Classes that PyTorch does not have, each once. */
static void add_needed(struct module *module)
{
    const struct tr_model *model = module->model;
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_torch_layer *rule = tr_torch_layer_of(&model->layers[i]);
        const char *needed = rule->needs ? rule->needs(&model->layers[i]) : NULL;
        for (int k = 0; needed && k < i; k++) {
            const struct tr_torch_layer *before = tr_torch_layer_of(&model->layers[k]);
            if (before->needs && before->needs(&model->layers[k]) == needed) needed = NULL;
        }
        if (!needed) continue;
        tr_text_add(&module->text, needed);
        tr_text_add(&module->text, "\n\n");
    }
}

static void add_init(struct module *module)
{
    struct tr_text *text = &module->text;
    tr_text_add(text, "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n");
    for (int i = 0; i < module->model->layer_count; i++) {
        const struct tr_layer *layer = &module->model->layers[i];
        const struct tr_torch_layer *rule = tr_torch_layer_of(layer);
        if (!rule->make || layer->sharer_of > 0) continue;
        bool plain = tr_torch_is_identifier(layer->name);
        if (plain) {
            tr_text_addf(text, "        self.%s = ", layer->name);
        } else {
            tr_text_add(text, "        self.add_module(");
            tr_text_add_quoted(text, layer->name);
            tr_text_add(text, ", ");
        }
        rule->make(layer, text);
        tr_text_add(text, plain ? "\n" : ")\n");
    }
    tr_text_add(text, "\n");
}

/* The output for people, from scores, as in `predict`. */
static void add_probabilities(struct module *module)
{
    static const char *const of[] = {
        [TR_ANSWER_VALUES] = "%s",
        [TR_ANSWER_CLASSES] = "torch.softmax(%s, -1)",
        [TR_ANSWER_YES] = "torch.sigmoid(%s)",
    };
    const struct tr_model *model = module->model;
    const int64_t outputs = tr_loss_width(&model->loss, tr_shape_count(&model->output));
    const bool pixels = model->loss.pixels > 0;
    struct tr_text *text = &module->text;
    struct tr_answer_part part[TR_LOSS_HEADS];
    const int32_t parts = tr_loss_parts(&model->loss, outputs, part);
    char name[24] = "scores";
    if (!tr_loss_has_probabilities(&model->loss)) return;
    tr_text_addf(text,
                 "    @staticmethod\n    def probabilities(scores):\n"
                 "        \"\"\"What forward() gives [..., %" PRId64 "%s] as probabilities%s.\"\"\"\n",
                 outputs, pixels ? ", height, width" : "", parts > 1 ? ", values as they are" : "");
    if (pixels) {
        tr_text_add(text, "        return torch.softmax(scores, -3)\n\n");
        return;
    }
    for (int32_t i = 0; parts > 1 && i < parts; i++)
        tr_text_addf(text, i ? ", %" PRId64 : "        part = torch.split(scores, (%" PRId64,
                     part[i].outputs);
    tr_text_add(text, parts > 1 ? "), -1)\n        return torch.cat((" : "        return ");
    for (int32_t i = 0; i < parts; i++) {
        if (parts > 1) snprintf(name, sizeof name, "part[%d]", (int)i);
        if (i > 0) tr_text_add(text, ", ");
        tr_text_addf(text, of[part[i].kind], name);
    }
    tr_text_add(text, parts > 1 ? "), -1)\n\n" : "\n\n");
}

/* Whether a layer after the next one takes the output of layer `i`, -1 for the network's input. */
static bool is_kept(const struct tr_model *model, int i)
{
    for (int k = i + 2; k < model->layer_count; k++)
        for (int n = 0; n < model->layers[k].input_count; n++)
            if (model->layers[k].input[n] == i) return true;
    return false;
}

static bool keeps_any(const struct tr_model *model)
{
    for (int i = -1; i < model->layer_count; i++)
        if (is_kept(model, i)) return true;
    return false;
}

/* kept["name"] */
static void add_kept(const struct tr_model *model, int i, struct tr_text *text)
{
    tr_text_add(text, "kept[");
    tr_text_add_quoted(text, i < 0 ? TR_LAYER_NETWORK_INPUT : model->layers[i].name);
    tr_text_add(text, "]");
}

static void keep(const struct tr_model *model, int i, struct tr_text *text)
{
    if (!is_kept(model, i)) return;
    tr_text_add(text, "        ");
    add_kept(model, i, text);
    tr_text_add(text, " = x\n");
}

/* What `x` is after layer `i`. */
static void add_layer(const struct tr_model *model, int i, struct tr_text *text)
{
    /* The module is that of the layer whose parameters are shared. */
    struct tr_layer own = model->layers[i];
    const struct tr_layer *layer = &own;
    const struct tr_torch_layer *rule = tr_torch_layer_of(layer);
    if (own.sharer_of > 0) {
        const struct tr_layer *owner = &model->layers[own.sharer_of - 1];
        memcpy(own.name, owner->name, sizeof own.name);
        own.parameter_count = owner->parameter_count;
    }
    if (!rule->join && layer->input[0] != i - 1) {
        tr_text_add(text, "        x = ");
        add_kept(model, layer->input[0], text);
        tr_text_add(text, "\n");
    }
    tr_text_add(text, "        x = ");
    if (rule->join && rule->call) rule->call(layer, text);
    for (int k = 0; rule->join && k < layer->input_count; k++) {
        tr_text_add(text, rule->join(layer, k));
        if (layer->input[k] == i - 1)
            tr_text_add(text, "x");
        else
            add_kept(model, layer->input[k], text);
    }
    if (rule->join)
        tr_text_add(text, rule->join(layer, layer->input_count));
    else
        rule->call(layer, text);
    tr_text_add(text, "\n");
}

static void add_forward(struct module *module)
{
    const struct tr_model *model = module->model;
    const int64_t *input = model->input.size;
    int64_t tokens = 0; /* the `lengths` of sequences that were made of images */
    struct tr_text *text = &module->text;
    if (model->input.sequence)
        tr_text_add(text, "    def forward(self, tokens, lengths):\n"
                          "        \"\"\"tokens int64 [batch, time], after its end each example has any "
                          "token; lengths int64 "
                          "[batch].\"\"\"\n"
                          "        x = tokens\n");
    else if (model->input.rank == 3)
        tr_text_addf(text,
                     "    def forward(self, x):\n"
                     "        \"\"\"x float32 [batch, %" PRId64 ", %" PRId64 ", %" PRId64
                     "] (channels, height, width).\"\"\"\n",
                     input[2], input[0], input[1]);
    else
        tr_text_addf(text, "    def forward(self, x):\n        \"\"\"x float32 [batch, %" PRId64 "].\"\"\"\n",
                     tr_shape_count(&model->input));
    if (keeps_any(model)) tr_text_add(text, "        kept = {}\n");
    keep(model, -1, text);
    for (int i = 0; i < model->layer_count; i++) {
        const int64_t each = model->layers[i].tokens_in;
        if (each > 0 && each != tokens)
            tr_text_addf(text, "        lengths = torch.full((len(x),), %" PRId64 ", device=x.device)\n",
                         each);
        if (each > 0) tokens = each;
        add_layer(model, i, text);
        keep(model, i, text);
    }
    tr_text_add(text, "        return x\n");
}

tr_status tr_export_torch(const struct tr_export *what, const char *path)
{
    struct module module = {what, what->job->model, TR_TEXT_INIT};
    struct tr_layout_list list;
    char *text;
    /* Names the networks that have modules. */
    TR_TRY(tr_layout_list_make(module.model, TR_LAYOUT_TORCH, &list));
    tr_layout_list_free(&list);
    if (module.model->input.sequence && module.model->image_tokens > 0)
        return tr_fail(
            TR_EUNSUPPORTED,
            "the network takes texts and also makes sequences of images; exports know one or the other");
    for (int i = 0; i < module.model->layer_count; i++)
        if (!tr_torch_layer_of(&module.model->layers[i]))
            return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\": there is no module of PyTorch for %s",
                           module.model->layers[i].where, module.model->layers[i].name,
                           module.model->layers[i].class->name);
    add_head(&module);
    add_needed(&module);
    add_init(&module);
    tr_torch_add_prepare(module.what->intake, &module.what->job->input, &module.text);
    add_probabilities(&module);
    add_forward(&module);
    TR_TRY(tr_text_finish(&module.text, &text));
    tr_status status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(text);
    return status;
}
