"""What OmegaConf makes of scalars and of ${...}: documents, and the value of their key x or that there is none.

Writes omegaconf_values.json, which document_test and interpolation_test read. LLM Foundry reads its YAML with OmegaConf.
Made with omegaconf 2.4.0:
  pip install omegaconf==2.4.0 && python tests/golden/omegaconf_values.py
"""
import json
import math
import pathlib

from omegaconf import DictConfig, ListConfig, OmegaConf

OUT = pathlib.Path(__file__).parent / "omegaconf_values.json"

SCALARS = """0o10 010 0b101 0x1F 12:30 1:2:3 1_000 +5 .5 -.5e-3 1e3 1. .inf -.Inf .nan 1e-4 6.0e-4 2001-01-01 y n on ~ 1e+3 00 08 -010
1E5 3e4tok 100ba 0.10dur True FALSE yes no Off null Null 0x 1__0 1e 1e5.0 0b2 -0x10 +0b11 60:00
1:2.5 -1:02.25 1:2:3. 01:30.5 +1_0:5.25 1:60.5 1:2.5e1 = << =x <<x""".split()

VALUES = "l: [1, 2.0, true, null, a]\nm: {a: 1, b: x, k: {n: 7}}\nb: true\nf: 1.0\ng: 6.0e-4\nh: 1e-5\nbig: 1e16\ni: 1000000000000000000\nn: null\ns: m\nt: '1'\ne: .inf\nv: 3\n"

REFERENCES = [
    "a-${l}", "a-${m}", r"a\${v}", r"a\\${v}b", r"a\\\${v}b", r"no \\ here", r"a\b${v}", "z${b}", "z${f}", "z${g}", "z${h}", "z${big}", "z${i}", "z${n}",
    "z${e}", "${${s}.a}", "${${t}}", "${l[1]}", "${l.1}", "${l[-1]}", "${m[a]}", "${m.k.n}", "${m[k][n]}", "${[m].a}", "${ v }", "a}b", "${v", "${v}}", "$ {v} ${v}",
    "${t}", "${v}${v}", "${.v}", "${..v}", "${.m.a}", "${m.${t}}", "${nothing}", "${m.nothing}", "${l[9]}", "${x}", "${b}", "${n}", "${f}",
    "${${s}.${m.b}}", "x${l[4]}y", "${v}ba",
]


def described(document):
    try:
        value = OmegaConf.create(document).x
    except Exception:
        return {"kind": "error"}
    if isinstance(value, (ListConfig, DictConfig)):
        return {"kind": "container"}
    if value is None:
        return {"kind": "null"}
    if isinstance(value, bool):
        return {"kind": "bool", "value": value}
    if isinstance(value, int):
        return {"kind": "integer", "value": str(value)}
    if isinstance(value, float):
        return {"kind": "number", "value": value if math.isfinite(value) else str(value)}
    return {"kind": "text", "value": str(value)}


def main():
    cases = [{"yaml": f"x: {text}\n", **described(f"x: {text}\n")} for text in SCALARS]
    for text in REFERENCES:
        document = VALUES + "x: '" + text + "'\n"
        cases.append({"yaml": document, **described(document)})
    nested = "v: 3\nm: {w: 4, deep: {u: '${.z}', z: 5, up: '${..w}', top: '${...v}'}}\nx: ${m.deep.%s}\n"
    for key in ["u", "up", "top"]:
        cases.append({"yaml": nested % key, **described(nested % key)})
    OUT.write_text("[" + ",\n".join(json.dumps(case) for case in cases) + "]\n")


if __name__ == "__main__":
    main()
