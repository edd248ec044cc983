/* PyTorch modules line by line: what forward() computes, in PyTorch's words, for layers of every kind of
 * input; names that Python does not take; probabilities. */
#include "export/torch/layers.h"
#include "export/torch/torch_module.h"
#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define IMAGE(shape)                                                                                         \
    "    def forward(self, x):\n        \"\"\"x float32 [batch, " shape "] (channels, height, "              \
    "width).\"\"\"\n"
#define ROW(size) "    def forward(self, x):\n        \"\"\"x float32 [batch, " size "].\"\"\"\n"
#define TEXT                                                                                                 \
    "    def forward(self, tokens, lengths):\n        \"\"\"tokens int64 [batch, time], after its end each " \
    "example has any token; lengths int64 [batch].\"\"\"\n        x = tokens\n"
#define KEPT   "        kept = {}\n"
#define END    "        return x\n"
#define INSIDE "torch.arange(x.shape[1], device=x.device)[None, :, None] < lengths[:, None, None]"

/* From forward() to the end of the file, and lines before it. */
static const struct {
    struct network network;
    const char *before, *forward;
} cases[] = {
    {{"images", "2x3x4", 0, "layers: [softmax, flatten, tanh, softmax, flatten, {dense: 2}]"},
     "        self.dense1 = nn.Linear(24, 2)\n\n",
     IMAGE("4, 2, 3") "        x = torch.softmax(x, 1)\n        x = torch.flatten(x, 1)\n"
                      "        x = torch.tanh(x)\n        x = torch.softmax(x, -1)\n        x = x\n"
                      "        x = self.dense1(x)\n" END},
    {{"a dense layer of an image", "2x3x4", 0, "layers: [{dense: {units: 5, activation: relu}}, {dense: 2}]"},
     "        self.dense1 = nn.Linear(24, 5)\n        self.dense2 = nn.Linear(5, 2)\n\n",
     IMAGE(
         "4, 2, 3") "        x = F.relu(self.dense1(torch.flatten(x, 1)))\n        x = self.dense2(x)\n" END},
    {{"activations", "4", 0,
      "layers: [{dense: {units: 4, activation: leaky_relu, slope: 0.25}}, {dense: {units: 4, activation: "
      "sigmoid}}, "
      "{dense: {units: 4, activation: tanh}}, {leaky_relu: 0.5}, relu, relu6, sigmoid, silu, hard_swish, "
      "gelu, "
      "{gelu: {approximate: tanh}}]"},
     "        self.dense3 = nn.Linear(4, 4)\n\n",
     ROW("4") "        x = F.leaky_relu(self.dense1(x), 0.25)\n        x = torch.sigmoid(self.dense2(x))\n"
              "        x = torch.tanh(self.dense3(x))\n        x = F.leaky_relu(x, 0.5)\n"
              "        x = F.relu(x)\n        x = F.relu6(x)\n        x = torch.sigmoid(x)\n"
              "        x = F.silu(x)\n        x = F.hardswish(x)\n        x = F.gelu(x)\n"
              "        x = F.gelu(x, approximate=\"tanh\")\n" END},
    {{"parts of a row", "9", 0,
      "layers: [{slice: {begin: 2, size: 5}}, {slice: {from: input, begin: 0, size: 5, name: other}}, "
      "{add: {from: [slice1, other, slice1], name: sum}}, {dense: 2}]"},
     "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
     "        self.dense1 = nn.Linear(5, 2)\n\n",
     ROW("9") KEPT "        kept[\"input\"] = x\n        x = x[..., 2:7]\n        kept[\"slice1\"] = x\n"
                   "        x = kept[\"input\"]\n        x = x[..., 0:5]\n"
                   "        x = kept[\"slice1\"] + x + kept[\"slice1\"]\n        x = self.dense1(x)\n" END},
    {{"names", "4", 0,
      "layers: [{dense: {units: 4, name: \"2nd\"}}, {tanh: {name: a-b}}, {dense: {units: 2, name: class}}, "
      "{dense: {units: 3, name: _x9}}]"},
     "        self.add_module(\"2nd\", nn.Linear(4, 4))\n        self.add_module(\"class\", nn.Linear(4, "
     "2))\n"
     "        self._x9 = nn.Linear(2, 3)\n\n",
     ROW("4") "        x = getattr(self, \"2nd\")(x)\n        x = torch.tanh(x)\n"
              "        x = getattr(self, \"class\")(x)\n        x = self._x9(x)\n" END},
    {{"shared", "tokens", 7,
      "layers: [{embedding: {width: 6, name: words}}, {dense: {units: 6, use_bias: false, name: a}}, "
      "{dense: {units: 6, use_bias: false, share: a, name: b}}, last, {dense: 2}]"},
     "        self.words = nn.Embedding(7, 6)\n        self.a = nn.Linear(6, 6, bias=False)\n"
     "        self.dense3 = nn.Linear(6, 2)\n\n",
     TEXT
     "        x = self.words(x)\n        x = self.a(x)\n        x = self.a(x)\n"
     "        x = x[torch.arange(len(x), device=x.device), lengths - 1]\n        x = self.dense3(x)\n" END},
    {{"neighbours", "tokens", 7,
      "layers: [{embedding: 6}, {conv1d: {filters: 4, kernel: 4, dilation: 3}}, {conv1d: {filters: 4, "
      "kernel: "
      "3, causal: true, activation: relu}}, {group_norm: {groups: 2}}, first, {dense: 2}]"},
     "        self.conv1d1 = nn.Conv1d(6, 4, 4, dilation=3)\n        self.conv1d2 = nn.Conv1d(4, 4, 3)\n"
     "        self.group_norm1 = nn.GroupNorm(2, 4, eps=1e-05)\n",
     TEXT "        x = self.embedding1(x)\n"
          "        x = self.conv1d1(F.pad((x * (" INSIDE ")).transpose(1, 2), (4, 5))).transpose(1, 2)\n"
          "        x = F.relu(self.conv1d2(F.pad((x * (" INSIDE
          ")).transpose(1, 2), (2, 0))).transpose(1, 2))\n"
          "        x = self.group_norm1(x.flatten(0, 1)).view_as(x)\n"
          "        x = x[:, 0]\n        x = self.dense1(x)\n" END},
    {{"tokens of an image", "2x3x4", 0,
      "layers: [tokens, {attention: 2}, {global_max_pool: {name: most}}, {global_average_pool: {from: "
      "attention1, name: mean}}, {concat: {from: [most, mean]}}, {dense: 2}]"},
     "        self.attention1 = nn.MultiheadAttention(4, 2, dropout=0, batch_first=True)\n"
     "        self.dense1 = nn.Linear(8, 2)\n\n",
     IMAGE("4, 2, 3") KEPT
     "        x = x.flatten(2).transpose(1, 2)\n"
     "        lengths = torch.full((len(x),), 6, device=x.device)\n"
     "        x = self.attention1(x, x, x, need_weights=False, key_padding_mask=torch.arange("
     "x.shape[1], device=x.device) >= lengths[:, None])[0]\n"
     "        kept[\"attention1\"] = x\n"
     "        x = x.masked_fill(torch.arange(x.shape[1], device=x.device)[None, :, None] >= "
     "lengths[:, None, None], -torch.inf).amax(1)\n        kept[\"most\"] = x\n"
     "        x = kept[\"attention1\"]\n"
     "        x = (x * (" INSIDE ")).sum(1) / lengths[:, None]\n"
     "        x = torch.cat((kept[\"most\"], x), -1)\n        x = self.dense1(x)\n" END},
    {{"attention of others", "tokens", 7,
      "layers: [{embedding: {width: 4, name: a}}, {dense: {units: 6, name: b}}, {cross_attention: {from: [a, "
      "b], "
      "heads: 2, kv_heads: 1, use_bias: false, dropout: 0.5, name: c}}, last, {dense: 2}]"},
     "        self.c = CrossAttention(4, 6, 2, 4, 1, dropout=0.5, bias=False)\n",
     TEXT KEPT "        x = self.a(x)\n        kept[\"a\"] = x\n        x = self.b(x)\n"
               "        x = self.c(kept[\"a\"], x, lengths)\n"
               "        x = x[torch.arange(len(x), device=x.device), lengths - 1]\n"
               "        x = self.dense2(x)\n" END},
    {{"steps", "12x1x4", 0,
      "layers: [{tokens: {name: t}}, {conv1d: {filters: 4, kernel: 3, stride: 2}}, {conv1d: {filters: 4, "
      "kernel: 1}}, global_average_pool, {dense: 2}]"},
     "        self.conv1d1 = nn.Conv1d(4, 4, 3, stride=2)\n        self.conv1d2 = nn.Conv1d(4, 4, 1)\n",
     IMAGE("4, 12, 1") "        x = x.flatten(2).transpose(1, 2)\n"
                       "        lengths = torch.full((len(x),), 12, device=x.device)\n"
                       "        x = self.conv1d1(F.pad((x * (" INSIDE
                       ")).transpose(1, 2), (1, 1))).transpose(1, 2)\n"
                       "        lengths = torch.full((len(x),), 6, device=x.device)\n"
                       "        x = self.conv1d2(F.pad((x * (" INSIDE
                       ")).transpose(1, 2), (0, 0))).transpose(1, 2)\n"
                       "        x = (x * (" INSIDE
                       ")).sum(1) / lengths[:, None]\n        x = self.dense1(x)\n" END},
    {{"whole images", "2x3x4", 0, "layers: [global_max_pool, {reshape: [1, 2, 2]}, global_average_pool]"},
     "        super().__init__()\n\n",
     IMAGE("4, 2, 3") "        x = x.amax((2, 3))\n"
                      "        x = x.reshape(-1, 1, 2, 2).permute(0, 3, 1, 2)\n"
                      "        x = x.mean((2, 3))\n" END},
};

