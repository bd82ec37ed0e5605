"""Writes tests/golden/jinja/: what transformers' own environment of Jinja makes of templates and expressions.

templates/*.jinja are templates in the style of known models, written for this test. talks.json is a list of conversations.
renders.json is a list of {template, talk, generation, tools, text}, where text is null for a template that refuses the talk.
expressions.json is {names, cases}: cases is a list of [expression, text], where text is null for an error.
blocks.json is a list of [template, text]: white space, loops, scopes, macros.
Made with jinja2 3.1.6 and transformers 5.23.0 (they need no torch):
  python tests/golden/make_jinja_goldens.py
With a folder that has templates/*.jinja of real models, only its renders.json is written, for
  TYCHO_JINJA_FOLDER=folder build/cpu/bin/data_test --gtest_filter='JinjaTemplate.*'
"""
import copy
import datetime
import itertools
import json
import pathlib
import random
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils

OUT = pathlib.Path(__file__).parent / "jinja"
DATE = datetime.datetime(2026, 3, 9)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
NAMES = {
    "a": 7, "b": -3, "z": 0, "f": 2.5, "t": True, "n": None, "s": "Hello World", "e": "", "u": "größe 🚀 x",
    "w": "  two\twords \n", "l": [3, 1, 2], "m": ["b", "A", "c", "a"], "empty": [], "d": {"role": "user", "content": "hi", "k": [1, 2]},
    "o": {}, "p": [{"role": "user", "content": "q", "n": 2}, {"role": "assistant", "content": "r", "n": 1}, {"role": "user", "content": "s"}],
}
VALUES = ["a", "b", "z", "f", "t", "n", "s", "e", "u", "w", "l", "m", "empty", "d", "o", "p", "missing", "1", "-2", "0.5", "'x'", "'lo W'",
          "[1, 2]", "(1, 2)", "{'k': 1}", "true", "none", "d.role", "d['content']", "p[0]", "p[-1].role", "d.nothing", "l[1]", "s[0]", "u[6]"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = ["abs", "capitalize", "count", "default('D')", "d('D', true)", "dictsort", "first", "float", "float(1.5)", "indent", "indent(2, true)",
           "int", "int(9)", "items|list", "join", "join(', ')", "last", "length", "list", "lower", "max", "min", "reverse|list", "reverse", "sort",
           "sort(reverse=true)", "sort(case_sensitive=true)", "string", "sum", "title", "tojson", "tojson(indent=2)", "trim", "trim('H d')",
           "unique|list", "upper", "replace('o', '0')", "replace('', '-', 3)", "map('upper')|list", "map(attribute='role')|list",
           "map(attribute='n', default=0)|list", "select('string')|list", "reject('number')|list", "selectattr('role', 'equalto', 'user')|list",
           "rejectattr('n', 'defined')|list", "selectattr('n')|list|length", "tojson(separators=(',', ':'))", "tojson(sort_keys=true, ensure_ascii=true)"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable",
         "odd", "even", "divisibleby(3)", "divisibleby 3", "eq 7", "equalto 'x'", "ne 7", "lt 3", "gt 3", "ge(2)", "le(2)", "in [7, 'x']", "lower", "upper",
         "not none", "not string", "callable"]
METHODS = ["strip()", "strip('H')", "lstrip()", "rstrip()", "rstrip('\\n')", "upper()", "lower()", "title()", "capitalize()", "split()", "split('o')", "split('o', 1)",
           "split(none, 1)", "rsplit('o', 1)", "splitlines()", "startswith('He')", "endswith('ld')", "endswith(('x', 'ld'))", "find('o')", "rfind('o')",
           "find('🚀')", "count('o')", "count('')", "replace('l', 'L')", "replace('l', 'L', 1)", "isdigit()", "removeprefix('He')", "removesuffix('ld')",
           "join(['x', 'y'])", "get('role')", "get('x')", "get('x', 'y')", "keys()|list", "values()|list", "items()|list"]
SLICES = ["[1:]", "[:2]", "[:-1]", "[::-1]", "[::2]", "[-2:]", "[5:1:-2]", "[1]", "[-1]", "[99]", "['k']", "[:99]", "[-99:]", "[2:1]"]
EXTRA = [
    "1 if a > 3 else 2", "'x' if missing", "1 if t if z else 3", "a if missing is defined else 'none'", "not a", "not not e", "not a == 7", "-a", "+b", "-f", "-t", "+t",
    "- a|abs", "-a|abs", "a - -b", "2 + 3 * 4 - 5 // 2 % 2", "(2 + 3) * 4", "7 // -2", "-7 // 2", "-7 % 3", "7 % -3", "7.5 // -2", "-7.5 % 2", "7 / 2", "4 / 2",
    "1 < 2 < 3", "1 < 3 < 2", "1 == 1.0", "t == 1", "'a' 'b'", "'a' ~ 1 ~ none ~ true ~ 1.0", "1e16", "1e15", "1.5e-5", "0.0001", "100000.0", "1e300 * 1e10",
    "'\\n\\t\\x41\\u00e9\\'\\\"\\\\\\q'", "\"it's\"", "[1, 'a', none, true, 1.5, [2], {'k': 'v'}]", "(1,)", "()", "(1, 2)", "['it\\'s', \"q\\\"\", '\\n', 'é', '\\u200b']",
    "{'a': {'b': [1]}}.a.b[0]", "{'a': 1, 'a': 2}", "[[1, 2], [3]]|map('first')|list", "[[1, 2], [3]]|sum(start=[])", "p|map(attribute='role')|join('+')",
    "p|selectattr('n', 'gt', 1)|map(attribute='content')|list", "p|selectattr('role', 'in', ['user'])|list|length", "p|sort(attribute='content', reverse=true)|map(attribute='content')|join",
    "p|map(attribute='content')|first", "d|dictsort|map('first')|join", "d|items|map('last')|list", "{'b': 1, 'a': 2}|dictsort(by='value')", "{'b': 1, 'a': 2}|dictsort(reverse=true)",
    "{'b': 1, 'a': [1, {}], 'c': {}}|tojson", "{'b': 1, 'a': [1, {}], 'c': {}}|tojson(indent=4)", "[]|tojson(indent=2)", "'é\\n\\x01\\\"🚀\\x7f'|tojson", "'é\\n\\x01\\\"🚀\\x7f'|tojson(ensure_ascii=true)",
    "[1.0, 1e20, 0.1, -0.0]|tojson", "range(3)|list", "range(1, 7, 2)|list", "range(3, 0, -1)|list", "range(0)|list", "dict(a=1, b='x')", "namespace(a=1).a", "namespace({'q': 2}).q",
    "missing.x", "missing['x']", "missing + 1", "missing ~ 'x'", "missing|length", "missing|list", "missing|join", "missing|upper", "missing == missing", "missing == none", "missing in 'x'",
    "'x' in missing", "missing|tojson", "missing|int", "missing|default(a)|string", "d.missing|default('q')", "d.missing.x|default('q')", "'x' * 3", "3 * 'x'", "[1] * 2", "'x' * -1", "'a' + 1", "'a' < 'b'",
    "'a' < 1", "[1, 2] < [1, 3]", "[1] + [2]", "(1,) + (2,)", "[1] == (1,)", "none < 1", "none == none", "'10'|int + 1", "' 12 '|int", "'1.9'|int", "'x'|int", "'0x1f'|int", "3.99|int", "-3.99|int", "true|int",
    "'1e3'|float", "'x'|float", "a is odd and b is odd", "a is not odd or t", "a is defined and a", "not a is defined", "a is in [7]", "a is eq(7)", "e or 'default'", "n and n.x", "0 or none",
    "s|length > 5 and s[:5] == 'Hello'", "s.split(' ')[-1]|lower", "s.lower().split()|join('_')", "(s + '!').upper()", "s|upper|lower|title", "'a-b c(d'|title", "'a-b c(d'.title()", "'aB'|capitalize",
    "p[1:]|length", "p[::-1]|map(attribute='content')|join", "p[0].role == p[2]['role']", "p[0]['missing'] is defined", "p|length - 1", "l|sort|first", "m|sort|join", "m|sort(case_sensitive=true)|join",
    "m|unique|join", "m|map('lower')|unique|join", "m|max", "m|min", "l|max", "l|sum", "p|sum(attribute='n')", "p[:2]|sum(attribute='n')", "l|last", "'abc'|last", "'abc'|first", "{}|first", "'abc'|list", "d|list", "d|length", "d|first",
    "'a\\nb\\n\\nc'|indent(2)", "'a\\nb'|indent('> ', first=true)", "'a\\n\\nb'|indent(2, blank=true)", "'a,b,,c'.split(',')", "''.split(',')", "''.split()", "'a  b '.split(' ')", "'a\\r\\nb\\rc\\x0bd'.splitlines()",
    "'\\u3000x\\u00a0'|trim|length", "'xxaxx'.strip('x')", "'éaé'.strip('é')", "'abc'.find('c')", "'éa🚀b'.find('b')", "'aXbX'.rfind('X')", "'{}'", "{}", "[]", "[[]]", "'%s' == '%s'", "raise_exception('no')",
    "strftime_now('%d %b %Y')", "strftime_now('%A %Y-%m-%d %H:%M:%S %j %y %B %a %p %I %%')", "bos_token ~ eos_token", "loop", "nothing()", "s.format(1)", "s.nothing", "s.nothing()", "l.append(1)", "d.update({'x': 1})", "d.items", "l|nothing", "l is nothing",
    "range(200000)|length", "a(1)", "s()", "l|map", "l|map('nothing')|list", "a|length", "l|upper", "d|upper", "n|upper", "n|string", "t|upper", "a|string|length", "[1, 2][true]", "l['x']", "l[1.0]", "s['upper']", "d[1]", "d[none]",
]
BLOCKS = [
    "{% macro m(x, y=2) %}{{ x }}-{{ y }};{% endmacro %}{{ m(*[1]) }}{{ m(*[1, 3]) }}{{ m(0, *(5,)) }}{{ m(*'ab') }}{{ m(*[1], y=4) }}{{ m(*[]) }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(*[1, 2]) }}", "{{ range(*[1, 4])|list }}", "{{ range(*[1], *[4])|list }}", "{{ range(*[1], 4)|list }}", "{{ range(*5)|list }}",
    "{{ d|tojson|safe }}{{ '<b>'|safe }}{{ missing|safe }}{{ n|safe }}",
    "{% if a %}x{% endif %}\ny", "{% if a -%}  x  {%- endif %}\ny", "  {% if a %}\n  x\n  {% endif %}\n y", "  {%+ if a %}\n  x\n  {%+ endif +%}\n y", "a  {{- 1 -}}  b", "a\n  {{ 1 }}\n  b", "a\n  {#- c -#}\n  b",
    "a\n  {# c #}\n  b", "a\n  {# c +#}\n  b", "a {# c #} b", "x\n\n{%- if a %}\n\ny\n{%- endif -%}\n\n z", "{% if a %}\n\n\nx{% endif %}", "x\r\ny\rz\r\n", "x\n", "x\n\n", "\n x {% if a %} y{% endif %}", "\n\t {% if a %} y{% endif %}",
    "x {% if a %} y{% endif %}", "{{ a }} {% if a %} y{% endif %}", "{{ a }}\n {% if a %} y{% endif %}", "{{ a -}}\n {% if a %} y{% endif %}", "{# c #}  {% if a %} y{% endif %}", "{# c #}\n  {% if a %} y{% endif %}",
    "{% if a %}  {% if a %} y{% endif %}{% endif %}", "{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': 1}}}", "{{+ a }}", "{{ a+}}", "{%- set x = 1 -%}\n {{ x }}", "}} %} #} { { %",
    "{% if z %}1{% elif a == 7 %}2{% else %}3{% endif %}", "{% if z %}1{% elif z %}2{% else %}3{% endif %}", "{% if z, %}tuple{% endif %}",
    "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.length }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in empty %}x{% else %}none{% endfor %}", "{% for x in missing %}x{% else %}none{% endfor %}", "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in l if x > 9 %}{{ x }}{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for (k, v) in d|items %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }};{% endfor %}", "{% for c in 'aé🚀' %}{{ c }}.{% endfor %}",
    "{% for x in l %}{% for y in m %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in l %}{% set outer = loop %}{% for y in 'ab' %}{{ outer.index }}{{ y }} {% endfor %}{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x, y in [[1, 2], [3, 4]] %}{{ x + y }} {% endfor %}", "{% for x, y in [[1, 2, 3]] %}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in l|sort %}{{ x }}{% endfor %}", "{% for x in a %}{% endfor %}", "{% for x in [1, 2] if x is odd %}{{ x }}{% endfor %}",
    "{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}", "{% set ns = namespace(x=0) %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.y = 'v' %}{{ ns.y }}{{ ns.z }}|",
    "{% set d.x = 1 %}", "{% set x, y = 1, 2 %}{{ x }}{{ y }}", "{% set x = 1, 2 %}{{ x }}", "{% set x %}a{{ a }}b{% endset %}{{ x|length }}{{ x }}", "{% set x | upper | replace('A', 'q') %}a{{ s }}b{% endset %}{{ x }}", "{% if a %}{% set q = 2 %}{% endif %}{{ q }}",
    "{% if z %}{% set q = 2 %}{% endif %}{{ q }}|", "{% for y in l %}{% set q = 2 %}{% endfor %}{{ q }}|", "{% set a = a + 1 %}{{ a }}", "{% set l = l + [9] %}{{ l }}", "{% set x = l %}{% for l in x %}{{ l }}{% endfor %}{{ l }}",
    "{% macro f(x, y=2) %}[{{ x }}{{ y }}{{ a }}]{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(y=5, x=4) }}{{ f() }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ f(1) }}{{ y }}|", "{% set y = 1 %}{% macro f() %}{{ y }}{% endmacro %}{% set y = 2 %}{{ f() }}", "{% macro f(x) %}{{ x }}{% endmacro %}{% for x in l %}{{ f(x) }}{% endfor %}{{ f(1)|length }}", "{% macro f(x) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(x) %}{% endmacro %}{{ f(q=2) }}",
    "{% generation %}x{{ a }}{% endgeneration %}y", "{% for p in p %}{% generation %}{{ p.content }}{% endgeneration %}{% endfor %}", "{% set q = p|selectattr('role', 'equalto', 'user') %}{% for x in q %}{{ x.content }}{% endfor %}",
    "{% if a", "{{ a", "{# a", "{% if a %}", "{% endif %}", "{% for x in l %}", "{% for x of l %}{% endfor %}", "{% if %}{% endif %}", "{{ }}", "{{ a b }}", "{{ 'a }}", "{{ (a }}", "{{ a) }}", "{{ [a) }}", "{{ a | }}", "{{ a is }}", "{{ a. }}", "{% set %}", "{% set 1 = 2 %}", "{% nothing %}",
    "{{ a $ b }}", "{% break %}", "{% macro f(x=1, y) %}{% endmacro %}", "{{ f(a=1, 2) }}", "{{ a is odd is even }}", "{% else %}", "{{ a if }}", "{{ not }}", "{{ {'a' 1} }}", "{{ {'a': } }}", "{{ [1 2] }}", "{{ a | 1 }}", "{% if a %}{% endfor %}",
]


def message(role, content):
    return {"role": role, "content": content}


TALKS = [
    [message("user", "What is a tensor?"), message("assistant", "A tensor is an array.")],
    [message("system", "  Be brief.\n"), message("user", "  don't  "), message("assistant", "\u00a0it's größe \n"), message("user", "модель 🚀?"), message("assistant", "训练 数据")],
    [message("user", "one"), message("assistant", "1"), message("user", "two"), message("assistant", "2"), message("user", "three"), message("assistant", "3")],
    [message("user", "call"), message("assistant", "calling"), message("tool", "{\"x\": 1}"), message("assistant", "x is 1")],
    [message("system", ""), message("user", "a\nb\n\n"), message("assistant", "<think>\nhm\n</think>\n\nyes")],
    [message("user", "x"), message("user", "y"), message("assistant", "z")],
    [message("assistant", "I begin"), message("user", "why?"), message("assistant", "so")],
    [message("user", "{{ not a template }} {% if %}"), message("assistant", "</s><s>[INST] 'quotes\" \\ back")],
    [message("user", ""), message("assistant", " ")],
    [message("system", "s"), message("user", "u")],
    [message("user", "q" * 300), message("assistant", "r\n" * 50), message("user", "\t"), message("assistant", "end")],
]
TOOLS = [None, [{"type": "function", "function": {"name": "add", "description": "Adds \"two\" numbers", "parameters": {
    "type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "enum": [1, 2.5, None, True]}}, "required": ["x"]}}}]]


def render(source, names):
    compiled = chat_template_utils._compile_jinja_template(source)
    return compiled.render(**names)


def text_or_none(source, names):
    try:
        return render(source, copy.deepcopy(names))  # some filters of Jinja change lists in place
    except RecursionError:
        raise
    except Exception as error:
        assert "generator object" not in str(error)
        return None


def is_settled(text):
    """Whether another process would print the same."""
    return text is None or not any(word in text for word in ["0x7f", "<generator", "object at", "<bound", "<built-in", "dict_", "<function", "<class"])


def expressions():
    rng = random.Random(17)
    found = list(EXTRA)
    found += [f"{x} {op} {y}" for op in BINARY for x, y in [(rng.choice(VALUES), rng.choice(VALUES)) for _ in range(45)]]
    found += [f"{x}|{f}" for f in FILTERS for x in rng.sample(VALUES, 12)]
    found += [f"{x} is {test}" for test in TESTS for x in rng.sample(VALUES, 12)]
    found += [f"{x}.{method}" for method in METHODS for x in ["s", "u", "w", "e", "d"]]
    found += [f"{x}{part}" for part in SLICES for x in ["s", "u", "l", "d", "e", "(1, 2, 3)", "missing", "a"]]
    for _ in range(500):
        x, y, z = (rng.choice(VALUES) for _ in range(3))
        found.append(f"({x} {rng.choice(BINARY)} {y}) {rng.choice(BINARY)} {z}")
        found.append(f"{x}|{rng.choice(FILTERS)}|{rng.choice(FILTERS)} {rng.choice(BINARY)} {y}")
        found.append(f"{x} if {y} is {rng.choice(TESTS)} {rng.choice(['and', 'or'])} {z} else {y}|{rng.choice(FILTERS)}")
    return [expression for expression in dict.fromkeys(found)]


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DATE


def renders_of(folder):
    renders = []
    for path in sorted((folder / "templates").glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for (number, talk), generation, tools in itertools.product(enumerate(TALKS), [False, True], TOOLS):
            names_of_talk = {"messages": talk, "add_generation_prompt": generation, "tools": tools, "documents": None, **TOKENS}
            renders.append({"template": path.name, "talk": number, "generation": generation, "tools": TOOLS.index(tools),
                            "text": text_or_none(source, names_of_talk)})
    return renders


def write(name, value, folder=OUT):
    (folder / name).write_text(
        "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in value) + "\n]\n" if isinstance(value, list) else
        json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    chat_template_utils.datetime = Clock
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
        return write("renders.json", renders_of(folder), folder)
    names = {**NAMES, **TOKENS}
    cases = [[source, text_or_none("{{ " + source + " }}", names)] for source in expressions()]
    cases = [case for case in cases if is_settled(case[1])]
    blocks = [[source, text_or_none(source, names)] for source in BLOCKS]
    renders = renders_of(OUT)
    write("names.json", names)
    write("expressions.json", cases)
    write("blocks.json", blocks)
    write("talks.json", {"talks": TALKS, "tools": TOOLS})
    write("renders.json", renders)
    print(f"jinja2 {jinja2.__version__}, transformers {transformers.__version__}: {len(cases)} expressions ({sum(c[1] is None for c in cases)} errors), "
          f"{len(blocks)} blocks, {len(renders)} renders ({sum(r['text'] is None for r in renders)} refused)")


if __name__ == "__main__":
    main()
