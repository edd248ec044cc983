/* PyTorch modules: prepare() takes images as the job does, and its arguments are names that can stand there.
 */
#include "export/torch/torch_module.h"
#include "support/files/npy.h"
#include "support/training.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 4, HEIGHT = 3, WIDTH = 5 };

/* Images of so many channels, with labels. */
static void write_images(const char *name, uint8_t channels)
{
    const uint8_t head[] = {0, 0, 8, 4, 0, 0, 0, ROWS, 0, 0, 0, HEIGHT, 0, 0, 0, WIDTH, 0, 0, 0, channels};
    uint8_t bytes[sizeof head + ROWS * HEIGHT * WIDTH * 3];
    size_t length = sizeof head + (size_t)(ROWS * HEIGHT * WIDTH * channels);
    memcpy(bytes, head, sizeof head);
    for (size_t i = sizeof head; i < length; i++) bytes[i] = (uint8_t)(37 * i);
    must_train(tr_file_write_atomic(NULL, scratch_in(name), bytes, length));
}

/* An array of NumPy, all zeros. */
static void write_zeros(const char *name, const char *type, const char *shape, size_t size)
{
    static const float zeros[ROWS * HEIGHT * WIDTH * 2];
    char rows[64];
    snprintf(rows, sizeof rows, "%d, %s", ROWS, shape);
    npy_write(scratch_in(name), type, rows, zeros, size);
}

/* Trains a job, and reads the module of its network; release with tr_file_content_free(). */
static void module_of(const char *data, const char *input, const char *layers, struct tr_file_content *out)
{
    struct job job;
    struct outcome outcome;
    struct tr_export_settings settings = TR_EXPORT_SETTINGS_INIT;
    tr_exporter *exporter;
    char text[2048], run[SCRATCH_PATH];
    snprintf(text, sizeof text,
             "name: module\ndata: {train: %s}\ninput: %s\nlayers: [%s]\n"
             "optimizer: {rule: sgd, rate: 0.01}\ntrain: {batch: 4, steps: 1}\n",
             data, input, layers);
    must_train(tr_file_write_atomic(NULL, scratch_in("model.yaml"), text, strlen(text)));
    job_begin(&job, scratch_in("model.yaml"));
    job.settings.out = scratch_join(run, scratch_place, "run");
    job_outcome(&job, &outcome);
    if (outcome.status != TR_OK) fail_msg("%s", outcome.message);
    settings.checkpoint = run;
    settings.name = "a \"net\"";
    must_train(tr_exporter_create(&settings, &exporter));
    must_train(tr_exporter_write(exporter, "torch", scratch_in("net.py")));
    tr_exporter_destroy(&exporter);
    must_train(tr_file_read(scratch_in("net.py"), 1 << 20, out));
    scratch_remove(run);
}

#define NUMBERS "{npy: {features: numbers.npy, labels: classes.npy}}"
#define GREY    "{idx: {images: grey.idx, labels: labels.idx}}"
#define TWO     "{idx: {images: two.idx, labels: labels.idx}}"

