/* Export of the network as a PyTorch module in Python source. The module has the names and shapes of
 * TR_LAYOUT_TORCH, so that load_state_dict() takes a file of tensors in that layout.
 *
 *     class Net(nn.Module):
 *         def __init__(self):      a line for each layer that has parameters or options
 *         def prepare(images):     bytes to what the first layer gets; for networks on images
 *         def forward(self, x):    or (self, tokens, lengths)
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/text.h"
#include "export/formats.h"
#include "export/layout.h"

#include <inttypes.h>
#include <string.h>

struct module {
    const struct tr_export *what;
    const struct tr_model *model;
    struct tr_text text;
};

/* ---- names ---- */

static bool is_keyword(const char *name)
{
    static const char *const keywords[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (strcmp(name, keywords[i]) == 0) return true;
    return false;
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                      digits[] = "0123456789";
    if (!*name || !strchr(letters, *name) || is_keyword(name)) return false;
    for (; *name; name++)
        if (!strchr(letters, *name) && !strchr(digits, *name)) return false;
    return true;
}

/* "self.conv1", or a form that takes any name. A JSON string is a Python one, too. */
static void add_member(struct tr_text *text, const char *name)
{
    if (is_identifier(name)) {
        tr_text_addf(text, "self.%s", name);
    } else {
        tr_text_add(text, "getattr(self, ");
        tr_text_add_quoted(text, name);
        tr_text_add(text, ")");
    }
}

static void add_float(struct tr_text *text, float value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, tr_text_from_float(value, number));
}

static float float_option(const struct tr_layer *layer, const char *key)
{
    return *(const float *)tr_layer_option(layer, key);
}

/* ---- windows ---- */

/* Rows and columns around the image, so that windows of this geometry meet nothing else. */
struct margin {
    int64_t top, bottom, left, right;
    bool inside; /* torch's own `padding=` of top and left gives the same windows */
};

static int64_t positive(int64_t value)
{
    return value > 0 ? value : 0;
}

static struct margin margin_of(const struct tr_window *w, bool pool)
{
    int64_t extent_h = (int64_t)(w->kernel_h - 1) * w->dilation_h + 1,
            extent_w = (int64_t)(w->kernel_w - 1) * w->dilation_w + 1;
    struct margin margin = {
        .top = w->pad_top,
        .left = w->pad_left,
        .bottom = positive((int64_t)(w->out_h - 1) * w->stride_h + extent_h - w->in_h - w->pad_top),
        .right = positive((int64_t)(w->out_w - 1) * w->stride_w + extent_w - w->in_w - w->pad_left),
    };
    margin.inside = (w->in_h + 2 * margin.top - extent_h) / w->stride_h + 1 == w->out_h &&
                    (w->in_w + 2 * margin.left - extent_w) / w->stride_w + 1 == w->out_w;
    /* What it allows pools. */
    if (pool && (2 * margin.top > w->kernel_h || 2 * margin.left > w->kernel_w)) margin.inside = false;
    return margin;
}

static bool is_empty(const struct margin *margin)
{
    return margin->top + margin->bottom + margin->left + margin->right == 0;
}

static void add_pair(struct tr_text *text, const char *key, int64_t a, int64_t b, int64_t usual)
{
    if (a != usual || b != usual) tr_text_addf(text, ", %s=(%" PRId64 ", %" PRId64 ")", key, a, b);
}

static void add_pad(struct tr_text *text, const struct margin *margin)
{
    tr_text_addf(text, "(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", margin->left, margin->right,
                 margin->top, margin->bottom);
}

/* ---- making the layers ---- */

static void make_conv(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_window *window = tr_layer_window(layer);
    struct margin margin = margin_of(window, false);
    tr_text_addf(text, "nn.Conv2d(%" PRId64 ", %" PRId64 ", (%d, %d)", layer->in[0].size[2],
                 layer->out.size[2], window->kernel_h, window->kernel_w);
    add_pair(text, "stride", window->stride_h, window->stride_w, 1);
    if (margin.inside) add_pair(text, "padding", margin.top, margin.left, 0);
    add_pair(text, "dilation", window->dilation_h, window->dilation_w, 1);
    tr_text_add(text, layer->parameter_count > 1 ? ")" : ", bias=False)");
}

