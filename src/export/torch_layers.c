/* How each class of layer is written in PyTorch: made in __init__(), called in forward(). */
#include "export/torch_layers.h"

#include <inttypes.h>
#include <string.h>

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

bool tr_torch_is_identifier(const char *name)
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
    if (tr_torch_is_identifier(name)) {
        tr_text_addf(text, "self.%s", name);
    } else {
        tr_text_add(text, "getattr(self, ");
        tr_text_add_quoted(text, name);
        tr_text_add(text, ")");
    }
}

void tr_torch_add_float(struct tr_text *text, float value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_add(text, tr_text_from_float(value, number));
}

static float float_option(const struct tr_layer *layer, const char *key)
{
    return *(const float *)tr_layer_option(layer, key);
}

/* ---- windows ---- */

static int64_t positive(int64_t value)
{
    return value > 0 ? value : 0;
}

static struct tr_torch_margin margin_of(const struct tr_window *w, bool pool)
{
    int64_t extent_h = (int64_t)(w->kernel_h - 1) * w->dilation_h + 1,
            extent_w = (int64_t)(w->kernel_w - 1) * w->dilation_w + 1;
    struct tr_torch_margin margin = {
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

static bool is_empty(const struct tr_torch_margin *margin)
{
    return margin->top + margin->bottom + margin->left + margin->right == 0;
}

static void add_pair(struct tr_text *text, const char *key, int64_t a, int64_t b, int64_t usual)
{
    if (a != usual || b != usual) tr_text_addf(text, ", %s=(%" PRId64 ", %" PRId64 ")", key, a, b);
}

void tr_torch_add_margin(struct tr_text *text, const struct tr_torch_margin *margin)
{
    tr_text_addf(text, "(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", margin->left, margin->right,
                 margin->top, margin->bottom);
}

/* ---- making the layers ---- */

static void make_conv(const struct tr_layer *layer, struct tr_text *text)
{
    const struct tr_window *window = tr_layer_window(layer);
    struct tr_torch_margin margin = margin_of(window, false);
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
    struct tr_torch_margin margin = margin_of(window, true);
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
    tr_torch_add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ", momentum=");
    tr_torch_add_float(text, float_option(layer, "momentum"));
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
    tr_torch_add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ")");
}

static void make_dropout(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "nn.Dropout(");
    tr_torch_add_float(text, float_option(layer, "rate"));
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
    tr_torch_add_float(text, float_option(layer, "slope"));
    tr_text_add(text, ")");
}

/* The input of a window: x, or x with a margin of `value`. */
static void add_padded(struct tr_text *text, const struct tr_torch_margin *margin, const char *value)
{
    if (margin->inside || is_empty(margin)) {
        tr_text_add(text, "x");
        return;
    }
    tr_text_add(text, "F.pad(x, ");
    tr_torch_add_margin(text, margin);
    tr_text_addf(text, "%s)", value);
}

static void call_conv(const struct tr_layer *layer, struct tr_text *text)
{
    struct tr_torch_margin margin = margin_of(tr_layer_window(layer), false);
    const char *end = open_activation(layer, text);
    add_member(text, layer->name);
    tr_text_add(text, "(");
    add_padded(text, &margin, "");
    tr_text_add(text, ")");
    close_activation(layer, end, text);
}

static void call_pool(const struct tr_layer *layer, struct tr_text *text)
{
    struct tr_torch_margin margin = margin_of(tr_layer_window(layer), true);
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
    tr_torch_add_margin(text, &margin);
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
    tr_torch_add_float(text, float_option(layer, "slope"));
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

static const struct tr_torch_layer rules[] = {
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

const struct tr_torch_layer *tr_torch_layer_of(const struct tr_layer *layer)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].class, layer->class->name) == 0) return &rules[i];
    return NULL;
}
