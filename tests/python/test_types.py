# needs: numpy mypy
"""The hints of the package are complete and true, and everything that it shows has words: test_types.py TRIREME SOURCE."""

import functools
import importlib.util
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


def test_numpydoc():
    """The form of the words, as numpydoc has it: each parameter, its type and what is returned."""
    if importlib.util.find_spec("numpydoc") is None:
        print("skipped: numpydoc is not there", flush=True)
        return
    from numpydoc.validate import validate

    names = [f"trireme.{name}" for name in trireme.__all__ if name != "numerics_version"]
    names += [f"trireme.layers.{name}" for name in layers.__all__ if inspect.isfunction(getattr(layers, name))]
    if importlib.util.find_spec("sklearn") is not None:
        importlib.import_module("trireme.sklearn")
        names += ["trireme.sklearn.TriremeClassifier", "trireme.sklearn.TriremeRegressor"]
    for name in list(names):
        shown = functools.reduce(getattr, name.split(".")[1:], importlib.import_module("trireme"))
        members = vars(shown).items() if inspect.isclass(shown) else ()
        names += [f"{name}.{key}" for key, value in members if not key.startswith("_") and callable(value)]
    assert len(names) > 70
    # The library makes these; their words tell the members.
    made = {f"trireme.{name}" for name in ("Event", "History", "Interrupted", "Run")}
    wanted = {"GL08", "PR01", "PR02", "PR03", "PR04", "PR06", "PR07", "RT01", "RT03", "SS01", "YD01"}
    for name in names:
        faults = [fault for fault in validate(name)["errors"] if fault[0] in wanted]
        assert not [fault for fault in faults if (fault[0], name in made) != ("PR01", True)], (name, faults)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
