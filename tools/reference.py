#!/usr/bin/env python3
"""The reference of the C interface, made from the words in its headers.

    tools/reference.py DIRECTORY    writes manual pages: trireme_train(3) of trireme/train.h, and so on, and one for
                                    each function and structure that leads there
    tools/reference.py --check [HEADERS]
                                    names what has no comment: functions, structures, enumerations and their members,
                                    types of functions; exits with 1 if there is any

The headers are plain C99 of one style. A comment belongs to the declaration that follows it, and to those that follow
that one without a blank line or another comment; a member has its comment behind it or above it.
"""

import datetime
import os
import pathlib
import re
import sys
import textwrap

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include" / "trireme"

COMMENT = re.compile(r"/\*.*?\*/", re.S)
DECLARATION = re.compile(
    r"^(?:TR_API [^;{]+;|typedef [^;{]+;|(?:typedef )?(?:struct|enum) \w+ \{.*?^\}[^;]*;)", re.S | re.M
)


def blank_preprocessor(text):
    """Lines of the preprocessor, and those only for C++, as empty lines."""
    text = re.sub(r"^#ifdef __cplusplus\n(.*?)^#(?:else|endif)", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), text, flags=re.M)


def words_of(comment):
    """The text of a comment, without its frame."""
    lines = comment[2:-2].strip("\n").split("\n")
    lines = [re.sub(r"^\s*\* ?|^\s{3}", "", line) if i else line.strip() for i, line in enumerate(lines)]
    return "\n".join(line.rstrip() for line in lines).strip()


class Declaration:
    def __init__(self, code, words, start):
        self.code, self.words, self.start = code, words, start
        match = (
            re.match(r"(?:typedef )?(?:struct|enum) (\w+) \{", code)
            or re.match(r"typedef .*?\(\*(\w+)\)", code, re.S)
            or re.match(r"typedef .*?(\w+);", code, re.S)
            or re.search(r"(\w+)\(", code)
        )
        self.name = match[1]

    def members(self):
        """Pairs of the code of a member and its comments: those above it, and those after it."""
        if not re.match(r"(?:typedef )?(?:struct|enum) \w+ \{", self.code):
            return
        body = self.code[self.code.index("{") + 1 : self.code.rindex("}")]
        end = "," if re.match(r"(?:typedef )?enum", self.code) else ";"
        comments = COMMENT.findall(body)
        plain = COMMENT.sub(lambda m: "\x01" + "\n" * m[0].count("\n") + "\x02", body)
        above, count = [], 0
        for part in re.finditer(r"\x01\s*\x02|[^\x01\x02" + end + r"]+[" + end + r"]?", plain):
            code = part[0].strip()
            if part[0].startswith("\x01"):
                # A comment on a line with code belongs to that code.
                above = [] if plain[: part.start()].rpartition("\n")[2].strip() else [words_of(comments[count])]
                count += 1
            elif code:
                behind = [words_of(comments[count])] if re.match(r"[ \t]*\x01", plain[part.end() :]) else []
                yield " ".join(code.split()), above + behind
                above = []


def read(path):
    """The comments of a header, and its declarations."""
    text = path.read_text()
    head = words_of(COMMENT.search(text)[0])
    plain = blank_preprocessor(text)
    declarations, words, last = [], "", 0
    for match in re.finditer(COMMENT.pattern + "|" + DECLARATION.pattern, plain, re.S | re.M):
        if "\n\n" in plain[last : match.start()]:
            words = ""
        last = match.end()
        if match[0].startswith("/*"):
            words = words_of(match[0])
        else:
            declarations.append(Declaration(match[0], words, match.start()))
    return head, declarations


def check(headers):
    bad = 0
    paths = sorted(headers.glob("*.h"))
    if not paths:
        sys.exit(f"{headers} has no headers")
    for path in paths:
        _, declarations = read(path)
        found = {declaration.name for declaration in declarations}
        for name in re.findall(r"^TR_API [^;]*?(\w+)\(", COMMENT.sub("", path.read_text()), re.M):
            if name not in found:
                print(f"{path.name}: {name}() is not understood by {sys.argv[0]}")
                bad += 1
        for declaration in declarations:
            opaque = re.match(r"typedef struct (\w+) \1;", declaration.code)
            if not declaration.words and not opaque:
                print(f"{path.name}: {declaration.name} has no words")
                bad += 1
            for code, has_words in declaration.members():
                if not has_words and not re.match(r"size_t size;", code):
                    print(f"{path.name}: {declaration.name}: \"{code}\" has no words")
                    bad += 1
    return bad


