"""Writes src/data/bpe/unicode_tables.inc: properties of characters for byte-level tokenizers, from Python's unicodedata.

    python3 python/tools/unicode_tables.py            # writes the file
    python3 python/tools/unicode_tables.py --check    # compares it with the output of this script

The version of Unicode is pinned below: a Python with another one refuses, so that tokens change only on purpose.
"""
import pathlib
import sys
import unicodedata

VERSION = "14.0.0"
FILE = pathlib.Path(__file__).parents[2] / "src/data/bpe/unicode_tables.inc"
OTHER, LETTER, NUMBER, SPACE = range(4)
# White_Space of PropList.txt, which is \s in the libraries of other tokenizers.
SPACES = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
MOST = 0x110000
HANGUL = range(0xAC00, 0xAC00 + 11172)  # composed by arithmetic


def class_of(code):
    if code in SPACES:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicodedata.category(chr(code))[0], OTHER)


def table(kind, name, rows, each):
    lines = [f"static const {kind} {name}[{len(rows)}] = {{"]
    for at in range(0, len(rows), each):
        lines.append("    " + ", ".join(rows[at : at + each]) + ",")
    return "\n".join(lines) + "\n};\n"


def ranges():
    rows, before = [], None
    for code in range(MOST):
        now = class_of(code)
        if now != before:
            rows.append(f"{code << 2 | now:#x}")
        before = now
    return table("uint32_t", "class_ranges", rows, 10)


def marks():
    """First and last character and combining class of each run of equal classes but 0."""
    runs = []
    for code in range(MOST):
        mark = unicodedata.combining(chr(code))
        if mark and runs and runs[-1][1] == code - 1 and runs[-1][2] == mark:
            runs[-1][1] = code
        elif mark:
            runs.append([code, code, mark])
    return table("struct mark_range", "mark_ranges", [f"{{{a:#x}, {b:#x}, {mark}}}" for a, b, mark in runs], 5)


def pairs():
    """Canonical decompositions, ascending by character, and those that are undone, ascending by their parts."""
    apart, together = [], []
    for code in range(MOST):
        text = unicodedata.decomposition(chr(code))
        if not text or text.startswith("<") or code in HANGUL:
            continue
        parts = [int(part, 16) for part in text.split()]
        first, second = (parts + [0])[:2]
        apart.append(f"{{{code:#x}, {first:#x}, {second:#x}}}")
        if second and unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
            together.append((first, second, len(apart) - 1))
    return (
        table("struct pair", "decompositions", apart, 4)
        + "\n/* The decompositions that composing undoes, ascending by their parts. */\n"
        + table("uint16_t", "compositions", [f"{at}" for _, _, at in sorted(together)], 20)
    )


def main():
    if unicodedata.unidata_version != VERSION:
        sys.exit(
            f"this Python knows Unicode {unicodedata.unidata_version}, the tables are of {VERSION}; "
            "take Python 3.11, or change VERSION on purpose"
        )
    text = (
        f"/* Characters of Unicode {VERSION}. Written by python/tools/unicode_tables.py; do not edit. */\n"
        f'#define UNICODE_VERSION "{VERSION}"\n\n'
        "/* Where a class begins: the first character of the range * 4 + its class. */\n"
        + ranges()
        + "\n/* Combining classes. */\n"
        + marks()
        + "\n/* A character and what it is made of; the second part is 0 where there is one. */\n"
        + pairs()
    )
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") != text:
            sys.exit(f"{FILE.name} is not what {sys.argv[0]} writes; run it")
        return
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
