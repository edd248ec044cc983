/* The PyTorch source of each class of layer: made in __init__(), called in forward(). */
#include "export/torch/layers.h"

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

/* A JSON string is a Python one, too. */
void tr_torch_add_member(struct tr_text *text, const char *name)
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

/* ---- making the layers ---- */

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

static void make_position(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.Embedding(%" PRId64 ", %" PRId64 ")",
                 *(const int64_t *)tr_layer_option(layer, "length"), tr_shape_count(&layer->out));
}

static void make_lstm(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.LSTM(%" PRId64 ", %" PRId64 ", batch_first=True)", tr_shape_count(&layer->in[0]),
                 layer->out.size[0]);
}

static void make_gru(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.GRU(%" PRId64 ", %" PRId64 ", batch_first=True)", tr_shape_count(&layer->in[0]),
                 layer->out.size[0]);
}

static void make_bidirectional(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.%s(%" PRId64 ", %" PRId64 ", batch_first=True, bidirectional=True)",
                 layer->parameter_count == 8 ? "GRU" : "LSTM", tr_shape_count(&layer->in[0]),
                 layer->out.size[0] / 2);
}

static int64_t kernel_of(const struct tr_layer *layer)
{
    return *(const int64_t *)tr_layer_option(layer, "kernel");
}

static int64_t dilation_of(const struct tr_layer *layer)
{
    return *(const int64_t *)tr_layer_option(layer, "dilation");
}

static void make_conv1d(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.Conv1d(%" PRId64 ", %" PRId64 ", %" PRId64, tr_shape_count(&layer->in[0]),
                 layer->out.size[0], kernel_of(layer));
    const int64_t stride = *(const int64_t *)tr_layer_option(layer, "stride");
    if (stride > 1) tr_text_addf(text, ", stride=%" PRId64, stride);
    if (dilation_of(layer) > 1) tr_text_addf(text, ", dilation=%" PRId64, dilation_of(layer));
    tr_torch_add_groups(layer, text);
    tr_text_add(text, layer->parameter_count > 1 ? ")" : ", bias=False)");
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

static const char pixel_norm_class[] =
    "class PixelNorm(nn.LayerNorm):\n"
    "    \"\"\"Normalizes the channels of each pixel, [batch, channels, height, width].\"\"\"\n"
    "\n"
    "    def forward(self, x):\n"
    "        return super().forward(x.movedim(1, -1)).movedim(-1, 1)\n";

/* The choices of `per` count from that of whole examples. */
static bool is_of_pixels(const struct tr_layer *layer)
{
    return strcmp(layer->class->name, "layer_norm") == 0 &&
           *(const int32_t *)tr_layer_option(layer, "per") != 0;
}

static const char *needs_norm(const struct tr_layer *layer)
{
    return is_of_pixels(layer) ? pixel_norm_class : NULL;
}

/* nn.LayerNorm or nn.RMSNorm over all that an example or token has. */
static void make_norm(const struct tr_layer *layer, struct tr_text *text)
{
    const int64_t *size = layer->out.size;
    tr_text_add(text, strcmp(layer->class->name, "rms_norm") == 0 ? "nn.RMSNorm("
                      : is_of_pixels(layer)                       ? "PixelNorm("
                                                                  : "nn.LayerNorm(");
    if (is_of_pixels(layer))
        tr_text_addf(text, "%" PRId64 ", eps=", size[2]);
    else if (layer->out.rank == 3)
        tr_text_addf(text, "(%" PRId64 ", %" PRId64 ", %" PRId64 "), eps=", size[2], size[0], size[1]);
    else
        tr_text_addf(text, "%" PRId64 ", eps=", tr_shape_count(&layer->out));
    tr_torch_add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ")");
}

static void make_group_norm(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.GroupNorm(%" PRId64 ", %" PRId64 ", eps=",
                 *(const int64_t *)tr_layer_option(layer, "groups"), layer->out.size[layer->out.rank - 1]);
    tr_torch_add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ")");
}

static void make_instance_norm(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text, "nn.InstanceNorm2d(%" PRId64 ", eps=", layer->out.size[2]);
    tr_torch_add_float(text, float_option(layer, "epsilon"));
    tr_text_add(text, ", affine=True)");
}

static const char stochastic_depth_class[] =
    "class StochasticDepth(nn.Module):\n"
    "    \"\"\"Leaves out its input for a share of the examples while it trains.\"\"\"\n"
    "\n"
    "    def __init__(self, rate):\n"
    "        super().__init__()\n"
    "        self.rate = rate\n"
    "\n"
    "    def forward(self, x):\n"
    "        if not self.training:\n"
    "            return x\n"
    "        kept = torch.rand([len(x)] + [1] * (x.dim() - 1), device=x.device) >= self.rate\n"
    "        return x * kept / (1 - self.rate)\n";