static void make_pool(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_window *window = tr_layer_window(layer);
    struct margin margin = margin_of(window, true);
    bool max = strcmp(layer->class->name, "max_pool") == 0;
    tr_text_addf(text, "nn.%s((%d, %d), stride=(%d, %d)", max ? "MaxPool2d" : "AvgPool2d", window->kernel_h,
                 window->kernel_w, window->stride_h, window->stride_w);
    if (margin.inside) add_pair(text, "padding", margin.top, margin.left, 0);
    tr_text_add(text, max || !margin.inside || is_empty(&margin) ? ")" : ", count_include_pad=False)");
}

static void make_dense(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.Linear(%" PRId64 ", %" PRId64 "%s)", tr_shape_count(&layer->in[0]),
                 layer->out.size[0], layer->parameter_count > 1 ? "" : ", bias=False");
}

static void make_embedding(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.Embedding(%" PRId64 ", %" PRId64 ")",
                 *(const int64_t *)tr_layer_option(layer, "vocabulary"), layer->out.size[0]);
}

static void make_lstm(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.LSTM(%" PRId64 ", %" PRId64 ", batch_first=True)", tr_shape_count(&layer->in[0]),
                 layer->out.size[0]);
}

static void make_batch_norm(const struct tr_layer *layer, struct tr_text *text)
{
    bool image = layer->out.rank == 3;
    tr_text_addf(text, "nn.BatchNorm%s(%" PRId64 ", eps=", image ? "2d" : "1d",
                 layer->out.size[layer->out.rank - 1]);
    add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ", momentum=");
    add_float(text, float_option(layer, "momentum"));
    tr_text_add(text, ")");
}

static void make_layer_norm(const struct tr_layer *layer, struct tr_text *text)
{
    const int64_t *size = layer->out.size;
    if (layer->out.rank == 3)
        tr_text_addf(text, "nn.LayerNorm((%" PRId64 ", %" PRId64 ", %" PRId64 "), eps=", size[2], size[0],
                     size[1]);
    else
        tr_text_addf(text, "nn.LayerNorm(%" PRId64 ", eps=", tr_shape_count(&layer->out));
    add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ")");
}

static void make_dropout(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "nn.Dropout(");
    add_float(text, float_option(layer, "rate"));
    tr_text_add(text, ")");
}

/* ---- calling them ---- */

/* Opens the call of the layer's fused activation: "F.relu(". Returns what closes it. */
static const char *open_activation(const struct tr_layer *layer, struct tr_text *text)
{
    switch ((enum tr_activation) * (const int32_t *)tr_layer_option(layer, "activation")) {
    case TR_ACT_RELU:
        tr_text_add(text, "F.relu(");
        return ")";
    case TR_ACT_LEAKY_RELU:
        tr_text_add(text, "F.leaky_relu(");
        return ", ";
    case TR_ACT_TANH:
        tr_text_add(text, "torch.tanh(");
        return ")";
    case TR_ACT_SIGMOID:
        tr_text_add(text, "torch.sigmoid(");
        return ")";
    default:
        return "";
    }
}

static void close_activation(const struct tr_layer *layer, const char *end, struct tr_text *text)
{
    tr_text_add(text, end);
    if (strcmp(end, ", ") != 0) return;
    add_float(text, float_option(layer, "slope"));
    tr_text_add(text, ")");
}

/* The input of a window: x, or x with a margin of `value`. */
static void add_padded(struct tr_text *text, const struct margin *margin, const char *value)
{
    if (margin->inside || is_empty(margin)) {
        tr_text_add(text, "x");
        return;
    }
    tr_text_add(text, "F.pad(x, ");
    add_pad(text, margin);
    tr_text_addf(text, "%s)", value);
}

static void call_conv(const struct tr_layer *layer, struct tr_text *text)
{
    struct margin margin = margin_of(tr_layer_window(layer), false);
    const char *end = open_activation(layer, text);
    add_member(text, layer->name);
    tr_text_add(text, "(");
    add_padded(text, &margin, "");
    tr_text_add(text, ")");
    close_activation(layer, end, text);
}

static void call_pool(const struct tr_layer *layer, struct tr_text *text)
{
    struct margin margin = margin_of(tr_layer_window(layer), true);
    bool max = strcmp(layer->class->name, "max_pool") == 0;
    add_member(text, layer->name);
    tr_text_add(text, "(");
    add_padded(text, &margin, max ? ", value=-torch.inf" : "");
    tr_text_add(text, ")");
    if (max || margin.inside || is_empty(&margin)) return;
    /* The mean is over what is inside the image. */
    tr_text_add(text, " / ");
    add_member(text, layer->name);
    tr_text_add(text, "(F.pad(torch.ones_like(x), ");
    add_pad(text, &margin);
    tr_text_add(text, "))");
}

