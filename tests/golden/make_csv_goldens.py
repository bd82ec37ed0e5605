"""Writes tests/golden/csv/: small CSV and TSV files, and rows.json with the rows that Python's csv module reads from them (strict, opened as
utf-8-sig), or the word "error" where it refuses a file. Blank lines are no rows. Needs nothing but Python; made with 3.11.

    python tests/golden/make_csv_goldens.py
"""
import csv
import json
import pathlib
import random

OUT = pathlib.Path(__file__).parent / "csv"

FILES = {
    "plain.csv": "id,text\n1,one\n2,two words\n",
    "crlf.csv": "id,text\r\n1,one\r\n\r\n2,two\r\n",
    "no_last_newline.csv": "text\none\ntwo",
    "carriage_returns.csv": "id,text\r1,one\r2,two\r",
    "byte_order_mark.csv": "\ufefftext,id\na,1\n",
    "byte_order_mark_in_quotes.csv": '\ufeff"text",id\na,1\n',
    "quoted.csv": 'id,text\n1,"one, two"\n2,"a ""word"""\n3,""\n4,""""\n',
    "line_breaks.csv": 'text,id\n"first\nsecond\r\nthird\n\n",1\n"x",2\n',
    "quotes_inside.csv": 'text,id\nthe 5" disk,1\n "kept" ,2\na"b"c,3\n',
    "empty_values.csv": "a,text,b\n,,\n,x,\n1,,2\n",
    "ends_with_separator.csv": "text,b\nx,",
    "one_column.csv": 'text\n\n""\nx\n\n',
    "unicode.csv": "text\ngröße, 東京\n".replace(", ", " ") + "\U0001f600\u2028x\n",
    "tabs.tsv": 'id\ttext\n1\tone, two\n2\t"with\ttab"\n',
    "behind_quotes.csv": 'id,text\n1,"one"x\n',
    "space_behind_quotes.csv": 'id,text\n1,"one" \n',
    "never_closed.csv": 'id,text\n1,"one\n2,two\n',
}


def random_value(rng):
    inside = "".join(rng.choice(["x", "ab c", "ö", " ", ",", "\n", "\r\n", '""', "\r"]) for _ in range(rng.randrange(4)))
    outside = "".join(rng.choice(["x", "ab c", "ö", " ", 'q"r']) for _ in range(rng.randrange(3)))
    return rng.choice([outside, f'"{inside}"', f'"{inside}"', f'"{inside}"' + rng.choice(["", "", "", outside, '"'])])


def random_file(rng):
    rows = [f"{random_value(rng)},{random_value(rng)}{rng.choice([chr(10), chr(13), chr(13) + chr(10), chr(10) * 2])}" for _ in range(4)]
    return "a,b\n" + "".join(rows)[: rng.choice([None, None, -1, -2])]


def read(path):
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return [row for row in csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True) if row]
    except csv.Error:
        return "error"


def main():
    OUT.mkdir(exist_ok=True)
    rng = random.Random(17)
    rows = {"files": {}, "random": []}
    for name, text in FILES.items():
        (OUT / name).write_text(text, encoding="utf-8", newline="")
        rows["files"][name] = read(OUT / name)
    scratch = OUT / "scratch.csv"
    for _ in range(300):
        text = random_file(rng)
        scratch.write_text(text, encoding="utf-8", newline="")
        rows["random"].append([text, read(scratch)])
    scratch.unlink()
    lines = [f"{json.dumps(name)}: {json.dumps(made)}" for name, made in rows["files"].items()]
    cases = [json.dumps(case) for case in rows["random"]]
    text = '{"files": {\n' + ",\n".join(lines) + '},\n"random": [\n' + ",\n".join(cases) + "]}\n"
    (OUT / "rows.json").write_text(text, encoding="utf-8")
    print(sum(made == "error" for _, made in rows["random"]), "of 300 refused")


if __name__ == "__main__":
    main()
