/* The referee: decides which party is right about one number. A self-contained program of one file that
 * needs only a C99 compiler, so that people can read it at once and run it anywhere:
 *
 *     cc -std=c99 -O2 -ffp-contract=off -o referee referee.c -lm && ./referee CASE
 *
 * `trireme dispute` writes the case (docs/how-to/receipts.md): the roots to which both parties have
 * committed, opened leaves with their paths to these roots, each party's number, and a program that computes
 * the number from the leaves. The referee follows every path, runs the program, and compares. Lines:
 *
 *     root NAME DIGEST                        A, B: of the step's numbers; S: of the state before it;
 *                                             P, Q: of the state after it, according to A and B
 *     record ID OF K N NAME COUNT DIGEST...   operation K of N of A, B or AB (both): COUNT roots of
 *                                             outputs, then the path to root A, to root B or to each
 *     leaf HEX                                an opened leaf; leaves are numbered from 0
 *     given                                   the last leaf is of neither party: data, or the model file
 *     by ID REGION K N DIGEST...              it is leaf K of N of output REGION of a record
 *     state NAME K N DIGEST...                it is leaf K of N of a state
 *     both LEAF LEAF BYTE SIZE                another leaf: bytes that are equal in a leaf of A and one of B
 *     claim PARTY LEAF BYTE SIZE              A's or B's number: SIZE bytes of a leaf
 *     float | bits                            how numbers are compared; as floats, all NaNs are equal
 *     CONST HEX, LOAD LEAF BYTE, ...          the program: an instruction on each line; operands are the
 *                                             numbers of earlier instructions
 *
 * Exit: 0 A is right, 1 B is, 2 both are, 3 neither is, 4 the case proves nothing, with the reason.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned char byte[32];
} digest;

static void refuse(const char *why)
{
    printf("no case: %s\n", why);
    exit(4);
}

static void *more(void *list, size_t count, size_t size)
{
    if (count & (count - 1) || (count && count < 16)) return list;
    list = realloc(list, (count < 16 ? 16 : 2 * count) * size);
    if (!list) refuse("no memory");
    return list;
}

/* ---- SHA-256 (FIPS 180-4), and trees of it (RFC 6962) ---- */

typedef struct {
    uint32_t h[8];
    unsigned char block[64];
    uint64_t bytes;
} sha;