static void call_dense(const struct tr_layer *layer, struct tr_text *text)
{
    const char *end = open_activation(layer, text);
    add_member(text, layer->name);
    tr_text_add(text, layer->in[0].rank == 3 ? "(torch.flatten(x, 1))" : "(x)");
    close_activation(layer, end, text);
}

static void call_plain(const struct tr_layer *layer, struct tr_text *text)
{
    add_member(text, layer->name);
    tr_text_add(text, "(x)");
}

static void call_lstm(const struct tr_layer *layer, struct tr_text *text)
{
    call_plain(layer, text);
    tr_text_add(text, "[0]");
}

static void call_last(const struct tr_layer *layer, struct tr_text *text)
{
    (void)layer;
    tr_text_add(text, "x[torch.arange(len(x), device=x.device), lengths - 1]");
}

static void call_add(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "x + kept[");
    tr_text_add_quoted(text, *(char *const *)tr_layer_option(layer, "with"));
    tr_text_add(text, "]");
}

static void call_flatten(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, layer->in[0].rank == 3 ? "torch.flatten(x, 1)" : "x");
}

static void call_softmax(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "torch.softmax(x, %s)", layer->in[0].rank == 3 ? "1" : "-1");
}

static void call_leaky_relu(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "F.leaky_relu(x, ");
    add_float(text, float_option(layer, "slope"));
    tr_text_add(text, ")");
}

/* Functions of torch that are called as they are. */
static void call_function(const struct tr_layer *layer, struct tr_text *text)
{
    static const char *const functions[][2] = {
        {"gelu", "F.gelu"}, {"relu", "F.relu"}, {"sigmoid", "torch.sigmoid"}, {"tanh", "torch.tanh"}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(layer->class->name, functions[i][0]) == 0) tr_text_addf(text, "%s(x)", functions[i][1]);
}

/* How each class is made in __init__() (NULL: not at all) and called in forward(). Classes that are not here
   have no tensors in TR_LAYOUT_TORCH either, which has refused them. */
static const struct rule {
    const char *class;
    void (*make)(const struct tr_layer *layer, struct tr_text *text);
    void (*call)(const struct tr_layer *layer, struct tr_text *text);
} rules[] = {
    {"add", NULL, call_add},
    {"average_pool", make_pool, call_pool},
    {"batch_norm", make_batch_norm, call_plain},
    {"conv", make_conv, call_conv},
    {"dense", make_dense, call_dense},
    {"dropout", make_dropout, call_plain},
    {"embedding", make_embedding, call_plain},
    {"flatten", NULL, call_flatten},
    {"gelu", NULL, call_function},
    {"last", NULL, call_last},
    {"layer_norm", make_layer_norm, call_plain},
    {"leaky_relu", NULL, call_leaky_relu},
    {"lstm", make_lstm, call_lstm},
    {"max_pool", make_pool, call_pool},
    {"relu", NULL, call_function},
    {"sigmoid", NULL, call_function},
    {"softmax", NULL, call_softmax},
    {"tanh", NULL, call_function},
};

static const struct rule *rule_of(const struct tr_layer *layer)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].class, layer->class->name) == 0) return &rules[i];
    return NULL;
}

/* ---- the text ---- */

static void add_head(struct module *module)
{
    const struct tr_export *what = module->what;
    struct tr_text *text = &module->text;
    tr_text_add(text, "\"\"\"The network ");
    tr_text_add_quoted(text, what->name);
    tr_text_addf(
        text,
        " as a PyTorch module, written by %s.\n\n"
        "    from safetensors.torch import load_file\n\n"
        "    net = Net()\n"
        "    net.load_state_dict(load_file(FILE))  # trireme export --layout torch --safetensors FILE\n"
        "    net.eval()\n"
        "\"\"\"\n\n"
        "import torch\n"
        "from torch import nn\n"
        "from torch.nn import functional as F\n\n\n",
        what->facts->program);
}

