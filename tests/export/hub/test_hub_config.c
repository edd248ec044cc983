/* config.json of directories of Hugging Face, option by option: what each means, what it is where it is
 * missing, and what of it makes another network.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "data/support.h"
#include "export/hub/hub.h"
#include "refuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

static tr_status read(const char *begin, const char *rest, struct tr_hub_config *config)
{
    char text[1024];
    snprintf(text, sizeof text, "{%s%s}", begin, rest);
    write_file("config.json", text, strlen(text));
    return tr_hub_read_config(test_directory(), config);
}

static void expect(const char *begin, const char *rest, const struct tr_hub_config *wanted)
{
    struct tr_hub_config got;
    if (read(begin, rest, &got) != TR_OK) fail_msg("%s: %s", rest, tr_error_message());
#define SAME(member)                                                                                         \
    if (got.member != wanted->member)                                                                        \
    fail_msg("%s%s: " #member " is %g, not %g", begin, rest, (double)got.member, (double)wanted->member)
    SAME(kind);
    SAME(width);
    SAME(inner);
    SAME(layers);
    SAME(heads);
    SAME(kv_heads);
    SAME(head_size);
    SAME(context);
    SAME(vocabulary);
    SAME(window);
    SAME(epsilon);
    SAME(rotary);
    SAME(factor);
    SAME(original);
    SAME(low);
    SAME(high);
    SAME(tied);
    SAME(bias);
    SAME(exact_gelu);
    SAME(classes);
    SAME(types);
    SAME(skipped);
    SAME(tags);
    SAME(begins);
#undef SAME
}

struct refusal {
    const char *rest;
    tr_status status;
    const char *says;
};

static void expect_refusals(const char *begin, const struct refusal *refusals, int count)
{
    for (int i = 0; i < count; i++) {
        struct tr_hub_config config;
        const tr_status status = read(begin, refusals[i].rest, &config);
        if (status != refusals[i].status || !strstr(tr_error_message(), refusals[i].says))
            fail_msg("%s: %s, \"%s\"", refusals[i].rest, tr_status_name(status),
                     status == TR_OK ? "" : tr_error_message());
    }
}

#define OTHER "; that is another network"

static const char gpt2[] = "\"model_type\": \"gpt2\", \"n_embd\": 12, \"n_layer\": 3, \"vocab_size\": 77";

static void options_of_gpt2(void **unused)
{
    struct tr_hub_config c = {.kind = TR_HUB_GPT2,
                              .width = 12,
                              .inner = 48,
                              .layers = 3,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_size = 3,
                              .context = 1024,
                              .vocabulary = 77,
                              .epsilon = 1e-5,
                              .factor = 1,
                              .tied = true,
                              .bias = true};
    static const struct refusal refusals[] = {
        {"", TR_EFORMAT, "n_head"},
        {", \"n_head\": 5", TR_EFORMAT, "5 heads, 5 of keys, of 2 numbers do not fit a width of 12"},
        {", \"n_head\": 13", TR_EFORMAT, "do not fit a width of 12"},
        {", \"n_head\": 0", TR_EFORMAT, "n_head"},
        {", \"n_head\": 4, \"n_inner\": 0", TR_EFORMAT, "n_inner"},
        {", \"n_head\": 4, \"n_inner\": 16777217", TR_EFORMAT, "n_inner"},
        {", \"n_head\": 4, \"n_positions\": 1.5", TR_EFORMAT, "n_positions"},
        {", \"n_head\": 4, \"layer_norm_epsilon\": 0", TR_EFORMAT,
         "config.json: layer_norm_epsilon is no number above 0"},
        {", \"n_head\": 4, \"layer_norm_epsilon\": \"x\"", TR_EFORMAT,
         "layer_norm_epsilon is no number above 0"},
        {", \"n_head\": 4, \"layer_norm_epsilon\": 1000000001", TR_EFORMAT,
         "layer_norm_epsilon is no number"},
        {", \"n_head\": 4, \"activation_function\": \"relu\"", TR_EUNSUPPORTED,
         "config.json: activation_function is \"relu\"; that is another network; known is the one of the "
         "published files"},
        {", \"n_head\": 4, \"activation_function\": 3", TR_EUNSUPPORTED,
         "activation_function is \"an integer\""},
        {", \"n_head\": 4, \"scale_attn_by_inverse_layer_idx\": true", TR_EUNSUPPORTED,
         "scale_attn_by_inverse_layer_idx is \"true\"" OTHER},
        {", \"n_head\": 4, \"scale_attn_weights\": false", TR_EUNSUPPORTED,
         "scale_attn_weights is \"false\"" OTHER},
    };
    (void)unused;
    expect(gpt2, ", \"n_head\": 4", &c);
    expect(
        gpt2,
        ", \"n_head\": 4, \"n_inner\": null, \"n_positions\": null, \"layer_norm_epsilon\": null, "
        "\"activation_function\": null, \"scale_attn_by_inverse_layer_idx\": false, \"scale_attn_weights\": "
        "true, \"tie_word_embeddings\": null",
        &c);
    c.tied = false;
    c.exact_gelu = true;
    c.inner = 16777216;
    c.context = 9;
    c.epsilon = 1000000000;
    expect(gpt2,
           ", \"n_head\": 4, \"n_inner\": 16777216, \"n_positions\": 9, \"layer_norm_epsilon\": 1e9, "
           "\"activation_function\": \"gelu\", \"tie_word_embeddings\": false",
           &c);
    expect_refusals(gpt2, refusals, LENGTH(refusals));
}

#define FAMILY(type)                                                                                         \
    "\"model_type\": \"" type "\", \"hidden_size\": 12, \"num_hidden_layers\": 3, \"num_attention_heads\": " \
    "4, \"intermediate_size\": 20, \"vocab_size\": 77"

static void options_of_llama(void **unused)
{
    const struct tr_hub_config usual = {.kind = TR_HUB_LLAMA,
                                        .width = 12,
                                        .inner = 20,
                                        .layers = 3,
                                        .heads = 4,
                                        .kv_heads = 4,
                                        .head_size = 3,
                                        .context = 2048,
                                        .vocabulary = 77,
                                        .epsilon = 1e-6,
                                        .rotary = 10000,
                                        .factor = 1};
    static const struct refusal refusals[] = {
        {", \"num_key_value_heads\": 3", TR_EFORMAT,
         "4 heads, 3 of keys, of 3 numbers do not fit a width of 12"},
        {", \"head_dim\": 4194305", TR_EFORMAT, "do not fit"},
        {", \"num_key_value_heads\": 0", TR_EFORMAT, "num_key_value_heads"},
        {", \"max_position_embeddings\": 0", TR_EFORMAT, "max_position_embeddings"},
        {", \"hidden_act\": \"gelu\"", TR_EUNSUPPORTED, "hidden_act is \"gelu\"" OTHER},
        {", \"attention_bias\": true", TR_EUNSUPPORTED, "attention_bias is \"true\"" OTHER},
        {", \"mlp_bias\": true", TR_EUNSUPPORTED, "mlp_bias is \"true\"" OTHER},
        {", \"rms_norm_eps\": -1", TR_EFORMAT, "rms_norm_eps is no number above 0"},
        {", \"rope_theta\": 0", TR_EFORMAT, "rope_theta is no number above 0"},
        {", \"rope_parameters\": {\"rope_theta\": 0}", TR_EFORMAT, "rope_theta is no number above 0"},
        {", \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}", TR_EUNSUPPORTED,
         "rope_type is \"dynamic\"; linear and llama3 are known"},
        {", \"rope_scaling\": {\"type\": \"linear\"}", TR_EFORMAT, "factor is no number above 0"},
        {", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 2, \"high_freq_factor\": 2, "
         "\"original_max_position_embeddings\": 4}",
         TR_EFORMAT, "low_freq_factor is no number above 0"},
        {", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 2, "
         "\"original_max_position_embeddings\": 4}",
         TR_EFORMAT, "high_freq_factor is no number above 0"},
        {", \"rope_scaling\": {\"type\": \"llama3\", \"factor\": 2, \"low_freq_factor\": 1, "
         "\"high_freq_factor\": 2}",
         TR_EFORMAT, "original_max_position_embeddings is no number above 0"},
    };
    static const struct {
        const char *rest;
        double rotary, factor, low, high, original;
    } rotary[] = {
        {", \"rope_theta\": 500", 500, 1, 0, 0, 0},
        {", \"rope_theta\": 500, \"rope_scaling\": null, \"rope_parameters\": null", 500, 1, 0, 0, 0},
        {", \"rope_theta\": 500, \"rope_scaling\": {\"rope_type\": \"default\", \"factor\": 3}", 500, 1, 0, 0,
         0},
        {", \"rope_theta\": 500, \"rope_scaling\": {\"factor\": 3}", 500, 1, 0, 0, 0},
        {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 3, \"low_freq_factor\": 1}", 10000, 3, 0, 0,
         0},
        {", \"rope_scaling\": {\"rope_type\": \"linear\", \"type\": \"yarn\", \"factor\": 3}", 10000, 3, 0, 0,
         0},
        /* All in one place, and then nowhere else. */
        {", \"rope_theta\": 7, \"rope_scaling\": {\"type\": \"yarn\"}, \"rope_parameters\": {\"rope_theta\": "
         "500, \"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 2, \"high_freq_factor\": 5, "
         "\"original_max_position_embeddings\": 64}",
         500, 8, 2, 5, 64},
        {", \"rope_theta\": 7, \"rope_parameters\": {}", 10000, 1, 0, 0, 0},
    };
    (void)unused;
    struct tr_hub_config c = usual;
    expect(FAMILY("llama"), "", &c);
    expect(
        FAMILY("llama"),
        ", \"sliding_window\": 5, \"hidden_act\": \"silu\", \"attention_bias\": false, \"mlp_bias\": false",
        &c);
    c.kv_heads = 2;
    c.head_size = 4194304; /* 2^24 numbers of all heads */
    c.context = 11;
    c.epsilon = 1e-5;
    c.tied = true;
    expect(FAMILY("llama"),
           ", \"num_key_value_heads\": 2, \"head_dim\": 4194304, \"max_position_embeddings\": 11, "
           "\"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true",
           &c);
    for (int i = 0; i < LENGTH(rotary); i++) {
        c = usual;
        c.rotary = rotary[i].rotary;
        c.factor = rotary[i].factor;
        c.low = rotary[i].low;
        c.high = rotary[i].high;
        c.original = rotary[i].original;
        expect(FAMILY("llama"), rotary[i].rest, &c);
    }
    expect_refusals(FAMILY("llama"), refusals, LENGTH(refusals));
    c = usual;
    c.kind = TR_HUB_MISTRAL;
    expect(FAMILY("mistral"), ", \"use_sliding_window\": false", &c);
    c.window = 5;
    expect(FAMILY("mistral"), ", \"sliding_window\": 5", &c);
    c = usual;
    c.kind = TR_HUB_QWEN2;
    c.bias = true;
    expect(FAMILY("qwen2"), ", \"sliding_window\": 5", &c);
    const struct refusal of_some = {
        ", \"use_sliding_window\": true, \"sliding_window\": 5", TR_EUNSUPPORTED,
        "use_sliding_window is \"true\"; layers with and without a window are not "
        "known"};
    expect_refusals(FAMILY("qwen2"), &of_some, 1);
}

