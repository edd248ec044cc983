# needs: numpy
"""The Python blocks of the tutorials run, those of a page one after the other: test_pages.py TRIREME SOURCE."""

import os
import pathlib
import re
import sys
import tempfile

source = pathlib.Path(sys.argv[2]).resolve()
os.chdir(tempfile.mkdtemp(prefix="trireme-pages-"))
pages = sorted((source / "docs" / "tutorials").glob("*.md"))
ran = 0
for page in pages:
    space = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.M | re.S):
        exec(compile(block, str(page), "exec"), space)
        ran += 1
    if "run" in space:
        # What a tutorial trains must have learned something.
        assert space["run"].history[-1]["accuracy"] > 0.9, (page.name, space["run"].history[-1])
assert ran >= 2, pages
print(f"{ran} blocks of {len(pages)} pages")