static void modules_compute_what_networks_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content module;
        must(torch_module_write(&cases[i].network, scratch_in("net.py"), &module));
        torch_module_expect(&module, cases[i].before);
        const char *forward = strstr(module.data, "    def forward(self, x):\n        \"\"\"x float32");
        if (!forward) forward = strstr(module.data, "    def forward(self, tokens, lengths):");
        assert_non_null(forward);
        if (strcmp(forward, cases[i].forward) != 0)
            fail_msg("%s: there is\n%s\nand should be\n%s", cases[i].network.name, forward, cases[i].forward);
        tr_file_content_free(&module);
    }
}

/* Scores of one loss, of several, and of pixels. */
static void probabilities_are_of_each_loss(void **state)
{
    static const struct {
        struct network network;
        const char *text; /* NULL: there are none */
    } losses[] = {
        {{"classes", "4", 0, "layers: [{dense: 3}]"},
         "    def probabilities(scores):\n"
         "        \"\"\"What forward() gives [..., 3] as probabilities.\"\"\"\n"
         "        return torch.softmax(scores, -1)\n\n    def forward("},
        {{"questions", "4", 0, "layers: [{dense: 3}]\nloss: binary_cross_entropy"},
         "        \"\"\"What forward() gives [..., 3] as probabilities.\"\"\"\n"
         "        return torch.sigmoid(scores)\n\n    def forward("},
        {{"values", "4", 0, "layers: [{dense: 3}]\nloss: mean_squared_error"}, NULL},
        {{"two", "4", 0,
          "layers: [{dense: 5}]\nloss: [{kind: binary_cross_entropy, outputs: 3}, {kind: huber, outputs: "
          "2}]"},
         "        \"\"\"What forward() gives [..., 5] as probabilities, values as they are.\"\"\"\n"
         "        part = torch.split(scores, (3, 2), -1)\n"
         "        return torch.cat((torch.sigmoid(part[0]), part[1]), -1)\n\n    def forward("},
    };
    (void)state;
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        struct tr_file_content module;
        must(torch_module_write(&losses[i].network, scratch_in("net.py"), &module));
        if (losses[i].text)
            torch_module_expect(&module, losses[i].text);
        else
            assert_null(strstr(module.data, "probabilities"));
        tr_file_content_free(&module);
    }
}

/* By the reference of Python's language. */
static void identifiers_are_those_of_python(void **state)
{
    static const char *const keywords[] = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    static const char *const good[] = {"x", "_", "Z", "a0", "_9", "if_", "true", "passes"},
                             *const bad[] = {"", "0", "9a", "a-b", "a b", "a.b", "\xc3\xa9", "a\xc3\xa9"};
    (void)state;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        assert_false(tr_torch_is_identifier(keywords[i]));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(tr_torch_is_identifier(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(tr_torch_is_identifier(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_compute_what_networks_do),
        cmocka_unit_test(probabilities_are_of_each_loss),
        cmocka_unit_test(identifiers_are_those_of_python),
    };
    return cmocka_run_group_tests_name("export.torch_text", tests, scratch_place_make, scratch_place_remove);
}