#define CLASSES ", \"architectures\": [\"BertForSequenceClassification\"]"

static void options_of_bert(void **unused)
{
    struct tr_hub_config c = {.kind = TR_HUB_BERT,
                              .width = 12,
                              .inner = 20,
                              .layers = 3,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_size = 3,
                              .context = 512,
                              .vocabulary = 77,
                              .epsilon = 1e-12,
                              .factor = 1,
                              .bias = true,
                              .exact_gelu = true,
                              .classes = 2,
                              .types = 2};
    static const char known[] = "classes of texts (ForSequenceClassification) and of tokens "
                                "(ForTokenClassification) are known";
    static const struct refusal refusals[] = {
        {"", TR_EUNSUPPORTED, "architectures is \"\"; that is no network of this model_type"},
        {", \"architectures\": \"BertModel\"", TR_EUNSUPPORTED, "architectures is \"\""},
        {", \"architectures\": [3]", TR_EUNSUPPORTED, "architectures is \"\""},
        {", \"architectures\": [\"DistilBertModel\"]", TR_EUNSUPPORTED,
         "that is no network of this model_type"},
        {", \"architectures\": [\"BertModels\"]", TR_EUNSUPPORTED, known},
        {", \"architectures\": [\"BertForNextSentencePrediction\"]", TR_EUNSUPPORTED, known},
        {CLASSES ", \"num_labels\": 1", TR_EUNSUPPORTED,
         "id2label is \"of fewer than two classes\"; a network that gives values is another one"},
        {CLASSES ", \"id2label\": {\"0\": \"a\"}", TR_EUNSUPPORTED, "of fewer than two classes"},
        {CLASSES ", \"problem_type\": \"multi_label_classification\"", TR_EUNSUPPORTED,
         "problem_type is \"multi_label_classification\"; classes of which a text has one are known"},
        {CLASSES ", \"position_embedding_type\": \"relative_key\"", TR_EUNSUPPORTED,
         "\"relative_key\"" OTHER},
        {CLASSES ", \"is_decoder\": true", TR_EUNSUPPORTED, "is_decoder is \"true\"" OTHER},
        {CLASSES ", \"add_cross_attention\": true", TR_EUNSUPPORTED, "add_cross_attention is \"true\"" OTHER},
        {CLASSES ", \"hidden_act\": \"relu\"", TR_EUNSUPPORTED, "hidden_act is \"relu\"" OTHER},
        {CLASSES ", \"layer_norm_eps\": 0", TR_EFORMAT, "layer_norm_eps is no number above 0"},
        {CLASSES ", \"type_vocab_size\": 0", TR_EFORMAT, "type_vocab_size"},
        {CLASSES ", \"hidden_act\": 3", TR_EUNSUPPORTED, "hidden_act is \"an integer\"" OTHER},
        {CLASSES ", \"num_labels\": 0", TR_EFORMAT, "num_labels"},
        {CLASSES ", \"num_labels\": 0, \"id2label\": {\"0\": \"a\", \"1\": \"b\"}", TR_EFORMAT, "num_labels"},
        {CLASSES ", \"max_position_embeddings\": 0", TR_EFORMAT, "max_position_embeddings"},
    };
    static const char *const begins[] = {"Model", "ForMaskedLM", "ForPreTraining"};
    (void)unused;
    expect(FAMILY("bert"), CLASSES, &c);
    c.classes = 3;
    c.context = 40;
    c.types = 1;
    c.epsilon = 1e-5;
    c.exact_gelu = false;
    expect(FAMILY("bert"),
           CLASSES ", \"num_labels\": 7, \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}, "
                   "\"problem_type\": \"single_label_classification\", \"max_position_embeddings\": 40, "
                   "\"type_vocab_size\": 1, \"layer_norm_eps\": 1e-5, \"hidden_act\": \"gelu_new\", "
                   "\"position_embedding_type\": \"absolute\", \"is_decoder\": false, "
                   "\"add_cross_attention\": false",
           &c);
    c = (struct tr_hub_config){.kind = TR_HUB_BERT,
                               .width = 12,
                               .inner = 20,
                               .layers = 3,
                               .heads = 4,
                               .kv_heads = 4,
                               .head_size = 3,
                               .context = 512,
                               .vocabulary = 77,
                               .epsilon = 1e-12,
                               .factor = 1,
                               .bias = true,
                               .exact_gelu = true,
                               .classes = 7,
                               .types = 2,
                               .tags = true};
    expect(FAMILY("bert"), ", \"num_labels\": 7, \"architectures\": [\"BertForTokenClassification\"]", &c);
    expect(FAMILY("bert"),
           ", \"num_labels\": 7, \"id2label\": [\"a\", \"b\"], \"architectures\": "
           "[\"BertForTokenClassification\"]",
           &c);
    c.tags = false;
    c.begins = true;
    for (int i = 0; i < LENGTH(begins); i++) {
        char rest[128];
        snprintf(rest, sizeof rest, ", \"num_labels\": 7, \"architectures\": [\"Bert%s\"]", begins[i]);
        expect(FAMILY("bert"), rest, &c);
    }
    expect_refusals(FAMILY("bert"), refusals, LENGTH(refusals));
    /* RoBERTa is one whose places begin behind the padding. */
    c.kind = TR_HUB_ROBERTA;
    c.skipped = 2;
    c.context = 510;
    expect(FAMILY("roberta"), ", \"num_labels\": 7, \"architectures\": [\"RobertaModel\"]", &c);
    static const struct refusal of_padding[] = {
        {", \"pad_token_id\": -1", TR_EFORMAT, "pad_token_id"},
        {", \"max_position_embeddings\": 8, \"pad_token_id\": 7", TR_EFORMAT,
         "max_position_embeddings leaves no place behind that of pad_token_id"},
    };
    expect_refusals(FAMILY("roberta"), of_padding, LENGTH(of_padding));
}

