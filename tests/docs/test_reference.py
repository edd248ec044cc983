"""What tools/reference.py says of headers: nothing of whole ones, and each thing that has no words: test_reference.py SOURCE."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])

WHOLE = """/* A header: what it is for. */
#ifndef TRIREME_SAMPLE_H
#define TRIREME_SAMPLE_H

typedef struct tr_sample tr_sample;

/* How it went. */
enum tr_sample_kind {
    TR_SAMPLE_GOOD, /* well */
    TR_SAMPLE_BAD   /* not */
};

/* What it is. */
struct tr_sample_info {
    size_t size; /* sizeof(struct tr_sample_info) */
    /* Of all. */
    int count;
    const char *name; /* "sample" */
};

/* Told of each. */
typedef int (*tr_sample_listener)(void *user, int number);

/* Makes one. TR_ENOMEM. */
TR_API tr_status tr_sample_create(const char *name,
                                  tr_sample **out);
TR_API void tr_sample_destroy(tr_sample **sample);

/* Counts. Any thread. */
TR_API int tr_sample_count(const tr_sample *sample);
#endif
"""
# What is taken out of that, and what is said then.
FAULTS = {
    "/* Counts. Any thread. */\n": "sample.h: tr_sample_count has no words",
    "/* Makes one. TR_ENOMEM. */\n": "sample.h: tr_sample_create has no words",
    "/* Told of each. */\n": "sample.h: tr_sample_listener has no words",
    "/* What it is. */\n": "sample.h: tr_sample_info has no words",
    "/* How it went. */\n": "sample.h: tr_sample_kind has no words",
    ' /* "sample" */': 'sample.h: tr_sample_info: "const char *name;" has no words',
    "    /* Of all. */\n": 'sample.h: tr_sample_info: "int count;" has no words',
    " /* well */": 'sample.h: tr_sample_kind: "TR_SAMPLE_GOOD," has no words',
    " /* not */": 'sample.h: tr_sample_kind: "TR_SAMPLE_BAD" has no words',
}


def check(*headers):
    with tempfile.TemporaryDirectory() as place:
        for number, text in enumerate(headers):
            (pathlib.Path(place) / ("sample.h" if number == 0 else f"other{number}.h")).write_text(text)
        words = [sys.executable, str(source / "tools" / "reference.py"), "--check", place]
        return subprocess.run(words, capture_output=True, text=True)


def test_whole():
    said = check(WHOLE)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", ""), said
    assert check().returncode != 0, "a folder without headers is a mistake"


def test_faults():
    for words, complaint in FAULTS.items():
        assert WHOLE.count(words) == 1, words
        said = check(WHOLE.replace(words, ""), WHOLE)
        lines = said.stdout.splitlines()
        assert said.returncode == 1 and complaint in lines, (words, said)
        assert all(line.startswith("sample.h: ") for line in lines), lines
    # One behind another without a blank line has its words; with one, it has none.
    apart = WHOLE.replace("TR_API void", "\nTR_API void")
    assert "sample.h: tr_sample_destroy has no words" in check(apart).stdout.splitlines()


def test_pages():
    """Words and code of the headers are what the pages say."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run([sys.executable, str(source / "tools" / "reference.py"), place], check=True)
        pages = pathlib.Path(place) / "man3"
        text = (pages / "trireme_arrays.3").read_text()
        assert "Data from memory: arrays of the caller" in text and ".SS tr_source_from_arrays" in text
        assert (pages / "tr_source_from_arrays.3").read_text() == ".so man3/trireme_arrays.3\n"
        # Each comment of a member stands behind that member's name.
        words = " ".join((pages / "trireme_predict.3").read_text().replace("\n.TP\n.B ", " | ").split())
        assert "| const char *checkpoint a checkpoint, or a directory of checkpoints" in words
        assert "| int threads 0: one per core" in words and "/*" not in words


def test_mandoc():
    """A program that reads manual pages finds nothing wrong with them, and none is wider than 80 columns."""
    if not shutil.which("mandoc"):
        print("skipped: mandoc is not here", flush=True)
        return
    with tempfile.TemporaryDirectory() as place:
        days = {"SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run([sys.executable, str(source / "tools" / "reference.py"), place], check=True, env={**os.environ, **days})
        pages = [page for page in (pathlib.Path(place) / "man3").iterdir() if not page.read_text().startswith(".so ")]
        assert len(pages) >= 10
        for page in pages:
            assert '"2023-11-14"' in page.read_text().split("\n")[0], page
            said = subprocess.run(["mandoc", "-Tlint", "-W", "base", page], capture_output=True, text=True)
            assert said.stdout + said.stderr == "", said
            shown = subprocess.run(["mandoc", "-Tutf8", "-O", "width=78", page], capture_output=True, text=True, check=True).stdout
            wide = [line for line in re.sub(".\x08", "", shown).splitlines() if len(line) > 80]
            assert not wide, (page, wide)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
