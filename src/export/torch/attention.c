/* Attention as PyTorch source: nn.MultiheadAttention, or a class with tensors of the same names that the
 * source includes. The class is needed for a separate width, heads that share keys, a window, a missing
 * bias or rotary positions, which the module lacks.
 */
#include "export/torch/layers.h"

#include <inttypes.h>

static int64_t width_of(const struct tr_layer *layer)
{
    return *(const int64_t *)tr_layer_option(layer, "width");
}

static float rotary_of(const struct tr_layer *layer)
{
    return *(const float *)tr_layer_option(layer, "rotary");
}

static int64_t integer_of(const struct tr_layer *layer, const char *key)
{
    return *(const int64_t *)tr_layer_option(layer, key);
}

static double number_of(const struct tr_layer *layer, const char *key)
{
    return *(const double *)tr_layer_option(layer, key);
}

static bool is_multihead(const struct tr_layer *layer)
{
    return width_of(layer) == tr_shape_count(&layer->in[0]) && rotary_of(layer) == 0 &&
           integer_of(layer, "kv_heads") == integer_of(layer, "heads") && integer_of(layer, "window") == 0 &&
           layer->parameter_count != 3;
}

/* The angles are computed in float64, as here: late tokens have large ones. */
static const char attention_class[] =
    "class Attention(nn.Module):\n"
    "    \"\"\"nn.MultiheadAttention of a token to others, with a width of its own for queries, keys and "
    "values,\n"
    "    heads of keys and values that heads of queries may share, tokens less than `window` places away (0: "
    "all)\n"
    "    and, where there is a base, queries and keys that turn with their place (rotary "
    "positions).\"\"\"\n\n"
    "    def __init__(self, size, heads, width, base=0.0, dropout=0.0, bias=True, kv_heads=None, window=0,\n"
    "                 pairs=False, factor=1.0, original=0.0, low=1.0, high=4.0, out_bias=True):\n"
    "        super().__init__()\n"
    "        self.heads, self.base, self.dropout = heads, base, dropout\n"
    "        self.kv_heads, self.window, self.pairs = kv_heads or heads, window, pairs\n"
    "        self.factor, self.original, self.low, self.high = factor, original, low, high\n"
    "        self.parts = [width] + 2 * [width // heads * self.kv_heads]\n"
    "        self.in_proj_weight = nn.Parameter(torch.empty(sum(self.parts), size))\n"
    "        zeros = nn.Parameter(torch.zeros(sum(self.parts))) if bias else None\n"
    "        self.register_parameter(\"in_proj_bias\", zeros)\n"
    "        self.out_proj = nn.Linear(width, size, bias=bias and out_bias)\n"
    "        nn.init.xavier_uniform_(self.in_proj_weight)\n\n"
    "    def speed(self, half, device):\n"
    "        speed = self.base ** (-torch.arange(half, dtype=torch.float64, device=device) / half)\n"
    "        if not self.original:\n"
    "            return speed / self.factor\n"
    "        turns = self.original * speed / (2 * torch.pi)\n"
    "        share = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)\n"
    "        return (1 - share) * speed / self.factor + share * speed\n\n"
    "    def turn(self, x):\n"
    "        half = x.shape[-1] // 2\n"
    "        speed = self.speed(half, x.device)\n"
    "        angle = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)[:, None] * speed\n"
    "        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)\n"
    "        if self.pairs:\n"
    "            a, b = x[..., ::2], x[..., 1::2]\n"
    "            return torch.stack((c * a - s * b, s * a + c * b), -1).flatten(-2)\n"
    "        a, b = x[..., :half], x[..., half:]\n"
    "        return torch.cat((c * a - s * b, s * a + c * b), -1)\n\n"
    "    def forward(self, x, lengths, causal):\n"
    "        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).split(self.parts, -1)\n"
    "        heads = self.heads, self.kv_heads, self.kv_heads\n"
    "        q, k, v = (part.unflatten(-1, (n, -1)).transpose(1, 2) for part, n in zip(parts, heads))\n"
    "        if self.base:\n"
    "            q, k = self.turn(q), self.turn(k)\n"
    "        seen = torch.arange(x.shape[1], device=x.device) < lengths[:, None, None, None]\n"
    "        if causal:\n"
    "            seen = seen & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()\n"
    "        if self.window:\n"
    "            place = torch.arange(x.shape[1], device=x.device)\n"
    "            near = (place[:, None] - place).abs() < self.window\n"
    "            seen = (seen | (place >= lengths[:, None])[:, None, :, None]) & near\n"
    "            if causal:\n"
    "                seen = seen & near.tril()\n"
    "        k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))\n"
    "        dropout = self.dropout if self.training else 0.0\n"
    "        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropout)\n"
    "        return self.out_proj(y.transpose(1, 2).flatten(2))\n";

const char *tr_torch_attention_class(const struct tr_layer *layer)
{
    return is_multihead(layer) ? NULL : attention_class;
}

static void add_number(struct tr_text *text, const char *name, double value)
{
    char number[TR_TEXT_NUMBER_SIZE];
    tr_text_addf(text, ", %s=%s", name, tr_text_from_double(value, number));
}