static uint32_t turned(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static const uint32_t first_state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

static void sha_block(sha *s)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t e = v[4], a = v[0];
        uint32_t t = v[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                     round_constant[i] + w[i];
        uint32_t u =
            (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t;
        v[0] = t + u;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

static void sha_add(sha *s, const void *data, size_t size)
{
    for (const unsigned char *at = data; size-- > 0;) {
        s->block[s->bytes++ % 64] = *at++;
        if (s->bytes % 64 == 0) sha_block(s);
    }
}

static digest sha_end(sha *s)
{
    digest out;
    unsigned char length[8], pad = 0x80;
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(s->bytes * 8 >> (56 - 8 * i));
    for (sha_add(s, &pad, 1), pad = 0; s->bytes % 64 != 56;) sha_add(s, &pad, 1);
    sha_add(s, length, 8);
    for (int i = 0; i < 32; i++) out.byte[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
    return out;
}

static digest hash_of(int mark, const void *a, size_t a_size, const void *b, size_t b_size)
{
    sha s = {{0}, {0}, 0};
    unsigned char first = (unsigned char)mark;
    memcpy(s.h, first_state, sizeof s.h);
    sha_add(&s, &first, 1);
    sha_add(&s, a, a_size);
    sha_add(&s, b, b_size);
    return sha_end(&s);
}

/* ---- reading ---- */

static char *text, *line_end;

static const char *next_word(void)
{
    while (text < line_end && *text == ' ') text++;
    char *word = text;
    while (text < line_end && *text != ' ') text++;
    if (word == text) refuse("a line that ends too early");
    if (text < line_end) *text++ = '\0';
    return word;
}

static uint64_t next_number(uint64_t limit)
{
    uint64_t value = 0;
    const char *word = next_word();
    for (; *word; word++) {
        if (*word < '0' || *word > '9' || value > limit) refuse("a word that is no number");
        value = 10 * value + (uint64_t)(*word - '0');
    }
    if (value >= limit) refuse("a number beyond what there is");
    return value;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    refuse("a word that is not hexadecimal");
    return 0;
}

static size_t bytes_of(const char *hex, unsigned char *out, size_t most)
{
    size_t size = strlen(hex) / 2;
    if (strlen(hex) % 2 || size > most) refuse("a hexadecimal word of the wrong length");
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)(16 * digit(hex[2 * i]) + digit(hex[2 * i + 1]));
    return size;
}

static digest next_digest(void)
{
    digest out;
    if (bytes_of(next_word(), out.byte, 32) != 32) refuse("a digest that is none");
    return out;
}

/* Up from leaf k of n, by the digests that follow in the line. */
static digest follow(digest node, uint64_t k, uint64_t n)
{
    digest left[64];
    int right[64], depth = 0;
    for (; n > 1; depth++) {
        uint64_t half = 1;
        while (half < n - half) half *= 2;
        right[depth] = k >= half;
        k -= right[depth] ? half : 0;
        n = right[depth] ? n - half : half;
    }
    for (int i = 0; i < depth; i++) left[i] = next_digest();
    for (int i = 0; i < depth; i++)
        node =
            right[depth - 1 - i] ? hash_of(1, &left[i], 32, &node, 32) : hash_of(1, &node, 32, &left[i], 32);
    return node;
}

/* ---- the case ---- */

#define LIMIT ((uint64_t)1 << 40)

static struct {
    char known;
    digest is;
} root[128];

struct record {
    int of; /* 1: A's, 2: B's, 3: both's */
    size_t regions;
    digest *region;
};
static struct record *records;
static size_t record_count;

struct leaf {
    int of; /* the parties that have committed to it */
    size_t size;
    unsigned char *bytes;
};
static struct leaf *leaves;
static size_t leaf_count;

static uint32_t *values, claimed[2];
static size_t value_count;
static int has_claim[2], is_float = 1;

static void check_root(int name, digest got)
{
    if (!root[name & 127].known || memcmp(&root[name & 127].is, &got, 32))
        refuse("a proof that leads to no root");
}

static int parties_of(const char *word)
{
    int of = (strchr(word, 'A') ? 1 : 0) | (strchr(word, 'B') ? 2 : 0);
    if (!of) refuse("neither A nor B");
    return of;
}

static void read_record(void)
{
    struct record record;
    records = more(records, record_count, sizeof *records);
    if (next_number(LIMIT) != record_count) refuse("records that are not in order");
    record.of = parties_of(next_word());
    uint64_t k = next_number(LIMIT), n = next_number(LIMIT);
    const char *name = next_word();
    record.regions = (size_t)next_number(4096);
    record.region = calloc(record.regions + 1, sizeof *record.region);
    if (!record.region) refuse("no memory");
    for (size_t i = 0; i < record.regions; i++) record.region[i] = next_digest();
    digest is = hash_of(0, name, strlen(name) + 1, record.region, 32 * record.regions);
    if (k >= n) refuse("an operation beyond the last");
    if (record.of & 1) check_root('A', follow(is, k, n));
    if (record.of & 2) check_root('B', follow(is, k, n));
    records[record_count++] = record;
}

static void read_leaf(void)
{
    struct leaf leaf = {0, 0, NULL};
    const char *hex = next_word();
    leaves = more(leaves, leaf_count, sizeof *leaves);
    leaf.bytes = malloc(strlen(hex) / 2 + 1);
    if (!leaf.bytes) refuse("no memory");
    leaf.size = bytes_of(hex, leaf.bytes, strlen(hex) / 2);
    leaves[leaf_count++] = leaf;
}

static struct leaf *last_leaf(void)
{
    if (leaf_count == 0) refuse("a proof of no leaf");
    return &leaves[leaf_count - 1];
}

static void read_way(int by_state)
{
    struct leaf *leaf = last_leaf();
    const char *name = by_state ? next_word() : NULL;
    const struct record *record = by_state ? NULL : &records[next_number(record_count)];
    size_t region = record ? (size_t)next_number(record->regions) : 0;
    uint64_t k = next_number(LIMIT), n = next_number(LIMIT);
    if (k >= n) refuse("a leaf beyond the last");
    digest got = follow(hash_of(0, leaf->bytes, leaf->size, "", 0), k, n);
    if (record) {
        if (memcmp(&record->region[region], &got, 32)) refuse("a proof that leads to no output");
        leaf->of |= record->of;
    } else {
        check_root(*name, got);
        leaf->of |= *name == 'S' ? 3 : *name == 'P' ? 1 : *name == 'Q' ? 2 : 0;
    }
}

static uint32_t bytes_at(size_t leaf, size_t at, size_t size)
{
    uint32_t value = 0;
    if (size > 4 || leaves[leaf].size < size || at > leaves[leaf].size - size) refuse("bytes beyond a leaf");
    for (size_t i = 0; i < size; i++) value |= (uint32_t)leaves[leaf].bytes[at + i] << (8 * i);
    return value;
}

static void read_both(void)
{
    struct leaf leaf = {3, 0, NULL};
    size_t a = (size_t)next_number(leaf_count), b = (size_t)next_number(leaf_count);
    size_t at = (size_t)next_number(LIMIT);
    leaf.size = (size_t)next_number(9);
    leaf.bytes = calloc(9, 1);
    if (!leaf.bytes) refuse("no memory");
    for (size_t i = 0; i < leaf.size; i++) leaf.bytes[i] = (unsigned char)bytes_at(a, at + i, 1);
    for (size_t i = 0; i < leaf.size; i++)
        if (bytes_at(b, at + i, 1) != leaf.bytes[i]) refuse("bytes that are not the same");
    if (!(leaves[a].of & 1) || !(leaves[b].of & 2)) refuse("a leaf to which its party is not committed");
    leaves = more(leaves, leaf_count, sizeof *leaves);
    leaves[leaf_count++] = leaf;
}

static void read_claim(void)
{
    int party = *next_word() == 'B';
    size_t leaf = (size_t)next_number(leaf_count), at = (size_t)next_number(LIMIT);
    if (!(leaves[leaf].of & (1 << party))) refuse("a claim to which its party is not committed");
    claimed[party] = bytes_at(leaf, at, (size_t)next_number(5));
    has_claim[party] = 1;
}

/* ---- the program ---- */

static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static uint32_t as_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static const char *const names[] = {"FMA",  "ADD",  "SUB",  "MUL",  "DIV", "SQRT", "LESS", "EQUAL", "FLOAT",
                                    "IADD", "ISUB", "IMUL", "HIGH", "AND", "OR",   "XOR",  "SHL",   "SHR"};
static const int takes[] = {3, 2, 2, 2, 2, 1, 4, 4, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2};
enum {
    FMA,
    ADD,
    SUB,
    MUL,
    DIV,
    SQRT,
    LESS,
    EQUAL,
    FLOAT,
    IADD,
    ISUB,
    IMUL,
    HIGH,
    AND,
    OR,
    XOR,
    SHL,
    SHR,
    OPS
};

static uint32_t compute(int op, const uint32_t *a)
{
    const float x = as_float(a[0]), y = as_float(a[1]);
    const int shift = (int)(a[1] & 31);
    switch (op) {
    case FMA:
        return as_bits(fmaf(x, y, as_float(a[2])));
    case ADD:
        return as_bits(x + y);
    case SUB:
        return as_bits(x - y);
    case MUL:
        return as_bits(x * y);
    case DIV:
        return as_bits(x / y);
    case SQRT:
        return as_bits(sqrtf(x));
    case LESS:
        return x < y ? a[2] : a[3];
    case EQUAL:
        return x == y ? a[2] : a[3];
    case FLOAT:
        return as_bits(a[0] >> 31 ? -(float)(0 - a[0]) : (float)a[0]);
    case IADD:
        return a[0] + a[1];
    case ISUB:
        return a[0] - a[1];
    case IMUL:
        return a[0] * a[1];
    case HIGH:
        return (uint32_t)((uint64_t)a[0] * a[1] >> 32);
    case AND:
        return a[0] & a[1];
    case OR:
        return a[0] | a[1];
    case XOR:
        return a[0] ^ a[1];
    case SHL:
        return a[0] << shift;
    default:
        return a[0] >> shift | (shift && a[0] >> 31 ? ~(uint32_t)0 << (32 - shift) : 0);
    }
}

static void run(const char *name)
{
    uint32_t value = 0, of[4] = {0, 0, 0, 0};
    values = more(values, value_count, sizeof *values);
    if (!strcmp(name, "CONST")) {
        unsigned char bytes[4];
        if (bytes_of(next_word(), bytes, 4) != 4) refuse("a constant that is none");
        for (int i = 0; i < 4; i++) value = value << 8 | bytes[i];
    } else if (!strcmp(name, "LOAD") || !strcmp(name, "BYTE")) {
        size_t leaf = (size_t)next_number(leaf_count), at = (size_t)next_number(LIMIT);
        if (leaves[leaf].of != 3) refuse("an input to which not both parties are committed");
        value = bytes_at(leaf, at, *name == 'B' ? 1 : 4);
    } else {
        int op = 0;
        while (op < OPS && strcmp(name, names[op])) op++;
        if (op == OPS) refuse("a line of no kind");
        for (int i = 0; i < takes[op]; i++) of[i] = values[next_number(value_count)];
        value = compute(op, of);
    }
    values[value_count++] = value;
}

static void read_line(void)
{
    const char *kind = next_word();
    if (!strcmp(kind, "root")) {
        int name = *next_word() & 127;
        root[name].is = next_digest();
        root[name].known = 1;
    } else if (!strcmp(kind, "record")) {
        read_record();
    } else if (!strcmp(kind, "leaf")) {
        read_leaf();
    } else if (!strcmp(kind, "given")) {
        last_leaf()->of = 3;
    } else if (!strcmp(kind, "by") || !strcmp(kind, "state")) {
        read_way(*kind == 's');
    } else if (!strcmp(kind, "both")) {
        read_both();
    } else if (!strcmp(kind, "claim")) {
        read_claim();
    } else if (!strcmp(kind, "float") || !strcmp(kind, "bits")) {
        is_float = *kind == 'f';
    } else {
        run(kind);
    }
}

static int same(uint32_t a, uint32_t b)
{
    return a == b || (is_float && isnan(as_float(a)) && isnan(as_float(b)));
}

static char *read_all(FILE *file, size_t *size)
{
    char *all = NULL;
    *size = 0;
    for (int c; (c = getc(file)) != EOF;) {
        all = more(all, *size, 1);
        all[(*size)++] = (char)c;
    }
    return all;
}

int main(int argc, char **argv)
{
    static const char *const verdicts[] = {"A is right", "B is right", "both are right", "neither is right"};
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
    size_t size = 0;
    char *all = file ? read_all(file, &size) : NULL;
    if (!all || all[size - 1] != '\n' || memchr(all, 0, size)) refuse("no text of lines");
    for (text = all; text < all + size; text = line_end + 1) {
        line_end = memchr(text, '\n', (size_t)(all + size - text));
        *line_end = '\0';
        if (*text && *text != '#') read_line();
    }
    if (!value_count || !has_claim[0] || !has_claim[1]) refuse("no program, or no claims");
    uint32_t value = values[value_count - 1];
    int a = same(value, claimed[0]), b = same(value, claimed[1]);
    int verdict = a && b ? 2 : a ? 0 : b ? 1 : 3;
    printf("A says %08lx, B says %08lx; computed %08lx out of %lu instructions and %lu leaves: %s\n",
           (unsigned long)claimed[0], (unsigned long)claimed[1], (unsigned long)value,
           (unsigned long)value_count, (unsigned long)leaf_count, verdicts[verdict]);
    return verdict;
}