# ---- manual pages ----

WIDTH = 70  # of unfilled text, for pages of 80 columns


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def literal(lines):
    """Lines unchanged, with the rest of long ones in the next line, indented further."""
    out = []
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())] + "    "
        out += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
    return [".nf", *(escape(line) for line in out), ".fi"]


def prose(text):
    """Paragraphs that the reader's program fills. What is indented stays as it is; a point of a list begins a paragraph."""
    out = []
    for block in re.split(r"\n\s*\n", text):
        lines, kind = [], None
        for line in [*block.split("\n"), None]:
            new = None if line is None else "literal" if re.match(r" {4}", line) else "prose"
            point = line is not None and re.match(r"[-*] ", line)
            if lines and (new != kind or point):
                out += [".PP", *(literal(lines) if kind == "literal" else fill(lines))]
                lines = []
            kind = new
            if line is not None:
                lines.append(line)
    return out


def fill(lines):
    """The words of some lines in lines that are short enough for readers of the page's source."""
    text = " ".join(line.strip() for line in lines)
    return [escape(line) for line in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)]


def code_of(declaration):
    """A declaration without its comments, in lines that fit."""
    plain = COMMENT.sub("", declaration.code)
    if re.match(r"(?:typedef )?(?:struct|enum) \w+ \{", plain):
        body = [line.rstrip() for line in plain.split("\n")]
        return literal(line for line in body if line)
    # Lines break between two arguments, if that is enough: other spaces are protected until then.
    line = " ".join(plain.replace("TR_API ", "").split())
    lines = [each.replace("\xa0", " ") for each in literal([re.sub(r"(?<!,) ", "\xa0", line)])]
    return lines if max(map(len, lines)) <= WIDTH else literal([line])


def page(path, version, date):
    head, declarations = read(path)
    name = f"trireme_{path.stem}"
    first = re.split(r"[.:;]\s", head, maxsplit=1)[0].rstrip(".").replace("\n", " ")
    names = [name] + [d.name for d in declarations if d.code.startswith("TR_API")]
    out = [f'.TH {name.upper()} 3 "{date}" "Trireme {version}" "C interface of Trireme"', ".SH NAME"]
    out += [f"{each}," for each in names[:-1]] + [names[-1], *fill(["- " + first])]
    out += [".SH SYNOPSIS", ".nf", f"#include <trireme/{path.name}>", ".fi"]
    out += [".SH DESCRIPTION", *prose(head)[1:]]
    for declaration in declarations:
        out += [f".SS {declaration.name}", *code_of(declaration)]
        if declaration.words:
            out += prose(declaration.words)
        for code, words in declaration.members():
            if words and words != ["sizeof(struct " + declaration.name + ")"]:
                out += [".TP", ".B " + escape(code.rstrip(";,"))]
                out += [line for text in words for line in fill(text.split("\n"))]
    out += [".SH SEE ALSO", ".BR trireme (1),", ".BR trireme\\-model (5)"]
    return name, "\n".join(out) + "\n", [d.name for d in declarations]


def write(directory):
    target = pathlib.Path(directory) / "man3"
    target.mkdir(parents=True, exist_ok=True)
    cmake = (HEADERS.parents[1] / "CMakeLists.txt").read_text()
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", cmake)[1]
    # Equal sources give equal pages, also at other times.
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    date = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc) if seconds else datetime.datetime.now()
    date = date.strftime("%Y-%m-%d")
    for path in sorted(HEADERS.glob("*.h")):
        name, text, names = page(path, version, date)
        if not names:
            continue
        (target / f"{name}.3").write_text(text)
        for each in names:
            (target / f"{each}.3").write_text(f".so man3/{name}.3\n")


if __name__ == "__main__":
    if len(sys.argv) in (2, 3) and sys.argv[1] == "--check":
        sys.exit(1 if check(pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else HEADERS) else 0)
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    write(sys.argv[1])
