#!/usr/bin/env python3
"""`helm template` and `helm lint` through Helm's own engine, for machines without the helm program: pip install helm-python-sdk==0.2.2.

helm_stand_in.py template NAME CHART [--set PATH=VALUE] [--set-file PATH=FILE]...      helm_stand_in.py lint CHART
"""
import re
import sys

from helm_python import Chart, chart as charts, errors


def read_value(text):
    """A value of --set: {a,b} is a list; whole numbers, true, false and null are what they look like."""
    if text.startswith("{") and text.endswith("}"):
        return [read_value(one) for one in text[1:-1].split(",")]
    if re.fullmatch(r"0|-?[1-9][0-9]*", text):
        return int(text)
    return {"true": True, "false": False, "null": None}.get(text, text)


def put(values, path, value):
    """Dots separate keys; one after a backslash belongs to the key."""
    keys = [key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", path)]
    for key in keys[:-1]:
        values = values.setdefault(key, {})
    values[keys[-1]] = value


def main(arguments):
    verb, words, values = arguments[0], [], {}
    rest = iter(arguments[1:])
    for word in rest:
        if word in ("--set", "--set-file"):
            path, text = next(rest).split("=", 1)
            put(values, path, read_value(text) if word == "--set" else open(text, encoding="utf-8").read())
        else:
            words.append(word)
    try:
        if verb == "lint":
            report = charts.lint(words[0], values or None)
            bad = [one["error"] for one in report["messages"] if one["severity"] >= 2] + report["errors"]
            print("\n".join(bad) or "1 chart(s) linted, 0 chart(s) failed")
            return 1 if bad else 0
        chart = Chart.load(words[1])
        chart.validate_schema(chart.merge_values(values))
        for path, text in sorted(chart.render(values, name=words[0], namespace="default", is_install=True).items()):
            if text.strip() and not path.endswith((".tpl", "NOTES.txt")):
                print(f"---\n# Source: {path}\n{text.strip()}")
        return 0
    except errors.HelmError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


sys.exit(main(sys.argv[1:]))
