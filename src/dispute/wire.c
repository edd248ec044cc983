#include "dispute/wire.h"

#include "base/fail.h"

#include <string.h>

static size_t word_length(const struct tr_wire *wire)
{
    return strcspn(wire->at, " ");
}

static void skip(struct tr_wire *wire, size_t length)
{
    wire->at += length;
    if (*wire->at == ' ') wire->at++;
}

bool tr_wire_begins(struct tr_wire *wire, const char *word)
{
    const size_t length = word_length(wire);
    if (length != strlen(word) || strncmp(wire->at, word, length) != 0) return false;
    skip(wire, length);
    return true;
}

void tr_wire_word(struct tr_wire *wire, char *out, size_t size)
{
    const size_t length = word_length(wire);
    out[0] = '\0';
    wire->bad |= length == 0 || length >= size;
    if (wire->bad) return;
    memcpy(out, wire->at, length);
    out[length] = '\0';
    skip(wire, length);
}

/* Decimal digits without leading zeros, at most `most`. */
static uint64_t decimal(struct tr_wire *wire, uint64_t most)
{
    char word[24];
    uint64_t value = 0;
    tr_wire_word(wire, word, sizeof word);
    wire->bad |= word[0] == '0' && word[1];
    for (const char *at = word; *at && !wire->bad; at++)
        wire->bad = *at < '0' || *at > '9' || __builtin_mul_overflow(value, (uint64_t)10, &value) ||
                    __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value) || value > most;
    return wire->bad ? 0 : value;
}

int64_t tr_wire_number(struct tr_wire *wire, int64_t most)
{
    wire->bad |= most < 0;
    return (int64_t)decimal(wire, (uint64_t)most);
}

uint64_t tr_wire_seed(struct tr_wire *wire)
{
    return decimal(wire, UINT64_MAX);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t tr_wire_bytes(struct tr_wire *wire, void *out, size_t most)
{
    const size_t length = word_length(wire);
    uint8_t *to = out;
    wire->bad |= length == 0 || length % 2 || length / 2 > most;
    for (size_t i = 0; i < length / 2 && !wire->bad; i++) {
        const int high = digit(wire->at[2 * i]), low = digit(wire->at[2 * i + 1]);
        wire->bad = high < 0 || low < 0;
        if (!wire->bad) to[i] = (uint8_t)(16 * high + low);
    }
    if (wire->bad) return 0;
    skip(wire, length);
    return length / 2;
}

uint32_t tr_wire_bits(struct tr_wire *wire)
{
    uint8_t byte[4] = {0};
    wire->bad |= tr_wire_bytes(wire, byte, sizeof byte) != sizeof byte;
    return (uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 | (uint32_t)byte[2] << 8 | byte[3];
}

void tr_wire_digest(struct tr_wire *wire, struct tr_sha256_sum *out)
{
    memset(out, 0, sizeof *out);
    wire->bad |= tr_wire_bytes(wire, out->byte, sizeof out->byte) != sizeof out->byte;
}

/* The digests on the path from a leaf to the root. */
static int length_of(int64_t leaf, int64_t leaves)
{
    int depth = 0;
    for (; leaves > 1; depth++) {
        int64_t half = 1;
        while (half < leaves - half) half *= 2;
        const bool right = leaf >= half;
        leaf -= right ? half : 0;
        leaves = right ? leaves - half : half;
    }
    return depth;
}

void tr_wire_way(struct tr_wire *wire, int64_t leaf, int64_t leaves, struct tr_sha256_sum *sum,
                 struct tr_merkle_proof *proof)
{
    struct tr_merkle_proof own;
    if (!proof) proof = &own;
    *proof = (struct tr_merkle_proof){.leaf = leaf, .leaves = leaves};
    wire->bad |= leaf < 0 || leaf >= leaves;
    if (wire->bad) return;
    proof->length = length_of(leaf, leaves);
    for (int i = 0; i < proof->length; i++) tr_wire_digest(wire, &proof->beside[i]);
    const struct tr_sha256_sum from = *sum;
    if (wire->bad) return;
    const tr_status status = tr_merkle_follow(proof, &from, sum);
    wire->bad = status != TR_OK;
    if (status == TR_ENOMEM) wire->status = status;
}

bool tr_wire_ends(struct tr_wire *wire)
{
    return !wire->bad && *wire->at == '\0';
}

void tr_wire_add_digest(struct tr_text *text, const struct tr_sha256_sum *sum)
{
    char hex[TR_SHA256_TEXT];
    tr_text_addf(text, " %s", tr_sha256_text(sum, hex));
}

void tr_wire_add_bytes(struct tr_text *text, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *from = bytes;
    char block[512];
    size_t filled = 0;
    tr_text_add(text, " ");
    for (size_t i = 0; i < size; i++) {
        block[filled++] = digits[from[i] >> 4];
        block[filled++] = digits[from[i] & 15];
        if (filled < sizeof block) continue;
        tr_text_add_bytes(text, block, filled);
        filled = 0;
    }
    tr_text_add_bytes(text, block, filled);
}

void tr_wire_add_way(struct tr_text *text, const struct tr_merkle_proof *proof)
{
    for (int i = 0; i < proof->length; i++) tr_wire_add_digest(text, &proof->beside[i]);
}