static void options_of_distilbert(void **unused)
{
    static const char begin[] =
        "\"model_type\": \"distilbert\", \"dim\": 12, \"n_layers\": 3, \"n_heads\": 4, "
        "\"hidden_dim\": 20, \"vocab_size\": 77, \"architectures\": "
        "[\"DistilBertForSequenceClassification\"]";
    struct tr_hub_config c = {.kind = TR_HUB_DISTILBERT,
                              .width = 12,
                              .inner = 20,
                              .layers = 3,
                              .heads = 4,
                              .kv_heads = 4,
                              .head_size = 3,
                              .context = 512,
                              .vocabulary = 77,
                              .epsilon = 1e-12,
                              .factor = 1,
                              .bias = true,
                              .exact_gelu = true,
                              .classes = 2};
    const struct refusal refusals[] = {
        {", \"activation\": \"relu\"", TR_EUNSUPPORTED, "activation is \"relu\"" OTHER},
        {", \"max_position_embeddings\": 0", TR_EFORMAT, "max_position_embeddings"},
    };
    (void)unused;
    expect(begin, "", &c);
    expect(begin, ", \"activation\": null, \"layer_norm_eps\": 3", &c);
    c.exact_gelu = false;
    c.context = 33;
    expect(begin, ", \"activation\": \"gelu_new\", \"max_position_embeddings\": 33", &c);
    expect_refusals(begin, refusals, LENGTH(refusals));
}

