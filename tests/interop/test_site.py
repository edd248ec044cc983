# needs: mkdocs
"""docs/ builds as a site in which every page can be reached and found: test_site.py TRIREME SOURCE BUILD."""

import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

source = pathlib.Path(sys.argv[2])
settings = yaml.safe_load((source / "mkdocs.yml").read_text())


def pages(entries):
    for entry in entries:
        for target in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(target, list):
                yield from pages(target)
            else:
                yield target


listed = list(pages(settings["nav"]))
assert len(listed) == len(set(listed)), "a page stands twice in mkdocs.yml"
there = {str(path.relative_to(source / "docs")) for path in (source / "docs").rglob("*.md")}
# Laboratory notes are reached by their list.
there = {page for page in there if not page.startswith("lab/") or page == "lab/README.md"}
assert set(listed) == there, f"mkdocs.yml and docs/ differ: {sorted(set(listed) ^ there)}"

with tempfile.TemporaryDirectory() as site:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site, "--config-file", source / "mkdocs.yml"],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    index = json.loads((pathlib.Path(site) / "search" / "search_index.json").read_text())
    found = {document["location"] for document in index["docs"]}
    for page in listed:
        location = page.removesuffix(".md") + "/" if page != "README.md" else ""
        location = location.replace("README/", "")
        assert location in found, f"{page} cannot be found by the search"
print(f"{len(listed)} pages, {len(index['docs'])} entries of the search")