/* Pixels are multiplied, then shifted where there is a shift: with a number, or with one for each channel. */
static void images_are_scaled_and_shifted(void **state)
{
    (void)state;
    static const struct {
        const char *data, *input, *line;
    } cases[] = {
        {GREY, "{scale: 0.5}", "        x = x * 0.5\n"},
        {GREY, "{scale: 0.5, shift: -2}", "        x = x * 0.5 + -2\n"},
        {TWO, "{scale: 0.5, shift: 0}", "        x = x * 0.5\n"},
        {TWO, "{scale: [0.5, 0.25], shift: [0, 1.5]}",
         "        x = x * torch.tensor([0.5, 0.25], device=x.device).view(-1, 1, 1) + "
         "torch.tensor([0, 1.5], device=x.device).view(-1, 1, 1)\n"},
        /* The middle: left, right, top and bottom of an image of 3 rows and 5 columns. */
        {GREY, "{crop: [2, 5], scale: 1}", "        x = F.pad(x, (0, 0, 0, -1))\n        x = x * 1\n"},
        {GREY, "{crop: [3, 4], scale: 1}", "        x = F.pad(x, (0, -1, 0, 0))\n        x = x * 1\n"},
        {GREY, "{crop: [1, 3], scale: 1}", "        x = F.pad(x, (-1, -1, -1, -1))\n        x = x * 1\n"},
        {GREY, "{crop: [3, 5], scale: 1}",
         "        x = images.permute(0, 3, 1, 2).to(torch.float32)\n        x = x * 1\n"},
        {GREY, "{scale: 2}",
         "What forward() wants, made of bytes [batch, 3, 5, 1] (height, width, channels).\"\"\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content module;
        module_of(cases[i].data, cases[i].input, "flatten, {dense: 2}", &module);
        assert_int_equal(strncmp(module.data, "\"\"\"The network \"a \\\"net\\\"\" as a PyTorch module", 46),
                         0);
        torch_module_expect(&module, "    def prepare(images):\n");
        torch_module_expect(&module, cases[i].line);
        tr_file_content_free(&module);
    }
}

/* Images of numbers come as rows, which prepare() crops and scales only where the model file does. */
static void images_of_numbers_are_rows(void **state)
{
    (void)state;
    struct tr_file_content module;
    char line[160];
    module_of(NUMBERS, "{scale: [0.5, 0.25], shift: 2, crop: [3, 2]}", "flatten, {dense: 2}", &module);
    torch_module_expect(&module, "    def prepare(values):\n");
    snprintf(line, sizeof line,
             "        x = values.to(torch.float32).reshape(-1, %d, %d, 2).permute(0, 3, 1, 2)\n        x = "
             "F.pad(x, ",
             HEIGHT, WIDTH);
    torch_module_expect(&module, line);
    torch_module_expect(&module, "F.pad(x, (-1, -2, 0, 0))\n");
    torch_module_expect(&module, "What forward() wants, made of numbers [batch, 30] of the data.");
    torch_module_expect(&module,
                        "        x = x * torch.tensor([0.5, 0.25], device=x.device).view(-1, 1, 1) + 2\n"
                        "        x = x.permute(0, 2, 3, 1).flatten(1)\n");
    tr_file_content_free(&module);
    module_of(NUMBERS, "{flip: true}", "flatten, {dense: 2}", &module);
    assert_null(strstr(module.data, "def prepare"));
    tr_file_content_free(&module);
}

/* Sources keep their names, but for those that Python or the text of prepare() has taken. */
static void sources_have_names_that_can_be(void **state)
{
    (void)state;
    struct tr_file_content module;
    module_of("{join: {sources: {x: {idx: {images: grey.idx}}, mean: {idx: {images: two.idx}}, "
              "good: " GREY ", if: {idx: {images: grey.idx}}}}}",
              "{scale: 1}",
              "{dense: {units: 2, from: x, name: a}}, {dense: {units: 2, from: mean, name: b}}, "
              "{dense: {units: 2, from: good, name: c}}, {dense: {units: 2, from: if, name: d}}, "
              "{concat: {from: [a, b, c, d]}}, {dense: 2}",
              &module);
    const char *head = strstr(module.data, "    def prepare(");
    assert_non_null(head);
    char line[200];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(head, "\n"), head);
    assert_string_equal(line, "    def prepare(source_0, source_1, good, source_3):");
    tr_file_content_free(&module);
}

/* Fails unless the parentheses of a source text, its strings left out, open and close in order. */
static void expect_closed(const char *text, const char *network)
{
    char open[64];
    int depth = 0, line = 1;
    for (const char *at = text; *at; at++) {
        line += *at == '\n';
        if (strncmp(at, "\"\"\"", 3) == 0 || *at == '"') {
            size_t length = at[1] == '"' && at[2] == '"' ? 3 : 1;
            const char *end = at + length;
            while (*end && strncmp(end, at, length) != 0) end += 1 + (*end == '\\');
            at = end + length - 1;
        } else if (*at == '#') {
            at += strcspn(at, "\n") - 1;
        } else if (strchr("([{", *at)) {
            assert_true(depth < (int)sizeof open);
            open[depth++] = *at;
        } else if (strchr(")]}", *at)) {
            if (depth == 0 || open[--depth] != (*at == ')' ? '(' : *at == ']' ? '[' : '{'))
                fail_msg("%s: line %d closes what is not open", network, line);
        } else if (*at == '\n' && depth > 0 && strncmp(at + 1, "    def ", 8) == 0) {
            fail_msg("%s: line %d leaves %c open", network, line - 1, open[depth - 1]);
        }
    }
    if (depth > 0) fail_msg("%s: %c is left open", network, open[depth - 1]);
}

