#!/bin/sh
# bill.sh SOURCE FOLDER: holds a bill of materials (packaging/sbom.py) to CycloneDX's own schema, which comes with a package of PyPI
# that is installed into FOLDER, and sees that a wrong one is refused.
set -eu
source=$1 folder=$2
skip() { echo "skipped: $1" && exit 77; }
[ -x "$folder/bin/python" ] || python3 -m venv "$folder" || skip "python3 without venv"
"$folder/bin/pip" install --quiet --disable-pip-version-check 'cyclonedx-python-lib[json-validation]' || skip "the schema cannot be had"

cat >"$folder/judge.py" <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(wrong) if wrong else 0)
END
bill() { (cd "$source" && SOURCE_DATE_EPOCH=1700000000 python3 packaging/sbom.py 1.2.3 "$folder/libraries" LICENSE README.md); }
while IFS='	' read -r package name licence; do printf '%s\t1:2.3+b-1\t%s\t%s\n' "$package" "$name" "$licence"; done \
  <"$source/packaging/libraries.tsv" >"$folder/libraries"

bill >"$folder/bill"
"$folder/bin/python" "$folder/judge.py" <"$folder/bill"
bill | cmp - "$folder/bill"
grep -q "$(sha256sum <"$source/LICENSE" | cut -d' ' -f1)" "$folder/bill" || { echo "the sum of a file is not there" && exit 1; }
if sed 's/"Zlib"/"Zip"/' "$folder/bill" | "$folder/bin/python" "$folder/judge.py" 2>/dev/null; then
  echo "the judge takes a licence that there is not" && exit 1
fi
