"""The structures of the Python package are those of the headers: test_layouts.py SOURCE COMPILER.

The list of structures, members and functions is made anew from the headers; sizes and offsets are those that the C
compiler gives.
"""

import ctypes
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

source, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
subprocess.run([sys.executable, source / "python" / "tools" / "layouts.py", "--check"], check=True)

spec = importlib.util.spec_from_file_location("layouts", source / "python" / "trireme" / "_layouts.py")
layouts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layouts)
assert len(layouts.STRUCTURES) > 20 and len(layouts.FUNCTIONS) > 60

lines = ["#include <stdio.h>", "#include <stddef.h>", "#include <trireme/trireme.h>", "int main(void)", "{"]
expected = []
for structure in layouts.STRUCTURES:
    name = structure.__name__
    lines.append(f'    printf("{name} %zu\\n", sizeof(struct {name}));')
    expected.append(f"{name} {ctypes.sizeof(structure)}")
    for member, _ in structure._fields_:
        lines.append(f'    printf("{name}.{member} %zu\\n", offsetof(struct {name}, {member}));')
        expected.append(f"{name}.{member} {getattr(structure, member).offset}")
for name in layouts.__dict__:
    if name.startswith("TR_"):
        lines.append(f'    printf("{name} %d\\n", (int){name});')
        expected.append(f"{name} {getattr(layouts, name)}")
# Every function is declared.
for name in layouts.FUNCTIONS:
    lines.append(f"    (void)sizeof(&{name});")
lines += ["    return 0;", "}"]

with tempfile.TemporaryDirectory() as place:
    program = pathlib.Path(place) / "program"
    text = program.with_suffix(".c")
    text.write_text("\n".join(lines))
    subprocess.run([compiler, "-std=c99", "-I", source / "include", text, "-o", program], check=True)
    got = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
for want, have in zip(expected, got):
    assert want == have, f"Python has {want}, C has {have}"
assert len(expected) == len(got)
print(f"{len(layouts.STRUCTURES)} structures, {len(expected)} figures agree")
