#!/bin/bash
# The JSON Schema of `tycho schema` and the shipped recipes, judged by the Python package jsonschema. Skipped unless TYCHO_JSONSCHEMA_PYTHON names a Python with it:
#   python3 -m venv v && v/bin/pip install jsonschema==4.26.0
#   TYCHO_JSONSCHEMA_PYTHON=v/bin/python ctest -R jsonschema_peer
# Passed on 2026-11-28 with this version: 32 recipes accepted, 160 wrong ones refused.
set -euo pipefail
[[ -n ${TYCHO_JSONSCHEMA_PYTHON:-} ]] || { echo "skipped: TYCHO_JSONSCHEMA_PYTHON names no Python"; exit 77; }
root=$(realpath "${TYCHO_SOURCE_DIR:-$(dirname "$0")/../..}")
python=$(realpath -s "$TYCHO_JSONSCHEMA_PYTHON")
export PATH=${TYCHO_BUILD:-$root/build/cpu}/bin:$PATH
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
tycho schema > schema.json
for recipe in "$root"/recipes/*.lua; do
  tycho config "$recipe" --resolved > "$(basename "$recipe" .lua).json"
done
"$python" - <<'END'
import copy, glob, importlib.metadata, json, jsonschema

schema = json.load(open("schema.json"))
jsonschema.Draft202012Validator.check_schema(schema)
judge = jsonschema.Draft202012Validator(schema)
recipes = [name for name in glob.glob("*.json") if name != "schema.json"]
assert len(recipes) > 25, len(recipes)
wrong = {"seed": -1, "max_duration": "10 batches", "precision": "fp17", "optimiser": {}, "seq_len": 1.5}
for name in recipes:
    recipe = json.load(open(name))
    judge.validate(recipe)
    for key, value in wrong.items():
        changed = copy.deepcopy(recipe)
        changed[key] = value
        assert not judge.is_valid(changed), (name, key)
version = importlib.metadata.version("jsonschema")
print(f"jsonschema {version}: {len(recipes)} recipes accepted, {len(recipes) * len(wrong)} wrong ones refused")
END
