# needs: numpy pandas sklearn
"""The notebooks of docs/how-to/python.md print what the page shows: test_notebooks.py TRIREME SOURCE [--update].

A notebook is a script in examples/python whose cells begin with `# %%`. The page has each cell, the words of its first
comment as text, and its output, between `<!-- notebook: NAME -->` and `<!-- end -->`; --update writes that. The other blocks
of the page run, too, one after the other.
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile

source = pathlib.Path(sys.argv[2]).resolve()
page = source / "docs" / "how-to" / "python.md"
begin, end = "<!-- notebook: {} -->\n", "<!-- end -->\n"


def cells(text):
    """The title, and of each cell its words and its code."""
    found = []
    for cell in re.split(r"^# %%", text, flags=re.M)[1:]:
        title, _, rest = cell.partition("\n")
        lines = rest.splitlines()
        words = []
        while lines and lines[0].startswith("# "):
            words.append(lines.pop(0)[2:])
        found.append((title.strip(), "\n".join(words), "\n".join(lines).strip("\n")))
    return found


def run(name):
    """The notebook as the page should have it."""
    out, space = [], {"__name__": "__main__"}
    for title, words, code in cells((source / "examples" / "python" / f"{name}.py").read_text()):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code + "\n", f"{name}.py", "exec"), space)
        out += [f"### {title}\n\n"] if title else []
        out += [f"{words}\n\n"] if words else []
        out += [f"```python\n{code}\n```\n\n"]
        out += [f"```text\n{said.getvalue()}```\n\n"] if said.getvalue() else []
    return "".join(out)


text = page.read_text()
names = re.findall(r"^<!-- notebook: (\w+) -->$", text, flags=re.M)
assert sorted(names) == ["digits", "parallel", "table", "text"], names
different = []
for name in names:
    before, _, rest = text.partition(begin.format(name))
    shown, _, after = rest.partition(end)
    wanted = run(name)
    if shown != wanted:
        different.append(name)
        for line in [line for line in wanted.splitlines() if line not in shown.splitlines()][:20]:
            print(f"{name}: the page lacks: {line}")
    print(name, "ok" if shown == wanted else "differs", flush=True)
    text = before + begin.format(name) + wanted + end + after

blocks = re.findall(r"^```python\n(.*?)^```$", re.sub(r"<!-- notebook: .*?<!-- end -->", "", text, flags=re.S), flags=re.M | re.S)
assert len(blocks) >= 6, len(blocks)
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    space = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, "docs/how-to/python.md", "exec"), space)
    os.chdir("/")
print(len(blocks), "blocks ok", flush=True)

if "--update" in sys.argv:
    page.write_text(text)
elif different:
    sys.exit(f"docs/how-to/python.md differs from {different}; --update writes it")