/* Fails if an argument or an assignment lacks its value, or if a member is made and not used. */
static void expect_complete(const char *text, const char *network)
{
    static const char *const holes[] = {"=,", "=)", "= \n", "=\n", "(,", ", ,", ", )"};
    for (size_t i = 0; i < sizeof holes / sizeof holes[0]; i++)
        if (strstr(text, holes[i])) fail_msg("%s: \"%s\" in\n%s", network, holes[i], text);
    for (const char *at = text; (at = strstr(at, "        self.")); at++) {
        char member[128];
        const char *name = at + strlen("        ");
        size_t length = strlen("self."), uses = 0;
        length += strspn(name + length, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        if (strncmp(name + length, " = ", 3) != 0) continue;
        snprintf(member, sizeof member, "%.*s", (int)length, name);
        for (const char *use = text; (use = strstr(use, member)); use++)
            uses += !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", use[length]);
        if (uses < 2) fail_msg("%s: %s is not used in\n%s", network, member, text);
    }
}

/* Of every kind of layer, as far as PyTorch has it. */
static void every_module_is_closed(void **state)
{
    (void)state;
    int written = 0;
    for (int i = 0; i < network_count; i++) {
        struct tr_file_content module;
        tr_status status = torch_module_write(&networks[i], scratch_in("net.py"), &module);
        if (status == TR_EUNSUPPORTED) continue;
        must_train(status);
        expect_closed(module.data, networks[i].name);
        expect_complete(module.data, networks[i].name);
        tr_file_content_free(&module);
        written++;
    }
    assert_true(written > network_count / 2);
}

/* Members and how they are called, by PyTorch's documentation. */
static void layers_are_called_as_pytorch_has_them(void **state)
{
    (void)state;
    static const struct network network = {
        "calls", "tokens", 7,
        "layers: [{embedding: 4}, {position: 5}, {attention: 2}, layer_norm, "
        "{gru: 3}, {lstm: 3}, last, {dense: 2}]"};
    static const char *const lines[] = {
        "        self.position1 = nn.Embedding(5, 4)\n"
        "        self.attention1 = nn.MultiheadAttention(4, 2, dropout=0, batch_first=True)\n"
        "        self.layer_norm1 = nn.LayerNorm(4, eps=1e-05)\n"
        "        self.gru1 = nn.GRU(4, 3, batch_first=True)\n"
        "        self.lstm1 = nn.LSTM(3, 3, batch_first=True)\n"
        "        self.dense1 = nn.Linear(3, 2)\n",
        /* Texts beyond the five positions keep to the last one, and padding is no key. */
        "        x = self.embedding1(x)\n"
        "        x = x + self.position1(torch.arange(x.shape[1], device=x.device).clamp(max=4))\n"
        "        x = self.attention1(x, x, x, need_weights=False, key_padding_mask=torch.arange(x.shape[1], "
        "device=x.device) >= lengths[:, None])[0]\n"
        "        x = self.layer_norm1(x)\n"
        "        x = self.gru1(x)[0]\n"
        "        x = self.lstm1(x)[0]\n"
        "        x = x[torch.arange(len(x), device=x.device), lengths - 1]\n"
        "        x = self.dense1(x)\n"
        "        return x\n",
    };
    struct tr_file_content module;
    must_train(torch_module_write(&network, scratch_in("net.py"), &module));
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) torch_module_expect(&module, lines[i]);
    tr_file_content_free(&module);
}