/* Each member that has no usual value. */
static void sizes_must_be_there(void **unused)
{
    static const struct {
        const char *kind, *members[7];
    } cases[] = {
        {"gpt2", {"n_embd", "n_layer", "n_head", "vocab_size"}},
        {"llama",
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}},
        {"bert",
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}},
        {"distilbert", {"dim", "n_layers", "n_heads", "hidden_dim", "vocab_size"}},
    };
    (void)unused;
    for (int i = 0; i < LENGTH(cases); i++)
        for (int without = 0; cases[i].members[without]; without++) {
            struct tr_hub_config config;
            char rest[512] = "\"architectures\": [\"BertModel\", \"DistilBertModel\"], \"model_type\": \"";
            strcat(strcat(rest, cases[i].kind), "\"");
            for (int k = 0; cases[i].members[k]; k++)
                if (k != without) strcat(strcat(strcat(rest, ", \""), cases[i].members[k]), "\": 4");
            assert_int_equal(read(rest, "", &config), TR_EFORMAT);
            if (!strstr(tr_error_message(), cases[i].members[without])) fail_msg("%s", tr_error_message());
        }
}

static void memory_may_fail(void **unused)
{
    (void)unused;
    for (int64_t at = 0, done = 0; !done; at++) {
        struct tr_hub_config config;
        const int64_t live = tr_alloc_live();
        refuse_begin(at);
        const tr_status status = read(FAMILY("llama"), "", &config);
        done = refuse_end();
        assert_int_equal(status, done ? TR_OK : TR_ENOMEM);
        assert_int_equal(tr_alloc_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_of_gpt2),     cmocka_unit_test(options_of_llama),
        cmocka_unit_test(options_of_bert),     cmocka_unit_test(options_of_distilbert),
        cmocka_unit_test(sizes_must_be_there), cmocka_unit_test(memory_may_fail),
    };
    return cmocka_run_group_tests_name("export.hub_config", tests, NULL, NULL);
}
