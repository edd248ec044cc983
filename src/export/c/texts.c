/* The functions of a C file that go on with texts: drawing tokens, and texts as tokens and back. */
#include "base/alloc.h"
#include "base/text/ascii.h"
#include "export/c/network.h"

#include <inttypes.h>
#include <string.h>

extern const char tr_c_text_generate[], tr_c_text_generate_on[];

bool tr_c_goes_on(const struct tr_c_network *network)
{
    const struct tr_model *model = network->trace->model;
    return network->settings->vocabulary && model->input.sequence && model->output.sequence &&
           !network->whole && tr_shape_count(&model->output) >= model->vocabulary;
}

bool tr_c_keeps_all(const struct tr_c_network *network)
{
    return network->context == 0 && network->most_tokens > 0;
}

int64_t tr_c_floats_of_texts(const struct tr_c_network *network)
{
    return tr_shape_count(&network->trace->model->output) + network->context;
}

/* Whether texts go on from the last tokens only. */
static bool ends(const struct tr_c_network *network)
{
    return network->context > 0 || network->most_tokens > 0;
}

static bool has_unknown(const struct tr_c_network *network)
{
    return tr_vocabulary_has_unknown(network->settings->vocabulary);
}

/* The bytes that the text of a token has at most. */
static size_t longest_text(const tr_vocabulary *vocabulary)
{
    size_t longest = 4;
    for (int32_t i = 0; i < tr_vocabulary_size(vocabulary); i++) {
        size_t length = strlen(tr_vocabulary_word(vocabulary, i));
        if (length > longest) longest = length;
    }
    return longest + 1; /* a blank in front of a word */
}

void tr_c_declare_texts(const struct tr_c_network *network, struct tr_text *text)
{
    const char *name = network->name, *upper = network->upper;
    const tr_vocabulary *vocabulary = network->settings->vocabulary;
    tr_text_addf(text, "#define %s_VOCABULARY %" PRId64 "\n", upper, network->trace->model->vocabulary);
    tr_text_addf(text, "#define %s_FIRST %d /* the first token that is drawn */\n", upper,
                 has_unknown(network));
    tr_text_addf(text, "#define %s_TEXT %zu /* bytes of a token's text, at most */\n", upper,
                 longest_text(vocabulary));
    if (network->context > 0)
        tr_text_addf(text, "#define %s_CONTEXT %" PRId64, upper, network->context);
    else if (tr_c_keeps_all(network))
        tr_text_addf(text, "#define %s_CONTEXT %s_TOKENS", upper, upper);
    if (ends(network)) tr_text_add(text, " /* the last tokens, which a text goes on from */\n");
    if (network->context > 0 && network->most_tokens > 0)
        tr_text_addf(text,
                     "#if %s_TOKENS < %s_CONTEXT\n#error \"%s_TOKENS is less than %s_CONTEXT\"\n#endif\n",
                     upper, upper, upper, upper);
    tr_text_addf(
        text,
        "/* Draws the token that follows, number `index` behind the prompt, from scores [%s_OUTPUTS], which "
        "are\n"
        "   overwritten. Temperature 0 takes the likeliest; top_k > 0 draws from so many of the likeliest "
        "only. */\n"
        "int32_t %s_draw(float *scores, float temperature, int32_t top_k, uint64_t seed, uint64_t index);\n",
        upper, name);
    tr_text_addf(
        text,
        "/* Goes on from `prompt` [length], of at least one token, with `count` tokens, the ones that the "
        "trainer draws\n"
        "   with the same seed. Each is given to `take`, with `user`; what it returns but 0 ends the text. "
        "Returns how\n"
        "   many there were. `workspace` [%s_WORKSPACE]: overwritten. */\n"
        "int32_t %s_generate(const int32_t *prompt, int32_t length, int32_t count, float temperature, "
        "int32_t top_k,\n"
        "        uint64_t seed, int (*take)(void *user, int32_t token), void *user, float *workspace);\n",
        upper, name);
    tr_text_addf(
        text,
        "/* The next token of a text, which `text` then points behind: 0 for one that is unknown, -1 at the "
        "end. */\n"
        "int32_t %s_token(const char **text);\n"
        "/* Writes the text of a token, without a NUL behind it; returns its bytes, at most %s_TEXT. */\n"
        "int32_t %s_text(int32_t token, char *bytes);\n",
        name, upper, name);
}

/* A string constant of C that every compiler reads alike. */
static void add_string(struct tr_text *text, const char *string)
{
    tr_text_add(text, "\"");
    for (; *string; string++) {
        bool plain = tr_is_digit(*string) || (*string >= 'a' && *string <= 'z') ||
                     (*string >= 'A' && *string <= 'Z') || *string == ' ';
        if (plain)
            tr_text_addf(text, "%c", *string);
        else
            tr_text_addf(text, "\\%03o", (unsigned)(uint8_t)*string);
    }
    tr_text_add(text, "\"");
}

static void add_words(const struct tr_c_network *network, struct tr_text *text)
{
    const tr_vocabulary *vocabulary = network->settings->vocabulary;
    const char *unknown = tr_vocabulary_unit(vocabulary) != TR_UNIT_CHARACTERS
                              ? tr_vocabulary_word(vocabulary, 0)
                              : "\xef\xbf\xbd";
    tr_text_addf(text, "static const char *const %s_words[%s_VOCABULARY] = {", network->name, network->upper);
    for (int32_t i = 0; i < tr_vocabulary_size(vocabulary); i++) {
        tr_text_add(text, i % 8 ? ", " : i ? ",\n    " : "\n    ");
        add_string(text, i == 0 ? unknown : tr_vocabulary_word(vocabulary, i));
    }
    tr_text_add(text, "\n};\n\n");
}

tr_status tr_c_write_texts(const struct tr_c_network *network, struct tr_text *text)
{
    static const enum tr_c_part parts_of[] = {
        [TR_UNIT_WORDS] = TR_C_text_of_words,
        [TR_UNIT_CHARACTERS] = TR_C_text_of_characters,
        [TR_UNIT_BYTES] = TR_C_text_of_bytes,
        [TR_UNIT_IDS] = TR_C_text_of_words,
    };
    const tr_vocabulary *vocabulary = network->settings->vocabulary;
    const struct tr_c_names names = {network->name, network->upper, ""};
    const enum tr_unit unit = tr_vocabulary_unit(vocabulary);
    struct tr_c_parts parts = {0};
    tr_c_parts_use(&parts, parts_of[unit]);
    tr_text_addf(text, "\nenum { %s_folds = %d, %s_scores = %s };\n\n", network->name,
                 tr_vocabulary_folds(vocabulary), network->name,
                 tr_c_size(network, network->workspace, network->workspace_each).text);
    if (unit != TR_UNIT_BYTES) add_words(network, text);
    tr_c_parts_write(&parts, &names, text);
    tr_c_fill(ends(network) ? tr_c_text_generate : tr_c_text_generate_on, &names, text);
    return text->failed ? TR_ENOMEM : TR_OK;
}