/* Options that differ from the defaults of the class. */
static void add_options(const struct tr_layer *layer, struct tr_text *text)
{
    const int64_t kv_heads = integer_of(layer, "kv_heads"), window = integer_of(layer, "window");
    if (kv_heads != integer_of(layer, "heads")) tr_text_addf(text, ", kv_heads=%" PRId64, kv_heads);
    if (window > 0) tr_text_addf(text, ", window=%" PRId64, window);
    if (layer->parameter_count == 3) tr_text_add(text, ", out_bias=False");
    if (*(const int32_t *)tr_layer_option(layer, "rotary_style") == 1) tr_text_add(text, ", pairs=True");
    if (number_of(layer, "rotary_factor") > 1) add_number(text, "factor", number_of(layer, "rotary_factor"));
    if (!(number_of(layer, "rotary_original") > 0)) return;
    add_number(text, "original", number_of(layer, "rotary_original"));
    add_number(text, "low", number_of(layer, "rotary_low"));
    add_number(text, "high", number_of(layer, "rotary_high"));
}

void tr_torch_make_attention(const struct tr_layer *layer, struct tr_text *text)
{
    bool multihead = is_multihead(layer);
    tr_text_addf(text, "%s(%" PRId64 ", %" PRId64, multihead ? "nn.MultiheadAttention" : "Attention",
                 tr_shape_count(&layer->out), *(const int64_t *)tr_layer_option(layer, "heads"));
    if (!multihead) {
        tr_text_addf(text, ", %" PRId64 ", base=", width_of(layer));
        tr_torch_add_float(text, rotary_of(layer));
    }
    tr_text_add(text, ", dropout=");
    tr_torch_add_float(text, *(const float *)tr_layer_option(layer, "dropout"));
    if (layer->parameter_count == 2) tr_text_add(text, ", bias=False");
    if (multihead)
        tr_text_add(text, ", batch_first=True");
    else
        add_options(layer, text);
    tr_text_add(text, ")");
}

/* What is masked: tokens after the end of their example, and those to come. */
void tr_torch_call_attention(const struct tr_layer *layer, struct tr_text *text)
{
    bool causal = *(const bool *)tr_layer_option(layer, "causal");
    tr_torch_add_member(text, layer->name);
    if (!is_multihead(layer)) {
        tr_text_addf(text, "(x, lengths, causal=%s)", causal ? "True" : "False");
        return;
    }
    tr_text_add(text, "(x, x, x, need_weights=False, key_padding_mask=torch.arange(x.shape[1], "
                      "device=x.device) >= lengths[:, None]");
    if (causal)
        tr_text_add(text, ", attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, "
                          "device=x.device).triu(1)");
    tr_text_add(text, ")[0]");
}

/* ---- with two inputs ---- */

static const char cross_attention_class[] =
    "class CrossAttention(nn.Module):\n"
    "    \"\"\"Attention of the tokens of x to those of the memory, of which heads of keys and values may be "
    "shared.\"\"\"\n\n"
    "    def __init__(self, size, memory, heads, width, kv_heads, dropout=0.0, bias=True):\n"
    "        super().__init__()\n"
    "        self.heads, self.kv_heads, self.dropout = heads, kv_heads, dropout\n"
    "        self.query = nn.Linear(size, width, bias=bias)\n"
    "        self.memory = nn.Linear(memory, 2 * width // heads * kv_heads, bias=bias)\n"
    "        self.out_proj = nn.Linear(width, size, bias=bias)\n\n"
    "    def forward(self, x, memory, lengths):\n"
    "        parts = self.query(x), *self.memory(memory).chunk(2, -1)\n"
    "        heads = self.heads, self.kv_heads, self.kv_heads\n"
    "        q, k, v = (part.unflatten(-1, (n, -1)).transpose(1, 2) for part, n in zip(parts, heads))\n"
    "        k, v = (part.repeat_interleave(self.heads // self.kv_heads, 1) for part in (k, v))\n"
    "        seen = torch.arange(memory.shape[1], device=x.device) < lengths[:, None, None, None]\n"
    "        dropout = self.dropout if self.training else 0.0\n"
    "        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropout)\n"
    "        return self.out_proj(y.transpose(1, 2).flatten(2))\n";

const char *tr_torch_cross_attention_class(const struct tr_layer *layer)
{
    (void)layer;
    return cross_attention_class;
}

void tr_torch_make_cross_attention(const struct tr_layer *layer, struct tr_text *text)
{
    tr_text_addf(text,
                 "CrossAttention(%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", dropout=",
                 tr_shape_count(&layer->in[0]), tr_shape_count(&layer->in[1]), integer_of(layer, "heads"),
                 width_of(layer), integer_of(layer, "kv_heads"));
    tr_torch_add_float(text, *(const float *)tr_layer_option(layer, "dropout"));
    tr_text_add(text, layer->parameter_count == 3 ? ", bias=False)" : ")");
}

void tr_torch_call_cross_attention(const struct tr_layer *layer, struct tr_text *text)
{
    tr_torch_add_member(text, layer->name);
}

const char *tr_torch_join_cross_attention(const struct tr_layer *layer, int place)
{
    if (place == layer->input_count) return ", lengths)";
    return place == 0 ? "(" : ", ";
}
