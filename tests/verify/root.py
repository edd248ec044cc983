"""root.py DIRECTORY: computes the roots of a run's checkpoints from their files alone, and compares them with its receipt.

A second telling of src/receipt/canonical.h and merkle.h, of the chain's beginning, and of nothing of the program's.
"""

import hashlib
import json
import pathlib
import re
import struct
import sys

LEAF = 65536


def sha(data):
    return hashlib.sha256(data).digest()


def tree(leaves):
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while 2 * half < len(leaves):
        half *= 2
    return sha(b"\1" + tree(leaves[:half]) + tree(leaves[half:]))


def tensors(path):
    """Pairs of name, description and data."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            shape = "x".join(map(str, entry["shape"]))
            yield name, entry["dtype"] + (" " + shape if shape else ""), data[8 + length + first : 8 + length + end]


def root(checkpoint):
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    lines = ["trireme state 1", "step %d" % manifest["step"]]
    for name, value in sorted(manifest["metrics"].items()):
        bits = 0x7FF8000000000000 if value is None else struct.unpack("<Q", struct.pack("<d", value))[0]
        lines.append("%s %016x" % (name, bits))
    for name in manifest["files"]:
        if name not in ("model.yaml", "run.receipt"):
            lines.append(name + " " + hashlib.sha256((checkpoint / name).read_bytes()).hexdigest())
    parts = []
    for group in ("optimizer", "parameters"):
        for name, form, data in tensors(checkpoint / (group + ".safetensors")):
            parts.append((group + "/" + name, form, data))
    parts.sort(key=lambda part: part[0].encode())
    lines += [name + " " + form for name, form, _ in parts]
    blocks = [("\n".join(lines) + "\n").encode()] + [data for _, _, data in parts]
    return tree([sha(b"\0" + block[i : i + LEAF]) for block in blocks for i in range(0, len(block), LEAF)])


def main():
    run = pathlib.Path(sys.argv[1])
    receipt = json.loads((run / "run.receipt").read_text())
    boundaries = receipt["boundaries"]
    begin = sha(
        b"\2" + bytes.fromhex(receipt["settings"]) + bytes.fromhex(receipt["data"]) + bytes.fromhex(boundaries["0"][0])
    )
    compared = 0
    for checkpoint in sorted(run.glob("checkpoint-*")):
        step = re.fullmatch(r"checkpoint-(\d{8})", checkpoint.name)
        if not step:
            continue
        found, claimed = root(checkpoint).hex(), boundaries[str(int(step[1]))][0]
        if found != claimed:
            sys.exit("%s: root %s, the receipt says %s" % (checkpoint, found, claimed))
        compared += 1
    if begin.hex() != boundaries["0"][1]:
        sys.exit("the chain begins with %s, the receipt says %s" % (begin.hex(), boundaries["0"][1]))
    if compared < 2:
        sys.exit("%d checkpoints to compare" % compared)
    print("%d roots are those that Python computes" % compared)


main()