static const char *needs_stochastic_depth(const struct tr_layer *layer)
{
    (void)layer;
    return stochastic_depth_class;
}

static void make_stochastic_depth(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "StochasticDepth(");
    tr_torch_add_float(text, float_option(layer, "rate"));
    tr_text_add(text, ")");
}

static void make_dropout(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "nn.Dropout(");
    tr_torch_add_float(text, float_option(layer, "rate"));
    tr_text_add(text, ")");
}

/* ---- calling them ---- */

const char *tr_torch_open_activation(const struct tr_layer *layer, struct tr_text *text)
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

void tr_torch_close_activation(const struct tr_layer *layer, const char *end, struct tr_text *text)
{
    tr_text_add(text, end);
    if (strcmp(end, ", ") != 0) return;
    tr_torch_add_float(text, float_option(layer, "slope"));
    tr_text_add(text, ")");
}

static void call_dense(const struct tr_layer *layer, struct tr_text *text)
{
    const char *end = tr_torch_open_activation(layer, text);
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, layer->in[0].rank == 3 ? "(torch.flatten(x, 1))" : "(x)");
    tr_torch_close_activation(layer, end, text);
}

static void call_plain(const struct tr_layer *layer, struct tr_text *text)
{
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(x)");
}

/* Tokens one by one, or all positions of an image. */
static void call_group_norm(const struct tr_layer *layer, struct tr_text *text)
{
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, layer->in[0].sequence ? "(x.flatten(0, 1)).view_as(x)" : "(x)");
}

/* x + position1(torch.arange(x.shape[1]).clamp(max=63)) */
static void call_position(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "x + ");
    tr_torch_add_member(text, layer->name);
    tr_text_addf(text, "(torch.arange(x.shape[1], device=x.device).clamp(max=%" PRId64 "))",
                 *(const int64_t *)tr_layer_option(layer, "length") - 1);
}

static void call_lstm(const struct tr_layer *layer, struct tr_text *text)
{
    call_plain(layer, text);
    tr_text_add(text, "[0]");
}

/* Which tokens are inside of their example. */
#define INSIDE "torch.arange(x.shape[1], device=x.device)[None, :, None] < lengths[:, None, None]"

static void call_bidirectional(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "nn.utils.rnn.pad_packed_sequence(");
    tr_torch_add_member(text, layer->name);
    tr_text_add(text, "(nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, "
                      "enforce_sorted=False))[0], batch_first=True, total_length=x.shape[1])[0]");
}

static void call_conv1d(const struct tr_layer *layer, struct tr_text *text)
{
    int64_t reach = (kernel_of(layer) - 1) * dilation_of(layer);
    int64_t before = *(const bool *)tr_layer_option(layer, "causal") ? reach : reach / 2;
    const char *end = tr_torch_open_activation(layer, text);
    tr_torch_add_member(text, layer->name);
    tr_text_addf(text,
                 "(F.pad((x * (" INSIDE ")).transpose(1, 2), (%" PRId64 ", %" PRId64 "))).transpose(1, 2)",
                 before, reach - before);
    tr_torch_close_activation(layer, end, text);
}

static void call_first(const struct tr_layer *layer, struct tr_text *text)
{
    (void)layer;
    tr_text_add(text, "x[:, 0]");
}

static void call_last(const struct tr_layer *layer, struct tr_text *text)
{
    (void)layer;
    tr_text_add(text, "x[torch.arange(len(x), device=x.device), lengths - 1]");
}

static const char *join_sum(const struct tr_layer *layer, int place)
{
    return place > 0 && place < layer->input_count ? " + " : "";
}

static const char *join_products(const struct tr_layer *layer, int place)
{
    const bool last = place == layer->input_count;
    const int before = place - 1;
    const bool spreads = before >= 0 && layer->out.rank == 3 && layer->in[before].rank == 1;
    if (last) return spreads ? "[:, :, None, None]" : "";
    return place == 0 ? "" : spreads ? "[:, :, None, None] * " : " * ";
}

static const char *join_parts(const struct tr_layer *layer, int place)
{
    if (place == 0) return "torch.cat((";
    if (place < layer->input_count) return ", ";
    return layer->out.rank == 3 ? "), 1)" : "), -1)";
}

/* Over the pixels of an image, or over the tokens that an example has. */
static void call_global(const struct tr_layer *layer, struct tr_text *text)
{
    bool max = strcmp(layer->class->name, "global_max_pool") == 0;
    if (!layer->in[0].sequence)
        tr_text_add(text, max ? "x.amax((2, 3))" : "x.mean((2, 3))");
    else if (max)
        tr_text_add(text, "x.masked_fill(torch.arange(x.shape[1], device=x.device)[None, :, None] >= "
                          "lengths[:, None, None], -torch.inf).amax(1)");
    else
        tr_text_add(text, "(x * (torch.arange(x.shape[1], device=x.device)[None, :, None] < "
                          "lengths[:, None, None])).sum(1) / lengths[:, None]");
}

