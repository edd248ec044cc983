/* A tokenizer as tokenizer.json, with one token or merge on each line, so that it can be a state of a
 * model (data/state.h).
 */
#include "data/bpe/internal.h"

#include "base/alloc.h"

#include <inttypes.h>

void tr_bpe_add_letters(const tr_bpe *bpe, int32_t id, struct tr_text *text)
{
    const struct bpe_token *token = &bpe->token[id];
    if (token->added || token->opaque)
        tr_text_add_bytes(text, bpe->bytes + token->start, token->length);
    else
        bpe_add_letters(text, bpe->bytes + token->start, token->length);
}

/* Adds a token in quotes. */
static void add_token(struct tr_text *text, const tr_bpe *bpe, int32_t id)
{
    struct tr_text letters = TR_TEXT_INIT;
    tr_bpe_add_letters(bpe, id, &letters);
    if (letters.failed)
        text->failed = true;
    else
        tr_text_add_quoted(text, letters.bytes);
    tr_text_release(&letters);
}

static void add_added(struct tr_text *text, const tr_bpe *bpe)
{
    tr_text_add(text, "\"added_tokens\": [");
    for (int32_t i = 0; i < bpe->added_count; i++) {
        const struct bpe_token *token = &bpe->token[bpe->added[i]];
        tr_text_addf(text, "%s\n{\"id\": %" PRId32 ", \"content\": ", i ? "," : "", bpe->added[i]);
        add_token(text, bpe, bpe->added[i]);
        tr_text_addf(text,
                     ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": %s, "
                     "\"special\": %s}",
                     token->normalized ? "true" : "false", token->special ? "true" : "false");
    }
    tr_text_add(text, "\n],\n");
}

static void add_pattern(struct tr_text *text, const tr_bpe *bpe)
{
    static const char flags[] = "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\"";
    tr_text_addf(text, "\"normalizer\": %s,\n", bpe->compose ? "{\"type\": \"NFC\"}" : "null");
    if (bpe->pattern == TR_BPE_GPT2) {
        tr_text_addf(text, "\"pre_tokenizer\": {\"type\": \"ByteLevel\", %s: true},\n", flags);
    } else {
        tr_text_add(text, "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [\n"
                          "{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
        tr_text_add_quoted(text, tr_bpe_pattern_texts[bpe->pattern]);
        tr_text_addf(
            text,
            "}, \"behavior\": \"Isolated\", \"invert\": false},\n{\"type\": \"ByteLevel\", %s: false}]},\n",
            flags);
    }
    tr_text_addf(text, "\"post_processor\": null,\n\"decoder\": {\"type\": \"ByteLevel\", %s: true},\n",
                 flags);
}

tr_status tr_bpe_write(const tr_bpe *bpe, char **out)
{
    struct tr_text text = TR_TEXT_INIT;
    bool first = true;
    tr_text_add(&text, "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n");
    add_added(&text, bpe);
    add_pattern(&text, bpe);
    tr_text_addf(&text,
                 "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                 "\"continuing_subword_prefix\": null,\n\"end_of_word_suffix\": null, \"fuse_unk\": false, "
                 "\"byte_fallback\": false, \"ignore_merges\": %s,\n\"vocab\": {",
                 bpe->ignore_merges ? "true" : "false");
    for (int32_t id = 0; id < bpe->size; id++) {
        if (!bpe->token[id].in_vocabulary) continue;
        tr_text_add(&text, first ? "\n" : ",\n");
        add_token(&text, bpe, id);
        tr_text_addf(&text, ": %" PRId32, id);
        first = false;
    }
    tr_text_add(&text, "\n},\n\"merges\": [");
    for (int32_t i = 0; i < bpe->merges; i++) {
        tr_text_add(&text, i ? ",\n[" : "\n[");
        add_token(&text, bpe, bpe->merge[i].left);
        tr_text_add(&text, ", ");
        add_token(&text, bpe, bpe->merge[i].right);
        tr_text_add(&text, "]");
    }
    tr_text_add(&text, "\n]}\n}\n");
    return tr_text_finish(&text, out);
}
