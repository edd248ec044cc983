# needs: numpy mypy
"""The hints of the package are complete and true, and everything that it shows has words: test_types.py TRIREME SOURCE."""

import inspect
import pathlib
import subprocess
import sys
import tempfile

import trireme
from trireme import layers

package = pathlib.Path(sys.argv[2]) / "python" / "trireme"


def check(*arguments):
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *arguments]
        return subprocess.run(words, capture_output=True, text=True, cwd=package.parent)


def test_package():
    said = check("trireme")
    assert said.returncode == 0, said.stdout


def test_program():
    """A program that uses it: what is right passes, and each mistake is found where it is."""
    lines = [
        "import trireme",
        "from trireme import layers",
        "net = [layers.dense(3, activation='relu'), layers.conv(4, kernel=(3, 3), from_='input')]",
        "run: trireme.Run = trireme.train(layers.model(net), [[1.0]], [0], callbacks=[lambda event: event.loss < 1])",
        "digits: str = run.hash",
        "layers.dense(3, activation='rely')",
        "layers.dense('three')",
        "layers.dense(3, unit=2)",
        "trireme.train(3)",
        "run.hash + 1",
    ]
    with tempfile.TemporaryDirectory() as place:
        program = pathlib.Path(place) / "program.py"
        program.write_text("\n".join(lines) + "\n")
        said = check(str(program)).stdout
    found = {int(line.split(":")[1]) for line in said.splitlines() if "program.py:" in line and " error: " in line}
    assert found == {6, 7, 8, 9, 10}, said


def test_words():
    for name in trireme.__all__:
        shown = getattr(trireme, name)
        if name == "numerics_version":
            continue
        assert inspect.getdoc(shown), name
        for member, value in vars(shown).items() if inspect.isclass(shown) else ():
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"
    for name in layers.__all__:
        shown = getattr(layers, name)
        if inspect.isfunction(shown):
            words = inspect.getdoc(shown)
            # numpydoc: each parameter has a line of its own, or one with others.
            for parameter in inspect.signature(shown).parameters:
                assert f"{parameter} : " in words or f"{parameter}, " in words or f", {parameter}\n" in words, (name, parameter)
    words = inspect.getdoc(trireme.train)
    for parameter in inspect.signature(trireme.train).parameters:
        assert any(parameter in line.split(" : ")[0].split(", ") for line in words.splitlines() if " : " in line), parameter


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
