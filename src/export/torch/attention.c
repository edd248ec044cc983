/* Attention as PyTorch source: nn.MultiheadAttention, or where the width is its own or positions turn, which
 * that module cannot do, a class with tensors of the same names and shapes that the source brings along. */
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

static bool is_multihead(const struct tr_layer *layer)
{
    return width_of(layer) == tr_shape_count(&layer->in[0]) && rotary_of(layer) == 0;
}

/* The angles are taken in float64, as here: late tokens turn far. */
static const char attention_class[] =
    "class Attention(nn.Module):\n"
    "    \"\"\"nn.MultiheadAttention of a token to others, with a width of its own for queries, keys and values,\n"
    "    and, where there is a base, queries and keys that turn with their place (rotary positions).\"\"\"\n\n"
    "    def __init__(self, size, heads, width, base=0.0, dropout=0.0, bias=True):\n"
    "        super().__init__()\n"
    "        self.heads, self.base, self.dropout = heads, base, dropout\n"
    "        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, size))\n"
    "        self.register_parameter(\"in_proj_bias\", nn.Parameter(torch.zeros(3 * width)) if bias else None)\n"
    "        self.out_proj = nn.Linear(width, size, bias=bias)\n"
    "        nn.init.xavier_uniform_(self.in_proj_weight)\n\n"
    "    def turn(self, x):\n"
    "        half = x.shape[-1] // 2\n"
    "        speed = self.base ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)\n"
    "        angle = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)[:, None] * speed\n"
    "        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)\n"
    "        a, b = x[..., :half], x[..., half:]\n"
    "        return torch.cat((c * a - s * b, s * a + c * b), -1)\n\n"
    "    def forward(self, x, lengths, causal):\n"
    "        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).unflatten(-1, (3, self.heads, -1))\n"
    "        q, k, v = parts.permute(2, 0, 3, 1, 4)\n"
    "        if self.base:\n"
    "            q, k = self.turn(q), self.turn(k)\n"
    "        seen = torch.arange(x.shape[1], device=x.device) < lengths[:, None, None, None]\n"
    "        if causal:\n"
    "            seen = seen & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()\n"
    "        dropout = self.dropout if self.training else 0.0\n"
    "        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=dropout)\n"
    "        return self.out_proj(y.transpose(1, 2).flatten(2))\n";

const char *tr_torch_attention_class(const struct tr_layer *layer)
{
    return is_multihead(layer) ? NULL : attention_class;
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
    tr_text_addf(text, "%s%s)", layer->parameter_count > 2 ? "" : ", bias=False",
                 multihead ? ", batch_first=True" : "");
}

/* What is masked: tokens behind the end of their example, and those to come. */
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