/* Members with every option that PyTorch's differ in, and how margins that they do not have are made. */
static void options_are_passed_to_pytorch(void **state)
{
    (void)state;
    static const struct {
        struct network network;
        const char *lines[2];
    } cases[] = {
        {{"stride", "9x10x2", 0,
          "layers: [{conv: {filters: 4, kernel: [3, 1], stride: [2, 3], use_bias: false}}]"},
         {".conv1 = nn.Conv2d(2, 4, (3, 1), stride=(2, 3), bias=False)\n", "self.conv1(x)"}},
        {{"same", "9x9x2", 0, "layers: [{conv: {filters: 4, kernel: 3, stride: 2, padding: same}}]"},
         {".conv1 = nn.Conv2d(2, 4, (3, 3), stride=(2, 2), padding=(1, 1))\n", "self.conv1(x)"}},
        {{"uneven", "9x10x2", 0, "layers: [{conv: {filters: 4, kernel: 3, stride: 2, padding: same}}]"},
         {".conv1 = nn.Conv2d(2, 4, (3, 3), stride=(2, 2))\n", "self.conv1(F.pad(x, (0, 1, 1, 1)))"}},
        {{"dilation", "9x10x2", 0,
          "layers: [{conv: {filters: 2, kernel: [3, 2], dilation: [2, 3], groups: 2}}]"},
         {".conv1 = nn.Conv2d(2, 2, (3, 2), dilation=(2, 3), groups=2)\n", "self.conv1(x)"}},
        {{"transpose", "4x5x9", 0,
          "layers: [{conv_transpose: {filters: 6, kernel: 2, stride: 2, groups: 3}}]"},
         {".conv_transpose1 = nn.ConvTranspose2d(9, 6, (2, 2), stride=(2, 2), groups=3, bias=False)\n"}},
        {{"most", "7x6x3", 0, "layers: [{max_pool: {size: 3, stride: 1, pad: 1}}]"},
         {".max_pool1 = nn.MaxPool2d((3, 3), stride=(1, 1), padding=(1, 1))\n", "self.max_pool1(x)"}},
        {{"mean", "7x6x3", 0, "layers: [{average_pool: {size: 3, stride: 1, pad: 1}}]"},
         {".average_pool1 = nn.AvgPool2d((3, 3), stride=(1, 1), padding=(1, 1), count_include_pad=False)\n",
          "self.average_pool1(x)"}},
        {{"border", "7x6x3", 0, "layers: [{average_pool: {size: 3, stride: 1, pad: 1, count_border: true}}]"},
         {".average_pool1 = nn.AvgPool2d((3, 3), stride=(1, 1), padding=(1, 1))\n", "self.average_pool1(x)"}},
        {{"norms", "7x6x4", 0,
          "layers: [{batch_norm: {epsilon: 0.5, momentum: 0.25}}, {group_norm: {groups: 2, epsilon: "
          "0.125}}]"},
         {".batch_norm1 = nn.BatchNorm2d(4, eps=0.5, momentum=0.25)\n",
          ".group_norm1 = nn.GroupNorm(2, 4, eps=0.125)\n"}},
        {{"rows", "9", 0,
          "layers: [{batch_norm: {epsilon: 0.5, momentum: 0.25}}, {dense: {units: 2, use_bias: false}}]"},
         {".batch_norm1 = nn.BatchNorm1d(9, eps=0.5, momentum=0.25)\n",
          ".dense1 = nn.Linear(9, 2, bias=False)\n"}},
        {{"upsample", "4x5x2", 0, "layers: [{upsample: [2, 3]}]"},
         {".upsample1 = nn.Upsample(scale_factor=(2, 3))\n", "self.upsample1(x)"}},
        {{"texts", "tokens x 4", 0,
          "layers: [{conv1d: {filters: 6, kernel: 3, dilation: 2, groups: 2, use_bias: false}}, "
          "{bidirectional: 5}, last]"},
         {".conv1d1 = nn.Conv1d(4, 6, 3, dilation=2, groups=2, bias=False)\n",
          ".bidirectional1 = nn.LSTM(6, 5, batch_first=True, bidirectional=True)\n"}},
        {{"dilated margin", "9x9x2", 0,
          "layers: [{conv: {filters: 4, kernel: [2, 3], dilation: [4, 2], padding: same}}]"},
         {".conv1 = nn.Conv2d(2, 4, (2, 3), padding=(2, 2), dilation=(4, 2))\n", "self.conv1(x)"}},
        {{"uneven mean", "5x7x3", 0, "layers: [{average_pool: {size: 2, padding: same}}]"},
         {".average_pool1 = nn.AvgPool2d((2, 2), stride=(2, 2))\n",
          "self.average_pool1(F.pad(x, (0, 1, 0, 1))) / self.average_pool1(F.pad(torch.ones_like(x), (0, 1, "
          "0, 1)))\n"}},
        {{"uneven most", "5x7x3", 0, "layers: [{max_pool: {size: 2, padding: same}}]"},
         {".max_pool1 = nn.MaxPool2d((2, 2), stride=(2, 2))\n",
          "self.max_pool1(F.pad(x, (0, 1, 0, 1), value=-torch.inf))\n"}},
        {{"cut", "3x4x2", 0,
          "layers: [{conv_transpose: {filters: 2, kernel: 4, stride: [3, 5], padding: same}}]"},
         {".conv_transpose1 = nn.ConvTranspose2d(2, 2, (4, 4), stride=(3, 5)", "self.conv_transpose1(x)"}},
        {{"images", "4x5x2", 0, "layers: [{relu: {name: a}}, {tanh: {from: input}}, {concat: a}]"},
         {"def forward(self, x):\n        \"\"\"x float32 [batch, 2, 4, 5] (channels, height, "
          "width).\"\"\"\n",
          "), 1)\n"}},
        {{"columns", "9", 0, "layers: [{relu: {name: a}}, {tanh: {from: input}}, {concat: a}]"},
         {"\"\"\"x float32 [batch, 9].\"\"\"\n", "), -1)\n"}},
        {{"gates", "4x5x3", 0,
          "layers: [{conv: {filters: 3, kernel: 1, name: a}}, global_average_pool, {dense: {units: 3, name: "
          "g}}, "
          "{multiply: {from: [a, g]}}]"},
         {"        x = kept[\"a\"] * x[:, :, None, None]\n", ""}},
        {{"gates first", "4x5x3", 0,
          "layers: [{conv: {filters: 3, kernel: 1, name: a}}, global_average_pool, {dense: {units: 3, name: "
          "g}}, "
          "{multiply: {from: [g, a]}}]"},
         {"        x = x[:, :, None, None] * kept[\"a\"]\n", ""}},
        {{"products of vectors", "4", 0, "layers: [{dense: {units: 4, name: a}}, tanh, {multiply: a}]"},
         {"        x = x * kept[\"a\"]\n", ""}},
        {{"heads", "tokens x 8", 0,
          "layers: [{attention: {heads: 2, causal: true, use_bias: false, dropout: 0.25}}, last]"},
         {" = nn.MultiheadAttention(8, 2, dropout=0.25, bias=False, batch_first=True)\n",
          ", attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1))[0]\n"}},
        {{"window", "tokens x 8", 0, "layers: [{attention: {heads: 4, window: 1}}, last]"},
         {" = Attention(8, 4, 8, base=0, dropout=0, window=1)\n",
          "self.attention1(x, lengths, causal=False)\n"}},
        {{"shared keys", "tokens x 8", 0,
          "layers: [{attention: {heads: 4, kv_heads: 2, causal: true}}, last]"},
         {" = Attention(8, 4, 8, base=0, dropout=0, kv_heads=2)\n",
          "self.attention1(x, lengths, causal=True)\n"}},
        {{"width", "tokens x 8", 0, "layers: [{attention: {heads: 2, width: 4, use_bias: false}}, last]"},
         {" = Attention(8, 2, 4, base=0, dropout=0, bias=False)\n"}},
        {{"turns", "tokens x 8", 0,
          "layers: [{attention: {heads: 2, rotary: 500, rotary_factor: 2, rotary_original: 64}}, last]"},
         {" = Attention(8, 2, 8, base=500, dropout=0, factor=2, original=64, low=1, high=4)\n"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tr_file_content module;
        must_train(torch_module_write(&cases[i].network, scratch_in("net.py"), &module));
        for (int k = 0; k < 2 && cases[i].lines[k]; k++) torch_module_expect(&module, cases[i].lines[k]);
        tr_file_content_free(&module);
    }
}

static int set_up(void **state)
{
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, ROWS, 0, 1, 1, 0};
    scratch_place_make(state);
    write_images("grey.idx", 1);
    write_images("two.idx", 2);
    char shape[32];
    snprintf(shape, sizeof shape, "%d, %d, 2", HEIGHT, WIDTH);
    write_zeros("numbers.npy", "<f4", shape, ROWS * HEIGHT * WIDTH * 2 * sizeof(float));
    write_zeros("classes.npy", "|u1", "", ROWS);
    must_train(tr_file_write_atomic(NULL, scratch_in("labels.idx"), labels, sizeof labels));
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_scaled_and_shifted),
        cmocka_unit_test(images_of_numbers_are_rows),
        cmocka_unit_test(sources_have_names_that_can_be),
        cmocka_unit_test(every_module_is_closed),
        cmocka_unit_test(layers_are_called_as_pytorch_has_them),
        cmocka_unit_test(options_are_passed_to_pytorch),
    };
    return cmocka_run_group_tests_name("export.torch", tests, set_up, scratch_place_remove);
}
