"""trireme.layers is as the option tables of the program: test_layers.py TRIREME SOURCE. Needs no NumPy.

The module is made anew from what the program prints, and the program takes what its functions give.
"""

import ctypes
import inspect
import json
import pathlib
import subprocess
import sys
import tempfile

program, source = sys.argv[1], pathlib.Path(sys.argv[2])
with tempfile.NamedTemporaryFile("w", suffix=".md") as manual:
    said = subprocess.run([program, "inspect", "--manual"], check=True, capture_output=True, text=True).stdout
    manual.write(said)
    manual.flush()
    subprocess.run([sys.executable, source / "python" / "tools" / "layers.py", "--check", manual.name], check=True)

import trireme
from checks import raises
from trireme import _layouts, layers
from trireme._library import check, lib, sized
from trireme._settings import Settings

assert "numpy" not in sys.modules
#: Something for each option that must be given.
GIVEN = {"heads": 2, "filters": 4, "kernel": 3, "units": 5, "rate": 0.25, "width": 4, "groups": 2, "begin": 1, "size": 2}
GIVEN.update(shape=[4, 4, 1], length=9, embedding="words", p=0.5)


def plan(model):
    settings = Settings(model_text=json.dumps(model))
    found = sized(_layouts.tr_train_plan)
    check(lib.tr_train_plan(ctypes.byref(settings.raw(None, [])), ctypes.byref(found)))


def test_every_layer():
    kinds = [name for name in layers.__all__ if name not in ("Initializer", "Layer", "model")]
    for kind in kinds:
        call = getattr(layers, kind)
        parameters = inspect.signature(call).parameters
        needed = [name for name, one in parameters.items() if one.default is inspect.Parameter.empty]
        many = "with_" in parameters
        given = [GIVEN[name] for name in needed]
        other = {"with_": "zero"} if many and needed else {}
        made = call("zero") if many and not needed else call(*given, **other)
        plan(layers.model([layers.relu(name="zero"), made, layers.dense(2)]))
        before = ["input", "zero"] if many else ["zero"]
        named = call(*given, name="one", from_=before, frozen=True)
        assert named[kind]["from"] == before and "from_" not in named[kind]
        plan(layers.model([layers.relu(name="zero"), named, layers.dense(2)]))
        # Each choice that the hints name is one of the program's.
        for name, one in parameters.items():
            if "Literal[" in str(one.annotation):
                for choice in eval(str(one.annotation).split("Literal", 1)[1].split("]")[0] + "]"):
                    plan(layers.model([call(*[GIVEN[one] for one in needed], **{name: choice}), layers.dense(2)]))
        raises(TypeError, lambda: call(*[GIVEN[name] for name in needed], nonsense=1), "nonsense")


def test_refusals():
    raises(trireme.ModelError, lambda: plan(layers.model([layers.dense(0)])), "units")
    raises(trireme.ModelError, lambda: plan(layers.model([layers.dense(2, activation="rely")])), "relu")
    raises(TypeError, lambda: layers.model("dense"), "list of layers")


def test_models():
    made = layers.model([layers.conv(4, 3, pad=(1, 2)), layers.relu(), layers.dense(2, weights={"normal": {"deviation": 0.1}})])
    assert made["layers"][0] == {"conv": {"filters": 4, "kernel": 3, "pad": [1, 2]}} and made["layers"][1] == "relu"
    assert made["train"] == {"batch": 32, "epochs": 10} and made["optimizer"] == {"rule": "adam", "rate": 1e-3}
    assert "epochs" not in layers.model(["relu"], train={"steps": 5})["train"]
    plan(made)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(name, "ok", flush=True)
