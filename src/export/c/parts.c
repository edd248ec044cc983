#include "export/c/parts.h"

#include "base/text/packed.h"

#include <assert.h>
#include <string.h>

extern const struct tr_packed tr_c_text_packed;

#define ADD(name) #name,
static const char *const part_names[TR_C_PART_COUNT] = {TR_C_PARTS(ADD)};
#undef ADD

#define NEEDS 4

struct needs {
    int count;
    enum tr_c_part part[NEEDS];
};

static const struct needs needs[TR_C_PART_COUNT] = {
    [TR_C_sum] = {1, {TR_C_lanes}},
    [TR_C_exp] = {1, {TR_C_exp_split}},
    [TR_C_exp_minus_1] = {1, {TR_C_exp_split}},
    [TR_C_tanh] = {1, {TR_C_exp_minus_1}},
    [TR_C_sigmoid] = {1, {TR_C_exp}},
    [TR_C_erf] = {1, {TR_C_exp_minus_1}},
    [TR_C_dense] = {2, {TR_C_zero, TR_C_chain}},
    [TR_C_conv] = {3, {TR_C_zero, TR_C_chain, TR_C_window}},
    [TR_C_winograd] = {1, {TR_C_window}},
    [TR_C_conv_transpose] = {2, {TR_C_zero, TR_C_window}},
    [TR_C_grouped_conv] = {1, {TR_C_window}},
    [TR_C_grouped_conv_transpose] = {2, {TR_C_zero, TR_C_window}},
    [TR_C_tanh_of] = {1, {TR_C_tanh}},
    [TR_C_sigmoid_of] = {1, {TR_C_sigmoid}},
    [TR_C_gelu] = {1, {TR_C_erf}},
    [TR_C_gelu_tanh] = {1, {TR_C_tanh}},
    [TR_C_silu] = {1, {TR_C_sigmoid}},
    [TR_C_max_pool] = {2, {TR_C_window, TR_C_larger}},
    [TR_C_average_pool] = {2, {TR_C_window, TR_C_zero}},
    [TR_C_greatest_row] = {1, {TR_C_larger}},
    [TR_C_mean_row] = {1, {TR_C_zero}},
    [TR_C_softmax] = {3, {TR_C_exp, TR_C_larger, TR_C_sum}},
    [TR_C_layer_norm] = {1, {TR_C_sum}},
    [TR_C_rms_norm] = {1, {TR_C_lanes}},
    [TR_C_lstm] = {3, {TR_C_chain, TR_C_tanh, TR_C_sigmoid}},
    [TR_C_gru] = {4, {TR_C_zero, TR_C_chain, TR_C_tanh, TR_C_sigmoid}},
    [TR_C_rotary] = {1, {TR_C_cos}},
    [TR_C_attention] = {3, {TR_C_zero, TR_C_chain, TR_C_exp}},
    [TR_C_attend] = {3, {TR_C_zero, TR_C_chain, TR_C_exp}},
    [TR_C_unembedding] = {1, {TR_C_chain}},
    [TR_C_draw] = {2, {TR_C_exp, TR_C_philox}},
    [TR_C_text_of_characters] = {1, {TR_C_same_text}},
    [TR_C_text_of_words] = {1, {TR_C_same_text}},
    [TR_C_distribution] = {1, {TR_C_exp}},
};

void tr_c_parts_use(struct tr_c_parts *parts, enum tr_c_part part)
{
    if (parts->used[part]) return;
    parts->used[part] = true;
    for (int i = 0; i < needs[part].count; i++) {
        assert(needs[part].part[i] < part);
        tr_c_parts_use(parts, needs[part].part[i]);
    }
}

tr_status tr_c_texts_unpack(char **out)
{
    return tr_unpack(&tr_c_text_packed, out);
}

void tr_c_fill(const char *name, const struct tr_c_names *names, struct tr_text *text)
{
    const char *template = tr_unpacked(&tr_c_text_packed, names->texts, name);
    assert(template && "a text that is a file");
    static const char *const marks[] = {"@name@", "@NAME@", "@file@"};
    const char *const values[] = {names->name, names->upper, names->file};
    for (const char *at; (at = strchr(template, '@'));) {
        int mark = 0;
        while (strncmp(at, marks[mark], 6) != 0) mark++;
        tr_text_add_bytes(text, template, (size_t)(at - template));
        tr_text_add(text, values[mark]);
        template = at + 6;
    }
    tr_text_add(text, template);
}

void tr_c_parts_write(const struct tr_c_parts *parts, const struct tr_c_names *names, struct tr_text *text)
{
    for (int i = 0; i < TR_C_PART_COUNT; i++) {
        if (!parts->used[i]) continue;
        tr_c_fill(part_names[i], names, text);
        tr_text_add(text, "\n");
    }
}
