"""Writes trireme/_layouts.py from the public headers: structures, enumerations, types of functions, prototypes.

    python3 python/tools/layouts.py          writes it
    python3 python/tools/layouts.py --check  compares it with the headers; exits with 1 if they differ

The headers are plain C99 of one style, so a small reader does: no compiler is needed, and unknown syntax
is an error. tests/python/test_layouts.py compares sizes and offsets with those of a C compiler.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "trireme"
TARGET = ROOT / "python" / "trireme" / "_layouts.py"

SCALARS = {
    "int": "c_int",
    "unsigned": "c_uint",
    "size_t": "c_size_t",
    "int32_t": "c_int32",
    "int64_t": "c_int64",
    "uint8_t": "c_uint8",
    "uint32_t": "c_uint32",
    "uint64_t": "c_uint64",
    "float": "c_float",
    "double": "c_double",
    "bool": "c_bool",
    "tr_status": "c_int",
    "char": "c_char",
}


class Reader:
    def __init__(self):
        self.constants = {}
        self.enums = []
        self.structs = {}  # name -> [(member, type)], in order
        self.opaque = set()
        self.callbacks = {}  # name -> type
        self.functions = []  # (name, result, [types])

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = text.replace("\\\n", " ")
        for name, value in re.findall(r"^#define (TR_\w+) \(?(-?\d+)\)?\s*$", text, flags=re.M):
            self.constants[name] = int(value)
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        for match in re.finditer(r"(?:typedef )?enum (\w+) \{(.*?)\}", text, flags=re.S):
            self.read_enum(match[1], match[2])
        for name in re.findall(r"typedef struct (\w+) \w+;", text):
            self.opaque.add(name)
        for match in re.finditer(r"typedef ([^;{}]*?)\(\*(\w+)\)\(([^;]*)\);", text):
            self.callbacks[match[2]] = (match[1], match[3])
        for match in re.finditer(r"struct (\w+) \{(.*?)\n\};", text, flags=re.S):
            self.structs[match[1]] = match[2]
        for match in re.finditer(r"TR_API ([^;]*?)(\w+)\(([^;]*)\);", text):
            self.functions.append((match[2], match[1].strip(), match[3]))

    def read_enum(self, name, body):
        value = 0
        for part in body.split(","):
            part = part.strip()
            if not part:
                continue
            key, _, given = part.partition("=")
            value = int(given) if given.strip() else value
            self.enums.append((key.strip(), value))
            value += 1

    # ---- types ----

    def type_of(self, text):
        """The ctypes expression of a type without a name."""
        text = re.sub(r"\bconst\b", " ", text)
        text = re.sub(r"\s+", " ", text).strip()
        stars = text.count("*")
        base = text.replace("*", "").strip()
        if base.startswith("enum "):
            base = "int"
        if base == "void":
            return "None" if stars == 0 else "c_void_p" if stars == 1 else "POINTER(c_void_p)"
        if base in self.callbacks:
            return base
        if base.startswith("struct "):
            return "POINTER(" * stars + base[7:] + ")" * stars
        if base in self.opaque:
            return "POINTER(" * (stars - 1) + "c_void_p" + ")" * (stars - 1)
        if base == "char" and stars:
            return "POINTER(" * (stars - 1) + "c_char_p" + ")" * (stars - 1)
        if base not in SCALARS:
            raise SystemExit(f"layouts.py: what is a {text!r}?")
        return "POINTER(" * stars + SCALARS[base] + ")" * stars

    def parameter(self, text):
        """The type of a parameter with its name."""
        text = text.strip()
        if text == "void":
            return None
        array = re.search(r"\[[^]]*\]$", text)
        if array:
            text = text[: array.start()]
        match = re.fullmatch(r"(.*?)(\w+)", text, flags=re.S)
        kind = match[1] + ("*" if array else "")
        if not match[1].strip():
            raise SystemExit(f"layouts.py: a parameter without a name in {text!r}")
        return "POINTER(c_char)" if array and "char" in kind else self.type_of(kind)

    def parameters(self, text):
        types = [self.parameter(part) for part in text.split(",")]
        return [kind for kind in types if kind]

    def function_type(self, result, parameters):
        return "CFUNCTYPE(" + ", ".join([self.type_of(result), *self.parameters(parameters)]) + ")"

    def members(self, body):
        for part in body.split(";"):
            part = part.strip()
            if not part:
                continue
            function = re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", part, flags=re.S)
            if function:
                yield function[2], self.function_type(function[1], function[3])
                continue
            first, *others = part.split(",")
            match = re.fullmatch(r"(.*?)(\**)(\w+)((?:\[\w+\])*)", first.strip(), flags=re.S)
            base = match[1]
            yield match[3], self.sized(base + match[2], match[4])
            for other in others:
                match = re.fullmatch(r"(\**)(\w+)((?:\[\w+\])*)", other.strip())
                yield match[2], self.sized(base.rstrip("* ") + " " + match[1], match[3])

    def sized(self, kind, sizes):
        result = self.type_of(kind)
        for size in reversed(re.findall(r"\[(\w+)\]", sizes)):
            number = self.constants.get(size, dict(self.enums).get(size))
            result = f"{result} * {number if number is not None else int(size)}"
        return result


def in_order(reader):
    """Structures, each after those that it contains or points to."""
    done, order = set(), []

    def visit(name):
        if name in done or name not in reader.structs:
            return
        done.add(name)
        for inner in re.findall(r"struct (\w+)", reader.structs[name]):
            visit(inner)
        order.append(name)

    for name in reader.structs:
        visit(name)
    return order


def write(reader):
    out = ['"""Structures and functions of the C interface. Made by tools/layouts.py from include/trireme; not edited."""', ""]
    names = "CFUNCTYPE POINTER Structure c_bool c_char c_char_p c_double c_float c_int c_int32 c_int64 c_size_t c_uint8 c_uint64 c_void_p"
    out += ["# ruff: noqa", "# mypy: ignore-errors", "from ctypes import (", *[f"    {name}," for name in names.split()], ")", ""]
    for name, value in [*reader.constants.items(), *reader.enums]:
        out.append(f"{name} = {value}")
    out.append("")
    # Types of functions may take structures, and structures contain such types: so types of functions take addresses of
    # structures.
    for name, (result, parameters) in reader.callbacks.items():
        kinds = [re.sub(r"POINTER\(tr_\w+\)", "c_void_p", kind) for kind in [reader.type_of(result), *reader.parameters(parameters)]]
        out.append(f"{name} = CFUNCTYPE({', '.join(kinds)})")
    for name in in_order(reader):
        out += ["", "", f"class {name}(Structure):", "    _fields_ = ["]
        for member, kind in reader.members(reader.structs[name]):
            out.append(f'        ("{member}", {kind}),')
        out.append("    ]")
    out += ["", "", "#: Of each function: the result, and the parameters.", "FUNCTIONS = {"]
    for name, result, parameters in reader.functions:
        out.append(f'    "{name}": ({reader.type_of(result)}, [{", ".join(reader.parameters(parameters))}]),')
    out += ["}", "", "STRUCTURES = [", *[f"    {name}," for name in in_order(reader)], "]", ""]
    return "\n".join(out)


def main():
    reader = Reader()
    for header in sorted(HEADERS.glob("*.h")):
        reader.read(header.read_text())
    text = write(reader)
    if "--check" in sys.argv:
        if TARGET.read_text() != text:
            raise SystemExit("python/trireme/_layouts.py is not as the headers are: run python3 python/tools/layouts.py")
        return
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
