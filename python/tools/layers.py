"""Writes trireme/layers.py, a function for each kind of layer, from the reference of the model file.

    python3 python/tools/layers.py                    writes it, from docs/reference/model-file.md
    python3 python/tools/layers.py --check [MANUAL]   compares it with the reference, or with MANUAL as
                                                      `trireme inspect --manual` prints it; exits with 1 if not

The reference is made from the option tables of the program, so that names, types, choices and defaults follow from these.
"""

import keyword
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANUAL = ROOT / "docs" / "reference" / "model-file.md"
TARGET = ROOT / "python" / "trireme" / "layers.py"
WIDTH = 120

HEAD = '''"""The layers as functions, and whole models of them.

    from trireme import layers

    net = [layers.dense(64, activation="relu"), layers.dropout(0.2), layers.dense(10)]
    run = trireme.train(layers.model(net, optimizer={"rule": "adam", "rate": 1e-3}), x, y)

Each function gives an item of `layers:` of the model file. What is left out takes the default of the program, which also
checks ranges and shapes. Every layer takes these beside its own:

@COMMON@

Made by tools/layers.py from the option tables of the program; not edited.
"""

# mypy: warn_unused_ignores = False
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union

from ._layer import Layer, make, model

#: Initial values: a number, a name ("he_normal"), or a name with its options ({"normal": {"deviation": 0.1}}).
Initializer = Union[float, str, Mapping[str, Any]]
'''


KINDS = (
    ("a list of integers", "int or sequence of int"),
    ("an integer or a list of two", "int or sequence of two int"),
    ("a list of texts", "str or sequence of str"),
    ("an integer", "int"),
    ("a number", "float"),
    ("true or false", "bool"),
    ("a text", "str"),
    ("a section", "initializer"),
)


class Option:
    """A row of a table of the reference."""

    def __init__(self, key, value, default, meaning):
        self.key, self.value, self.default, self.meaning = key.strip("`"), value, default.strip("`"), meaning
        self.required = default == "required"
        self.name = self.key + "_" if keyword.iskeyword(self.key) else self.key

    def type(self):
        if self.value.startswith("`"):
            return "Literal[" + ", ".join(f'"{choice}"' for choice in re.findall(r"`([^`]*)`", self.value)) + "]"
        for words, kind in (
            ("an integer or a list of two", "int | Sequence[int]"),
            ("a list of integers", "int | Sequence[int]"),
            ("a list of texts", "str | Sequence[str]"),
            ("an integer", "int"),
            ("a number", "float"),
            ("true or false", "bool"),
            ("a text", "str"),
            ("a section", "Initializer"),
        ):
            if self.value.startswith(words):
                return kind
        raise SystemExit(f"layers.py: what is {self.value!r} of {self.key}?")

    def declared(self):
        return f"{self.name}: {self.type()}" + ("" if self.required else " | None = None")

    def described(self):
        # In the notation of numpydoc: {"same", "valid"}, int, >= 1.
        value = re.sub("`([^`]*)`", r'"\1"', self.value)
        value = "{" + value + "}" if self.value.startswith("`") else value
        for words, kind in KINDS:
            value = value.replace(words, kind)
        default = {"true": "True", "false": "False"}.get(self.default, self.default)
        default = "" if self.required else f", default {default}" if default else ""
        lines = [f"    {self.name} : {value}{default}"]
        return lines + textwrap.wrap(self.meaning, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def rows(section):
    found = re.findall(r"^\| (`[^|]*`) \| ((?:[^|]|\\\|)*?) ?\| ((?:[^|]|\\\|)*?) ?\| (.*?) \|$", section, flags=re.M)
    return [Option(*row) for row in found]


def read(manual):
    """The options of all layers, and for each kind its description and its options."""
    layers = manual.split("\n## Layers\n", 1)[1]
    common, kinds = [], []
    for part in layers.split("\n### ")[1:]:
        title, _, body = part.partition("\n")
        if title == "Initializers":
            break
        if title == "every layer":
            common = rows(body)
        else:
            about = body.strip().split("\n\n", 1)[0].replace("`", "")
            kinds.append((title, about, rows(body)))
    if len(kinds) < 30 or not common:
        raise SystemExit(f"layers.py: {len(kinds)} kinds and {len(common)} common options were found")
    return common, kinds


def function(kind, about, own, common):
    required = [option for option in own if option.required]
    # The first option may be given without its name, as in the model file, and so may required options.
    first = required or own[:1]
    others = [option for option in own if option not in first] + common
    lines = ["", "", f"def {kind}("]
    lines += [f"    {option.declared()}," for option in first]
    lines += ["    *,"] + [f"    {option.declared()}," for option in others] + [") -> Layer:"]
    lines += textwrap.wrap('"""' + about, WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += ["", "    Parameters", "    ----------"]
    for option in (option for option in first + others if option not in common):
        lines += option.described()
    for option in common:
        lines += option.described()
    lines += ["", "    Returns", "    -------", "    Layer", "        an item of `layers:`", '    """']
    return lines + [f'    return make("{kind}", locals())']


def write(manual):
    common, kinds = read(manual)
    described = "\n".join(line for option in common for line in option.described())
    lines = [HEAD.replace("@COMMON@", described)]
    names = ["Initializer", "Layer", "model", *[kind for kind, _, _ in kinds]]
    lines += ["__all__ = [", *[f'    "{name}",' for name in sorted(names)], "]"]
    for kind, about, own in kinds:
        lines += function(kind, about, own, common)
    return "\n".join(lines) + "\n"


def main():
    words = sys.argv[1:]
    check = words[:1] == ["--check"]
    manual = pathlib.Path(words[1]) if words[1:] else MANUAL
    text = write(manual.read_text())
    if not check:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        raise SystemExit("python/trireme/layers.py is not as the layers are: run python3 python/tools/layers.py")


if __name__ == "__main__":
    main()