static void add_init(struct module *module)
{
    struct tr_text *text = &module->text;
    tr_text_add(text, "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n");
    for (int i = 0; i < module->model->layer_count; i++) {
        const struct tr_layer *layer = &module->model->layers[i];
        const struct rule *rule = rule_of(layer);
        if (!rule->make) continue;
        bool plain = is_identifier(layer->name);
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

/* A number for each channel: "0.5", or "torch.tensor([0.5, 0.4, 0.3], ...)". */
static void add_per_channel(struct tr_text *text, const struct tr_float_list *list)
{
    if (list->count == 1) {
        add_float(text, list->item[0]);
        return;
    }
    tr_text_add(text, "torch.tensor([");
    for (int32_t i = 0; i < list->count; i++) {
        if (i) tr_text_add(text, ", ");
        add_float(text, list->item[i]);
    }
    tr_text_add(text, "], device=x.device).view(-1, 1, 1)");
}

static void add_prepare(struct module *module)
{
    const struct tr_job *job = module->what->job;
    const int64_t *stored = job->stored.size, *input = job->model->input.size;
    struct tr_text *text = &module->text;
    if (job->features != TR_FEATURE_IMAGE) return;
    tr_text_addf(text,
                 "    @staticmethod\n"
                 "    def prepare(images):\n"
                 "        \"\"\"Bytes [batch, %" PRId64 ", %" PRId64 ", %" PRId64
                 "] (height, width, channels) as "
                 "forward() wants them.\"\"\"\n"
                 "        x = images.permute(0, 3, 1, 2).to(torch.float32)\n",
                 stored[0], stored[1], stored[2]);
    /* The middle of the image; where that is larger than the image, with zeros around it. */
    int64_t top = (stored[0] - input[0]) / 2, left = (stored[1] - input[1]) / 2;
    struct margin margin = {-top, input[0] + top - stored[0], -left, input[1] + left - stored[1], false};
    if (margin.top || margin.bottom || margin.left || margin.right) {
        tr_text_add(text, "        x = F.pad(x, ");
        add_pad(text, &margin);
        tr_text_add(text, ")\n");
    }
    tr_text_add(text, "        return x * ");
    add_per_channel(text, &job->input.scale);
    bool shifted = job->input.shift.count > 1 || job->input.shift.item[0] != 0;
    if (shifted) {
        tr_text_add(text, " + ");
        add_per_channel(text, &job->input.shift);
    }
    tr_text_add(text, "\n\n");
}

/* Whether a later layer adds the output of layer `i`. */
static bool is_kept(const struct tr_model *model, int i)
{
    for (int k = i + 1; k < model->layer_count; k++)
        if (model->layers[k].input_count == 2 && model->layers[k].input[1] == i) return true;
    return false;
}

static bool keeps_any(const struct tr_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (is_kept(model, i)) return true;
    return false;
}

static void add_forward(struct module *module)
{
    const struct tr_model *model = module->model;
    const int64_t *input = model->input.size;
    struct tr_text *text = &module->text;
    if (model->input.sequence)
        tr_text_add(text, "    def forward(self, tokens, lengths):\n"
                          "        \"\"\"tokens int64 [batch, time], behind its end each example has any "
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
    for (int i = 0; i < model->layer_count; i++) {
        const struct tr_layer *layer = &model->layers[i];
        tr_text_add(text, "        x = ");
        rule_of(layer)->call(layer, text);
        tr_text_add(text, "\n");
        if (!is_kept(model, i)) continue;
        tr_text_add(text, "        kept[");
        tr_text_add_quoted(text, layer->name);
        tr_text_add(text, "] = x\n");
    }
    tr_text_add(text, "        return x\n");
}

tr_status tr_export_torch(const struct tr_export *what, const char *path)
{
    struct module module = {what, what->job->model, TR_TEXT_INIT};
    struct tr_layout_list list;
    char *text;
    /* Says which networks there are modules for. */
    TR_TRY(tr_layout_list_make(module.model, TR_LAYOUT_TORCH, &list));
    tr_layout_list_free(&list);
    for (int i = 0; i < module.model->layer_count; i++)
        if (!rule_of(&module.model->layers[i]))
            return tr_fail(TR_EUNSUPPORTED, "%s: layer \"%s\": there is no module of PyTorch for %s",
                           module.model->layers[i].where, module.model->layers[i].name,
                           module.model->layers[i].class->name);
    add_head(&module);
    add_init(&module);
    add_prepare(&module);
    add_forward(&module);
    TR_TRY(tr_text_finish(&module.text, &text));
    tr_status status = tr_file_write_atomic(NULL, path, text, strlen(text));
    tr_free(text);
    return status;
}
