/* Byte-level BPE (Sennrich et al. 2016; Radford et al. 2019): a text is cut into pieces (split.h), the
 * bytes of a piece are merged pair by pair, the pair of the least rank first and of equal ones the
 * leftmost, until no merge applies. The pieces that remain are its tokens.
 *
 * It reads `tokenizer.json` of the library "tokenizers", and `vocab.json` with `merges.txt`. It knows
 * `ignore_merges` (a piece that is a token is not merged) and the normalizer NFC. Options under which that
 * library would give other tokens are refused by name. Added tokens ("<|endoftext|>") are found in a text
 * first: the one that begins first, and the longest of several that begin there.
 *
 * A tokenizer does not change once it is made; any thread may use it.
 */
#ifndef TR_DATA_BPE_H
#define TR_DATA_BPE_H

#include "base/text/text.h"
#include "data/bpe/split.h"

typedef struct tr_bpe tr_bpe;

#define TR_BPE_TOKENS_MAX (1 << 20)

/* A file tokenizer.json; a directory that has one, or vocab.json and merges.txt; or vocab.json, with
   merges.txt beside it. Texts for the latter two are cut as GPT-2 cuts them. Returned, destroy with
   tr_bpe_destroy(). TR_EFORMAT, TR_EUNSUPPORTED (an option or pattern that is not known). */
tr_status tr_bpe_open(const char *path, tr_bpe **out);
/* The text of a tokenizer.json; `where` names it in messages. */
tr_status tr_bpe_parse(const char *text, size_t length, const char *where, tr_bpe **out);
/* Accepts NULL, nulls the handle. */
void tr_bpe_destroy(tr_bpe **bpe);
/* As tokenizer.json with one token or merge on each line; tr_bpe_parse() and the library "tokenizers" read
   it back unchanged. Returned, free with tr_free(). */
tr_status tr_bpe_write(const tr_bpe *bpe, char **text);

/* All token numbers are below this; some of them may be unused. */
int32_t tr_bpe_size(const tr_bpe *bpe);
enum tr_bpe_pattern tr_bpe_pattern_of(const tr_bpe *bpe);
bool tr_bpe_composes(const tr_bpe *bpe);
bool tr_bpe_ignores_merges(const tr_bpe *bpe);
/* The bytes of a token, borrowed; *length is 0 for a number without a token. */
const char *tr_bpe_token(const tr_bpe *bpe, int32_t token, size_t *length);
/* Adds it as tokenizer.json writes it: letters that stand for bytes, or the text of an added one. */
void tr_bpe_add_letters(const tr_bpe *bpe, int32_t token, struct tr_text *text);
/* Whether a token was added, that is, does not result from merges; and whether it is a special token, such
   as the end of a text. */
bool tr_bpe_is_added(const tr_bpe *bpe, int32_t token);
bool tr_bpe_is_special(const tr_bpe *bpe, int32_t token);
/* The added token of this text, -1 for none. */
int32_t tr_bpe_find_added(const tr_bpe *bpe, const char *text);
/* The token of these bytes, -1 for none. Added tokens are not looked at. */
int32_t tr_bpe_find(const tr_bpe *bpe, const char *bytes, size_t length);
int32_t tr_bpe_merges(const tr_bpe *bpe);
/* The two tokens of merge `rank` and the one they make. */
void tr_bpe_merge(const tr_bpe *bpe, int32_t rank, int32_t *left, int32_t *right, int32_t *made);

/* The tokens of a text; returned, free with tr_free(). TR_ENOMEM. */
tr_status tr_bpe_encode(const tr_bpe *bpe, const char *text, size_t length, int32_t **tokens, int64_t *count);

/* What a vocabulary is trained with. */
struct tr_bpe_training {
    enum tr_bpe_pattern pattern;
    int32_t size;               /* tokens in all, at least 256 + the special ones */
    int64_t least;              /* pairs that are rarer are not merged; >= 1 */
    const char *const *special; /* texts of added tokens, numbered from 0; ends with NULL */
};
typedef struct tr_bpe_trainer tr_bpe_trainer;
/* `settings` is borrowed until destroyed. */
tr_status tr_bpe_trainer_create(const struct tr_bpe_training *settings, tr_bpe_trainer **out);
/* Counts the pieces of a text. A special token in it is skipped. */
tr_status tr_bpe_trainer_count(tr_bpe_trainer *trainer, const char *text, size_t length);
/* The bytes are numbered after the special tokens, in the order of the characters that stand for them in
   tokenizer.json. Then the most frequent pair of neighbours in the pieces becomes the next token, again
   and again. Of equally frequent pairs the one with the least left token is taken, then the one with the
   least right token. Training ends when there are enough tokens, or no pair is frequent enough. The
   trainer of "tokenizers" does the same. */
tr_status tr_bpe_trainer_finish(tr_bpe_trainer *trainer, tr_bpe **out);
void tr_bpe_trainer_destroy(tr_bpe_trainer **trainer);

#endif
