"""gpu_check.py TOOL TRIREME HELPER FOLDER: tools/gpu-check on the stand-in for CUDA's driver says that all is right, and what was compared;
with a command that trains another job on the device it says what is wrong, and without time what it left out. FOLDER has room for what is
kept from run to run.

gpu_check.py installed CMAKE BUILD FOLDER: the same of an installation, which finds its programs by itself; nothing else of the tree is at hand."""

import json
import os
import stat
import subprocess
import sys
import tempfile

TOOL, TRIREME, HELPER, FOLDER = sys.argv[1:5]


def check(place, trireme, *more):
    return run(place, TOOL, "--trireme", trireme, "--helper", HELPER, "--models", "penguins,mnist-mlp", "--steps", "4", "--minutes", "60", *more)


def run(place, tool, *more):
    words = [sys.executable, tool, "--device", "cuda:0", "--cache", os.path.join(FOLDER, "gpu-check"), "--out", place, "--jobs", "", *more]
    done = subprocess.run(words, capture_output=True, text=True, cwd=place)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    with open(os.path.join(place, "gpu-check.json"), encoding="utf-8") as file:
        result = json.load(file)
    with open(os.path.join(place, "gpu-check.md"), encoding="utf-8") as file:
        page = file.read()
    return done.returncode, result, page, done.stdout


def all_is_right(place):
    code, result, page, said = check(place, TRIREME, "--equality", "20")
    assert code == 0 and result["wrong"] == [], said
    assert [device["name"] for device in result["devices"]] == ["cuda:0"], result["devices"]
    device = result["devices"][0]
    assert device["state"] == "exact" and device["first choice"] is True
    assert device["equality"]["equal"] >= 1 and device["equality"]["differs"] == {}, device["equality"]
    assert device["hashes"] == {"penguins": "equal", "mnist-mlp": "equal"}, device["hashes"]
    assert set(device["ranks"].values()) == {"equal"} and len(device["ranks"]) == 2, device["ranks"]
    assert {row["operation"] for row in device["products"]} == {"dense_forward", "dense_backward_weights", "conv_forward", "winograd_forward"}
    assert all(row["GFLOP/s"] > 0 for row in device["products"])
    assert not [text for text in result["left out"] if "operations" not in text], result["left out"]
    assert set(device["seconds"]) == {"equality", "hashes", "ranks", "speed", "jobs"} and result["seconds"] > 0
    assert "sm_80" in device["driver"] and "All that was tried is right." in page and "| hash of penguins, 4 steps | equal |" in page


def another_hash_is_wrong(place):
    path = os.path.join(place, "otherwise")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase "$*" in *"--device cuda:0"*) exec {TRIREME} "$@" --set seed=77 ;; esac\nexec {TRIREME} "$@"\n')
    os.chmod(path, stat.S_IRWXU)
    code, result, page, said = check(place, path, "--equality", "1", "--no-speed")
    assert code == 1, said
    assert any("penguins on cuda:0 ends with another hash" in text for text in result["wrong"]), result["wrong"]
    assert any("two ranks on one device" in text for text in result["wrong"]), result["wrong"]
    assert "**Wrong:**" in page, page


def what_is_left_out_is_told(place):
    code, result, page, said = check(place, TRIREME, "--equality", "1", "--minutes", "0.01")
    assert code == 0 and result["wrong"] == [], said
    assert result["left out"] == [f"cuda:0: {part}" for part in ("operations", "hashes of models", "several ranks", "products", "trainings")], said
    assert "Left out for time (`--minutes` gives more):" in page and "- cuda:0: several ranks" in page, page


def an_installation_is_enough(place, cmake, build):
    """Moved after it was installed, and no program of it in PATH."""
    prefix = os.path.join(place, "prefix")
    subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True, capture_output=True)
    os.rename(prefix, os.path.join(place, "moved"))
    tool = os.path.join(place, "moved", "share", "trireme", "gpu-check")
    said = subprocess.run([sys.executable, tool, "--help"], capture_output=True, text=True, check=True).stdout
    assert "usage: gpu-check" in said, said
    code, result, page, said = run(place, tool, "--models", "penguins", "--steps", "2", "--equality", "1", "--no-speed", "--minutes", "60")
    assert code == 0 and result["wrong"] == [], said
    device = result["devices"][0]
    assert device["equality"]["equal"] >= 1 and device["hashes"] == {"penguins": "equal"} and set(device["ranks"].values()) == {"equal"}, device


def skip_without_opencl(trireme):
    devices = subprocess.run([trireme, "devices"], capture_output=True, text=True)
    if "cuda:0" not in devices.stdout:
        print(f"skipped: no OpenCL for the stand-in\n{devices.stdout}")
        sys.exit(77)


def main():
    if TOOL == "installed":
        skip_without_opencl(os.path.join(HELPER, "cli", "trireme"))
        with tempfile.TemporaryDirectory(prefix="trireme-gpu-check-test-") as place:
            an_installation_is_enough(place, TRIREME, HELPER)
        print("gpu-check runs from an installation")
        return
    skip_without_opencl(TRIREME)
    with tempfile.TemporaryDirectory(prefix="trireme-gpu-check-test-") as place:
        all_is_right(place)
        another_hash_is_wrong(place)
        what_is_left_out_is_told(place)
    print("gpu-check tells what is right and what is not")


main()
