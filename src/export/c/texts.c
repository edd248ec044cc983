/* The functions of a C file that continue texts: drawing tokens, and converting texts to tokens and back. */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/text/ascii.h"
#include "data/bpe/unicode.h"
#include "export/c/network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/* Whether texts continue from the last tokens only. */
static bool ends(const struct tr_c_network *network)
{
    return network->context > 0 || network->most_tokens > 0;
}

static bool has_unknown(const struct tr_c_network *network)
{
    return tr_vocabulary_has_unknown(network->settings->vocabulary);
}

/* The greatest length of a token's text in bytes. */
static size_t longest_text(const tr_vocabulary *vocabulary)
{
    size_t longest = 4, length;
    for (int32_t i = 0; tr_vocabulary_bpe(vocabulary) && i < tr_bpe_size(tr_vocabulary_bpe(vocabulary));
         i++) {
        tr_bpe_token(tr_vocabulary_bpe(vocabulary), i, &length);
        if (length > longest) longest = length;
    }
    if (tr_vocabulary_bpe(vocabulary)) return longest;
    for (int32_t i = 0; i < tr_vocabulary_size(vocabulary); i++) {
        length = strlen(tr_vocabulary_word(vocabulary, i));
        if (length > longest) longest = length;
    }
    return longest + 1; /* a blank before a word */
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
        "/* Draws the token that follows, number `index` after the prompt, from scores [%s_OUTPUTS], which "
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
    if (tr_vocabulary_bpe(vocabulary)) {
        tr_text_addf(
            text,
            "/* Writes the tokens of a text%s, of which there are at most as many as it has bytes; returns "
            "how "
            "many. */\n"
            "int32_t %s_tokens(const char *text, int32_t *tokens);\n"
            "/* Writes the text of a token, without a NUL after it; returns its bytes, at most %s_TEXT. */\n"
            "int32_t %s_text(int32_t token, char *bytes);\n",
            tr_bpe_composes(tr_vocabulary_bpe(vocabulary)) ? ", which is in normalization form C" : "", name,
            upper, name);
        return;
    }
    tr_text_addf(
        text,
        "/* The next token of a text, which `text` then points behind: 0 for one that is unknown, -1 at the "
        "end. */\n"
        "int32_t %s_token(const char **text);\n"
        "/* Writes the text of a token, without a NUL after it; returns its bytes, at most %s_TEXT. */\n"
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

/* ---- subwords ---- */

/* Numbers, ten on a line. */
static void add_numbers(struct tr_text *text, const char *kind, const char *name, const char *what,
                        int64_t count, const int64_t *numbers)
{
    tr_text_addf(text, "static const %s %s_%s[] = {", kind, name, what);
    for (int64_t i = 0; i < count; i++)
        tr_text_addf(text, "%s%" PRId64 ",", i % 10 ? " " : "\n    ", numbers[i]);
    tr_text_add(text, "\n};\n");
}

struct merge {
    int32_t left, right, made, rank;
};

static int by_pair(const void *a_, const void *b_)
{
    const struct merge *a = a_, *b = b_;
    if (a->left != b->left) return a->left < b->left ? -1 : 1;
    if (a->right != b->right) return a->right < b->right ? -1 : 1;
    return (a->rank < b->rank) - (a->rank > b->rank); /* among equal ones the last comes first */
}

static tr_status add_merges(const tr_bpe *bpe, const char *name, struct tr_text *text)
{
    const int32_t count = tr_bpe_merges(bpe);
    struct merge *merge = tr_alloc((size_t)count + 1, sizeof *merge);
    if (!merge) return TR_ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        merge[i].rank = i;
        tr_bpe_merge(bpe, i, &merge[i].left, &merge[i].right, &merge[i].made);
    }
    qsort(merge, (size_t)count, sizeof *merge, by_pair);
    tr_text_addf(text, "static const int32_t %s_merges[][4] = { /* two tokens, what they make, rank */",
                 name);
    if (count == 0) tr_text_add(text, "\n    {-1, -1, -1, -1},");
    for (int32_t i = 0; i < count; i++)
        if (i == 0 || merge[i].left != merge[i - 1].left || merge[i].right != merge[i - 1].right)
            tr_text_addf(text, "\n    {%" PRId32 ", %" PRId32 ", %" PRId32 ", %" PRId32 "},", merge[i].left,
                         merge[i].right, merge[i].made, merge[i].rank);
    tr_text_add(text, "\n};\n");
    tr_free(merge);
    return TR_OK;
}

static int by_bytes(const void *a_, const void *b_, void *bpe)
{
    size_t a_length, b_length;
    const char *a = tr_bpe_token(bpe, (int32_t) * (const int64_t *)a_, &a_length);
    const char *b = tr_bpe_token(bpe, (int32_t) * (const int64_t *)b_, &b_length);
    const int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Tokens in the order of their bytes, for looking up whole pieces; the added tokens; those of single
   bytes; and where the text of each begins. `number` has room for all. */
static void add_tokens(const tr_bpe *bpe, const char *name, struct tr_text *text, int64_t *number)
{
    const int32_t size = tr_bpe_size(bpe);
    size_t length, bytes = 0;
    int64_t count = 0;
    for (int32_t i = 0; tr_bpe_ignores_merges(bpe) && i < size; i++) {
        const char *token = tr_bpe_token(bpe, i, &length);
        if (length > 0 && tr_bpe_find(bpe, token, length) == i) number[count++] = i;
    }
    qsort_r(number, (size_t)count, sizeof *number, by_bytes, (void *)bpe);
    tr_text_addf(text, "enum { %s_tokens_of_text = %" PRId32 ", %s_wholes = %" PRId64 " };\n", name, size,
                 name, count);
    if (count == 0) number[count++] = 0;
    add_numbers(text, "int32_t", name, "sorted", count, number);
    count = 0;
    for (int32_t i = 0; i < size; i++)
        if (tr_bpe_is_added(bpe, i)) number[count++] = i;
    number[count++] = -1;
    add_numbers(text, "int32_t", name, "added", count, number);
    for (int i = 0; i < 256; i++) number[i] = tr_bpe_find(bpe, &(char){(char)i}, 1);
    add_numbers(text, "int32_t", name, "of_byte", 256, number);
    for (int32_t i = 0; i < size; i++, bytes += length) {
        number[i] = (int64_t)bytes;
        tr_bpe_token(bpe, i, &length);
    }
    number[size] = (int64_t)bytes;
    add_numbers(text, "uint32_t", name, "begins", size + 1, number);
    tr_text_addf(text, "static const unsigned char %s_bytes[] = {", name);
    for (int32_t i = 0; i < size; i++) {
        const char *token = tr_bpe_token(bpe, i, &length);
        tr_text_add(text, "\n    ");
        for (size_t k = 0; k < length; k++) tr_text_addf(text, "%d,", (uint8_t)token[k]);
    }
    tr_text_add(text, "\n    0};\n");
}

static tr_status add_subwords(const struct tr_c_network *network, struct tr_text *text)
{
    static const int digits[TR_BPE_PATTERNS] = {[TR_BPE_GPT2] = 0, [TR_BPE_CL100K] = 3, [TR_BPE_QWEN2] = 1};
    const tr_bpe *bpe = tr_vocabulary_bpe(network->settings->vocabulary);
    const char *name = network->name;
    int ranges;
    const uint32_t *range = tr_character_ranges(&ranges);
    const size_t room = (size_t)(ranges > tr_bpe_size(bpe) ? ranges : tr_bpe_size(bpe)) + 257;
    int64_t *number = tr_alloc(room, sizeof *number);
    if (!number) return TR_ENOMEM;
    tr_text_addf(text,
                 "enum { %s_digits = %d }; /* of a piece that is a number; 0: the pattern of GPT-2 */\n",
                 name, digits[tr_bpe_pattern_of(bpe)]);
    for (int i = 0; i < ranges; i++) number[i] = range[i];
    tr_text_addf(text, "/* Unicode %s */\n", tr_unicode_version);
    add_numbers(text, "uint32_t", name, "classes", ranges, number);
    add_tokens(bpe, name, text, number);
    tr_free(number);
    TR_TRY(add_merges(bpe, name, text));
    tr_text_add(text, "\n");
    return TR_OK;
}

tr_status tr_c_write_texts(const struct tr_c_network *network, struct tr_text *text)
{
    static const enum tr_c_part parts_of[] = {
        [TR_UNIT_WORDS] = TR_C_text_of_words,  [TR_UNIT_CHARACTERS] = TR_C_text_of_characters,
        [TR_UNIT_BYTES] = TR_C_text_of_bytes,  [TR_UNIT_IDS] = TR_C_text_of_words,
        [TR_UNIT_BPE] = TR_C_text_of_subwords,
    };
    const tr_vocabulary *vocabulary = network->settings->vocabulary;
    const struct tr_c_names names = {network->name, network->upper, "", network->texts};
    const enum tr_unit unit = tr_vocabulary_unit(vocabulary);
    struct tr_c_parts parts = {0};
    tr_c_parts_use(&parts, parts_of[unit]);
    tr_text_addf(text, "\nenum { %s_folds = %d, %s_scores = %s };\n\n", network->name,
                 tr_vocabulary_folds(vocabulary), network->name,
                 tr_c_size(network, network->workspace, network->workspace_each).text);
    if (unit == TR_UNIT_BPE)
        TR_TRY(add_subwords(network, text));
    else if (unit != TR_UNIT_BYTES)
        add_words(network, text);
    tr_c_parts_write(&parts, &names, text);
    tr_c_fill(ends(network) ? "generate" : "generate_on", &names, text);
    return text->failed ? TR_ENOMEM : TR_OK;
}
