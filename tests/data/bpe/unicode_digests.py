"""Prints the digests of test_unicode.c, from Python's unicodedata, which must have the version of Unicode that the tables have.

    python3 tests/data/bpe/unicode_digests.py
"""
import hashlib
import unicodedata

SPACES = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CHARACTERS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
# Where characters compose, Hangul in part; then second characters of compositions and marks of many classes.
FIRST = [*range(0x20, 0x3400), *range(0xAC00, 0xAC80), *range(0xD780, 0xD7B0), *range(0x11000, 0x11A00)]
SECOND = [
    *range(0x300, 0x315), 0x31B, *range(0x323, 0x333), 0x334, 0x338, 0x342, 0x345, 0x5B0, 0x653, 0x654, 0x655, 0x93C,
    0x94D, 0x9BE, 0xB3E, 0xC56, 0xDCA, 0x102E, 0x1160, 0x1161, 0x1175, 0x1176, 0x11A7, 0x11A8, 0x11C2, 0x11C3, 0x1B35,
    0x3099, 0x309A, 0x110BA, 0x11127, 0x1133E, 0x11357, 0x114BA, 0x115AF, 0x11930,
]  # fmt: skip


def class_of(code):
    if code in SPACES:
        return 3
    return {"L": 1, "N": 2}.get(unicodedata.category(chr(code))[0], 0)


def digest(texts):
    sha = hashlib.sha256()
    for text in texts:
        sha.update(unicodedata.normalize("NFC", text).encode() + b"\n")
    return sha.hexdigest()


def random_texts():
    state = 1
    for _ in range(40000):
        text = ""
        for _ in range(8):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            choice, which = state >> 30, state >> 8 & 0x3FFFFF
            codes = FIRST if choice == 0 else SECOND
            text += chr(codes[which % len(codes)])
        yield text


print("version ", unicodedata.unidata_version)
print("classes ", hashlib.sha256(bytes(map(class_of, range(0x110000)))).hexdigest())
print("alone   ", digest(map(chr, CHARACTERS)))
print("pairs   ", digest(chr(a) + chr(b) for a in FIRST for b in SECOND))
print("marks   ", digest("q" + chr(a) + chr(b) + chr(a) for a in CHARACTERS if a < 0x1F000 for b in (0x334, 0x301, 0x345)))
print("random  ", digest(random_texts()))
