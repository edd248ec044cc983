# needs: cyclonedx in_toto_attestation
"""Receipts in the forms of others: in-toto's own library takes the Statement, CycloneDX's schema the bill of materials."""

import hashlib
import json

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2

from common import place, trireme

trireme("train", "penguins", "--receipt", "--steps", "30", "--out", "run", "--quiet", "--threads", "1")
receipt = json.loads(trireme("receipt", "run"))
with open(place("run/run.receipt"), "rb") as file:
    assert json.loads(file.read()) == receipt
with open(place("run/checkpoint-00000030/parameters.safetensors"), "rb") as file:
    parameters = hashlib.sha256(file.read()).hexdigest()

text = trireme("receipt", "run", "--format", "in-toto")
statement = json_format.Parse(text, statement_pb2.Statement())
assert statement.type == "https://in-toto.io/Statement/v1"
subjects = {subject.name: dict(subject.digest) for subject in statement.subject}
assert subjects["parameters.safetensors"] == {"sha256": parameters}
assert subjects["parameters"] == {"trireme_parameters": receipt["parameters"]}
assert subjects["state"] == {"trireme_state": receipt["boundaries"]["30"][0]}
provenance = json_format.ParseDict(json.loads(text)["predicate"], provenance_pb2.Provenance())
materials = {item.name: dict(item.digest) for item in provenance.build_definition.resolved_dependencies}
assert materials["training data"] == {"trireme_data": receipt["data"]}
assert materials["settings"] == {"trireme_settings": receipt["settings"]}
assert provenance.run_details.builder.id == "urn:trireme:program:" + receipt["program"].replace(" ", ":")

text = trireme("receipt", "run", "--format", "cyclonedx")
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert problem is None, problem
model = json.loads(text)["metadata"]["component"]
assert model["name"] == "penguins" and model["hashes"] == [{"alg": "SHA-256", "content": parameters}]
assert {item["name"]: item["value"] for item in model["properties"]}["trireme:state"] == receipt["boundaries"]["30"][0]
print("receipts are what in-toto and CycloneDX read")
