"""sbom.py VERSION LIBRARIES FILE...: writes, in CycloneDX 1.6 JSON to standard output, of which works of others a release is made.

LIBRARIES is share/doc/trireme/libraries.tsv of the archive: name, version, package and licence of each library inside. FILE are the
packages, which are listed with their SHA-256. Equal arguments and SOURCE_DATE_EPOCH give equal bytes.
"""

import datetime
import hashlib
import json
import os
import pathlib
import sys
import uuid


def licence(words):
    """One identifier of SPDX, or an expression of several."""
    return [{"expression": words}] if " " in words else [{"license": {"id": words}}]


def main(version, libraries, *files):
    reference = f"pkg:generic/trireme@{version}"
    components = []
    for line in pathlib.Path(libraries).read_text().splitlines():
        name, of, _, words = line.split("\t")
        purl = f"pkg:deb/debian/{name}@{of.replace('+', '%2B').replace(':', '%3A')}?arch=source&distro=bullseye"
        components.append({"type": "library", "bom-ref": purl, "name": name, "version": of, "purl": purl, "licenses": licence(words)})
    inside = [component["bom-ref"] for component in components]
    for file in map(pathlib.Path, sorted(files)):
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        components.append(
            {"type": "file", "bom-ref": file.name, "name": file.name, "hashes": [{"alg": "SHA-256", "content": digest}]}
        )
    told = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": told.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": "trireme",
                "version": version,
                "purl": reference,
                "licenses": licence("Apache-2.0"),
            },
        },
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": inside}],
    }
    bill["serialNumber"] = "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bill, sort_keys=True)))
    json.dump(bill, sys.stdout, indent=2, sort_keys=True)
    print()


main(*sys.argv[1:])