static void call_flatten(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, layer->in[0].rank == 3 ? "torch.flatten(x, 1)" : "x");
}

/* Numbers of an image lie channels last. */
static void call_reshape(const struct tr_layer *layer, struct tr_text *text)
{
    const int64_t *size = layer->out.size;
    tr_text_addf(text, "x.reshape(-1, %" PRId64 ", %" PRId64 ", %" PRId64 ").permute(0, 3, 1, 2)", size[0],
                 size[1], size[2]);
}

static void call_slice(const struct tr_layer *layer, struct tr_text *text)
{
    int64_t begin = *(const int64_t *)tr_layer_option(layer, "begin");
    tr_text_addf(text, "x[..., %" PRId64 ":%" PRId64 "]", begin, begin + layer->out.size[0]);
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

/* Functions of torch with the same arguments. */
static void call_function(const struct tr_layer *layer, struct tr_text *text)
{
    static const char *const functions[][2] = {
        {"hard_swish", "F.hardswish"}, {"relu", "F.relu"}, {"relu6", "F.relu6"},
        {"sigmoid", "torch.sigmoid"},  {"silu", "F.silu"}, {"tanh", "torch.tanh"}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(layer->class->name, functions[i][0]) == 0) tr_text_addf(text, "%s(x)", functions[i][1]);
}

static void call_gelu(const struct tr_layer *layer, struct tr_text *text)
{
    bool exact = *(const int32_t *)tr_layer_option(layer, "approximate") == 0;
    tr_text_add(text, exact ? "F.gelu(x)" : "F.gelu(x, approximate=\"tanh\")");
}

/* The places of an image, row by row. */
static void call_tokens(const struct tr_layer *layer, struct tr_text *text)
{
    (void)layer;
    tr_text_add(text, "x.flatten(2).transpose(1, 2)");
}

/* F.linear(x, self.words.weight) */
static void call_unembedding(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_add(text, "F.linear(x, ");
    tr_torch_add_member(text, *(char *const *)tr_layer_option(layer, "embedding"));
    tr_text_add(text, ".weight)");
}

static const struct tr_torch_layer rules[] = {
    {"add", NULL, NULL, join_sum},
    {"attention", tr_torch_make_attention, tr_torch_call_attention, .needs = tr_torch_attention_class},
    {"average_pool", tr_torch_make_pool, tr_torch_call_pool},
    {"batch_norm", make_batch_norm, call_plain},
    {"bidirectional", make_bidirectional, call_bidirectional},
    {"concat", NULL, NULL, join_parts},
    {"conv", tr_torch_make_conv, tr_torch_call_conv},
    {"conv1d", make_conv1d, call_conv1d},
    {"conv_transpose", tr_torch_make_conv_transpose, tr_torch_call_conv_transpose},
    {"cross_attention", tr_torch_make_cross_attention, tr_torch_call_cross_attention,
     tr_torch_join_cross_attention, tr_torch_cross_attention_class},
    {"dense", make_dense, call_dense},
    {"dropout", make_dropout, call_plain},
    {"embedding", make_embedding, call_plain},
    {"first", NULL, call_first},
    {"flatten", NULL, call_flatten},
    {"gelu", NULL, call_gelu},
    {"global_average_pool", NULL, call_global},
    {"global_max_pool", NULL, call_global},
    {"group_norm", make_group_norm, call_group_norm},
    {"gru", make_gru, call_lstm},
    {"hard_swish", NULL, call_function},
    {"instance_norm", make_instance_norm, call_plain},
    {"last", NULL, call_last},
    {"layer_norm", make_norm, call_plain, .needs = needs_norm},
    {"leaky_relu", NULL, call_leaky_relu},
    {"lstm", make_lstm, call_lstm},
    {"max_pool", tr_torch_make_pool, tr_torch_call_pool},
    {"multiply", NULL, NULL, join_products},
    {"position", make_position, call_position},
    {"relu", NULL, call_function},
    {"relu6", NULL, call_function},
    {"reshape", NULL, call_reshape},
    {"rms_norm", make_norm, call_plain},
    {"sigmoid", NULL, call_function},
    {"silu", NULL, call_function},
    {"slice", NULL, call_slice},
    {"softmax", NULL, call_softmax},
    {"stochastic_depth", make_stochastic_depth, call_plain, .needs = needs_stochastic_depth},
    {"tanh", NULL, call_function},
    {"tokens", NULL, call_tokens},
    {"unembedding", NULL, call_unembedding},
    {"upsample", tr_torch_make_upsample, call_plain},
};

const struct tr_torch_layer *tr_torch_layer_of(const struct tr_layer *layer)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(rules[i].class, layer->class->name) == 0) return &rules[i];
    return NULL;
}
