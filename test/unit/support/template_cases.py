#!/usr/bin/env python3
"""Cases for test/unit/template_jinja.c: templates, their variables, and what Jinja2 makes of them, one JSON object a line.

template_cases.py expressions SEED COUNT | templates SEED COUNT | known | corpus DIRECTORY
Exit status 77: there is no Jinja2. "want" is missing where Jinja2 raises an error. What docs/format/template.md lists as a
difference is not made here (or is left out by `documented`).
"""
import json, math, os, random, re, sys, types

try:
    import jinja2
except ImportError:
    sys.exit(77)

VARS = {
    "n": 7, "zero": 0, "neg": -3, "big": 4000000000, "f": 2.5, "g": -0.75, "tiny": 1e-7, "huge": 1.5e20,
    "id": 761295407002419364, "edge": 2**63, "low": -2**63, "large": 10**30 + 7,
    "s": "hello world", "t": "  padded\t", "u": "Grüße, МИР", "empty": "", "num": "42", "numf": "3.75", "q": "it's \"so\"",
    "yes": True, "no": False, "nothing": None,
    "list": [3, 1, 2], "mixed": [1, "two", 3.5, None, True], "words": ["pear", "Apple", "fig", "apple"], "none_list": [],
    "nested": [[1, 2], [3, [4, 5]]],
    "d": {"a": 1, "b": "two", "c": [1, 2, 3], "e": {"x": 10, "y": None}}, "nod": {},
    "rows": [{"id": 1, "name": "Ann", "age": 31, "tags": ["x"]}, {"id": 2, "name": "bob", "age": 25, "tags": []},
             {"id": 3, "name": "Cid", "age": 31, "tags": ["y", "z"]}],
    "output": {"status": "error", "http": {"status": 503}, "error": {"retryable": True}, "data": {"has_more": False}},
}
ENV = jinja2.Environment()
ENV.filters["b64encode"] = lambda s: __import__("base64").b64encode(str(s).encode()).decode()

class Documented(Exception):
    """A difference that the documentation lists."""

def plain(value):
    """A value as JSON holds it; a generator is a list here."""
    if isinstance(value, jinja2.Undefined): return None
    if isinstance(value, bool) or value is None: return value
    if isinstance(value, int):
        if abs(value) >= 10**4300: raise Documented
        return value
    if isinstance(value, float):
        if not math.isfinite(value): raise Documented
        return value
    if isinstance(value, str): return str(value)
    if isinstance(value, dict):
        if any(not isinstance(k, str) for k in value): raise Documented
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)): return [plain(v) for v in value]
    if isinstance(value, types.GeneratorType) or type(value).__name__ in ("dict_keys", "dict_values", "dict_items", "range", "list_reverseiterator", "reversed"):
        return [plain(v) for v in value]
    raise Documented

UNPRINTABLE = re.compile(r"(?i)object at 0x|markup\(|<(generator|built-in|bound|function|list_rev|reversed|class)|dict_(keys|values|items)\(|range\(|\b(inf|nan)\b|LoopContext|Undefined")

def case(text, expression=False, variables=VARS):
    made = {"template": text, "vars": variables}
    if expression: made["expression"] = True
    try:
        if expression:
            value = ENV.compile_expression(text, undefined_to_none=False)(**variables)
            made["want"] = "" if isinstance(value, jinja2.Undefined) else plain(value)
        else:
            lone = re.fullmatch(r"\s*\{\{-?(.*?)-?\}\}\s*", text, re.S)
            if lone and "{{" not in lone[1] and "{%" not in text and "{#" not in text:
                value = ENV.compile_expression(lone[1].strip(), undefined_to_none=False)(**variables)
                made["want"] = "" if isinstance(value, jinja2.Undefined) else plain(value)
            else:
                made["want"] = ENV.from_string(text).render(**variables)
        if isinstance(made["want"], str) and UNPRINTABLE.search(made["want"]): return
    except Documented:
        return
    except OverflowError:
        return
    except Exception as fault:
        if re.search(r"4300 digits|MemoryError", repr(fault)): return
        made["error"] = f"{type(fault).__name__}: {fault}"
    print(json.dumps(made))

# ---- expressions

class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def pick(self, *choices):
        chosen = self.r.choice(choices)
        return chosen() if callable(chosen) else chosen

    def number(self, depth):
        r = self.r
        if depth <= 0:
            return self.pick("n", "zero", "neg", "f", "g", "big", "id", "edge", "low", "large", "yes", "d.a", "9007199254740993", "list[0]", "rows[1].age", "1", "2", "3.5", "0.1", "10", "1e3", "-4",
                             "list|length", "(num|int)", "output.http.status", "tiny")
        return self.pick(
            lambda: f"({self.number(depth-1)} {r.choice(['+', '-', '*', '/', '//', '%'])} {self.number(depth-1)})",
            lambda: f"({self.number(depth-1)} ** {r.choice(['2', '3', '0', '-1', '0.5'])})",
            lambda: f"({self.number(depth-1)})|abs", lambda: f"({self.number(depth-1)})|round({r.choice(['', '1', '2', '0', '-1'])})",
            lambda: f"({self.number(depth-1)})|round(1, '{r.choice(['ceil', 'floor', 'common'])}')",
            lambda: f"({self.any(depth-1)})|int", lambda: f"({self.any(depth-1)})|float", lambda: f"({self.any(depth-1)})|int(default=-1)",
            lambda: f"({self.many(depth-1)})|length", lambda: f"({self.numbers(depth-1)})|sum", lambda: f"({self.numbers(depth-1)})|max",
            lambda: f"({self.numbers(depth-1)})|min", lambda: f"-({self.number(depth-1)})", lambda: f"rows|sum(attribute='age')",
            lambda: f"({self.text(depth-1)}).find({self.text(0)})", lambda: f"({self.text(depth-1)}).count({self.text(0)})")

    def text(self, depth):
        r = self.r
        if depth <= 0:
            return self.pick("s", "t", "u", "empty", "num", "numf", "q", "d.b", "words[1]", "'a'", "'x-y_z'", "\"it's\"", "'a\\nb'", "'é'", "'o'", "'l'", "rows[0].name")
        f = lambda: f"({self.text(depth-1)})"
        return self.pick(
            lambda: f"{f()}|{r.choice(['upper', 'lower', 'title', 'capitalize', 'trim', 'string', 'reverse', 'b64encode', 'urlencode'])}",
            lambda: f"{f()}.{r.choice(['upper', 'lower', 'strip', 'lstrip', 'rstrip', 'title', 'capitalize', 'swapcase'])}()",
            lambda: f"{f()}|replace({self.text(0)}, {self.text(0)})", lambda: f"{f()}.replace({self.text(0)}, {self.text(0)}, 1)",
            lambda: f"({self.any(depth-1)} ~ {self.any(depth-1)})", lambda: f"({self.text(depth-1)} + {self.text(depth-1)})",
            lambda: f"({self.text(depth-1)} * {r.choice(['0', '2', 'n', '-1'])})", lambda: f"({self.many(depth-1)})|join({self.text(0)})",
            lambda: f"{f()}[{self.pick('0', '-1', '1', '99')}]", lambda: f"{f()}[{self.bound()}:{self.bound()}]", lambda: f"{f()}[::{self.pick('-1', '2', '-2')}]",
            lambda: f"({self.any(depth-1)})|string", lambda: f"{self.text(0)}.join(words)",
            lambda: f"'%s/%s'|format({self.any(0)}, {self.any(0)})", lambda: f"('%05.2f' % {self.number(0)})", lambda: f"'{{:>8}}|{{}}'.format({self.text(0)}, {self.any(0)})",
            lambda: f"('%d' % {self.number(0)})", lambda: f"'{{:.3f}}'.format({self.number(0)})", lambda: f"{f()}.{r.choice(['zfill', 'ljust', 'rjust', 'center'])}({r.choice(['0', '7', '12'])})",
            lambda: f"{f()}|trim({self.text(0)})", lambda: f"({self.texts(depth-1)})|first", lambda: f"({self.texts(depth-1)})|last")

    def bound(self):
        return self.pick("", "", "0", "1", "2", "-1", "-2", "99", "-99")

    def numbers(self, depth):
        return self.pick("list", "[1, 2.5, n]", "range(4)|list", "range(1, 9, 3)|list", "range(5, 0, -2)|list", "none_list", "rows|map(attribute='age')|list", "[n, f]", "(1, 2, 3)",
                         "d.c", "list[1:]", "list + [9]", lambda: f"[{self.number(depth-1)}, {self.number(depth-1)}]", "list|sort", "list|map('string')|map('int')|list")

    def texts(self, depth):
        return self.pick("words", "words|sort", "words|unique|list", "words|map('upper')|list", "s.split()", "s.split('o')", "'a,b,,c'.split(',', 1)", "'a,b,,c'.rsplit(',', 1)",
                         "rows|map(attribute='name')|list", "words|reject('in', ['fig'])|list", "words|sort(case_sensitive=true)", "words|sort(reverse=true)", "q.split(' ')",
                         lambda: f"[{self.text(depth-1)}, {self.text(depth-1)}]", "d|list", "d.keys()|list", "s|list", "'a\\nb\\r\\nc'.splitlines()")

    def many(self, depth):
        return self.pick(lambda: self.numbers(depth), lambda: self.texts(depth), "mixed", "nested", "d.values()|list", "d.items()|list", "d|dictsort", "d.e|items|list", "rows",
                         "rows|selectattr('age', 'gt', 30)|list", "rows|rejectattr('tags')|list", "rows|selectattr('age', 'equalto', 31)|map(attribute='id')|list",
                         "rows|sort(attribute='age')|list", "rows|sort(attribute='age,name', reverse=true)", "rows|map(attribute='tags')|list", "mixed|select('number')|list",
                         "mixed|select|list", "list|reject('odd')|list", "list|batch(2)|list", "list|batch(2, 0)|list", "nested|sum(start=[])", "(1,)", "()", "rows|map(attribute='nope', default='?')|list",
                         "rows|groupby('age')|map('list')|list", "list|reverse|list", "rows|unique(attribute='age')|list", "rows|max(attribute='age')",
                         lambda: f"[{self.any(depth-1)}, {self.any(depth-1)}]", lambda: f"({self.any(depth-1)}, {self.any(depth-1)})", lambda: f"mixed[{self.bound()}:{self.bound()}:{self.pick('', '2', '-1')}]")

    def truth(self, depth):
        r = self.r
        if depth <= 0: return self.pick("yes", "no", "true", "False", "nothing", "undefined_name", "zero", "empty", "output.error.retryable", "none")
        compare = lambda a: f"({a(depth-1)} {r.choice(['==', '!=', '<', '<=', '>', '>='])} {a(depth-1)})"
        return self.pick(
            lambda: compare(self.number), lambda: compare(self.text), lambda: compare(self.number), lambda: f"({self.any(depth-1)} {r.choice(['==', '!='])} {self.any(depth-1)})",
            lambda: f"(not {self.truth(depth-1)})", lambda: f"({self.truth(depth-1)} {r.choice(['and', 'or'])} {self.truth(depth-1)})",
            lambda: f"({self.any(depth-1)} {r.choice(['in', 'not in'])} ({self.many(depth-1)}))", lambda: f"({self.text(depth-1)} in {self.text(depth-1)})",
            lambda: f"({self.any(depth-1)} is {r.choice(['', 'not '])}{r.choice(['defined', 'undefined', 'none', 'string', 'number', 'integer', 'float', 'boolean', 'mapping', 'iterable', 'sequence', 'true', 'false'])})",
            lambda: f"({self.number(depth-1)} is {r.choice(['even', 'odd', 'divisibleby 3', 'divisibleby(2)', 'eq 7', 'ne(7)', 'lt 3', 'gt 3', 'ge 2', 'le 2'])})",
            lambda: f"(({self.text(depth-1)}).{r.choice(['startswith', 'endswith'])}({self.text(0)}))", lambda: f"(({self.text(depth-1)}).{r.choice(['isdigit', 'isalpha', 'isalnum', 'islower', 'isupper', 'isspace'])}())",
            lambda: f"({self.number(0)} < {self.number(0)} <= {self.number(0)})", lambda: f"({self.any(0)} is in ({self.many(0)}))", lambda: f"({self.text(0)} is {r.choice(['lower', 'upper'])})",
            lambda: f"(({self.many(0)}) {r.choice(['<', '==', '>='])} ({self.many(0)}))")

    def dict(self, depth):
        return self.pick("d", "d.e", "rows[0]", "nod", "output", lambda: f"{{'k': {self.any(depth-1)}, 'm': {self.any(depth-1)}}}", lambda: f"dict(a={self.any(depth-1)})")

    def any(self, depth):
        if depth <= 0:
            return self.pick(lambda: self.number(0), lambda: self.text(0), lambda: self.truth(0), "list", "d", "mixed", "undefined_name", "d.nope", "d['b']", "d.c[1]", "nested[1][1]", "d.e.y",
                             "list[9]", "nothing.x", "d.get('a')", "d.get('zz')", "d.get('zz', 5)", "rows[0]['name']", "n.real_nope")
        return self.pick(lambda: self.number(depth), lambda: self.text(depth), lambda: self.truth(depth), lambda: self.many(depth), lambda: self.dict(depth),
                         lambda: f"({self.any(depth-1)} if {self.truth(depth-1)} else {self.any(depth-1)})", lambda: f"({self.any(depth-1)} if {self.truth(depth-1)})",
                         lambda: f"({self.any(depth-1)})|default({self.any(depth-1)})", lambda: f"({self.any(depth-1)})|d({self.any(depth-1)}, true)",
                         lambda: f"({self.any(depth-1)} or {self.any(depth-1)})", lambda: f"({self.many(depth-1)})|{self.pick('first', 'last')}",
                         lambda: f"({self.any(0)} {self.r.choice(['+', '*', '<', '-', '/'])} {self.any(0)})", lambda: f"({self.dict(depth-1)}).{self.pick('a', 'k', 'x', 'nope', 'name')}",
                         lambda: f"({self.any(0)})|{self.pick('length', 'list', 'abs', 'upper', 'sort', 'sum', 'first', 'trim', 'unique|list', 'join', 'round', 'items|list', 'max', 'min', 'title')}",
                         lambda: f"{self.number(0)} {self.r.choice(['+', '-', '*', '//'])} {self.number(0)} {self.r.choice(['+', '*', '% 3 +', '~', '==', '** 2 -'])} {self.number(0)}",
                         lambda: f"-{self.number(0)}|abs", lambda: f"not {self.any(0)} == {self.any(0)}")

    def top(self, depth):
        return self.pick(*[lambda: self.any(depth)] * 8, lambda: f"({self.any(depth)})|tojson", lambda: f"({self.text(depth)})|e")

    # ---- templates

    def print(self):
        return "{{" + self.pick(" ", "- ", " ") + self.top(self.r.choice([0, 1, 1, 2])) + self.pick(" ", " -", " ") + "}}"

    def blank(self):
        return self.pick("", " ", "\n", "  \n ", "\t")

    def block(self, depth):
        r = self.r
        o, c = self.pick("{%", "{%-", "{%"), self.pick("%}", "-%}", "%}")
        if depth <= 0: return self.pick(self.print, lambda: self.pick("text", "a\nb", "x } y", "{ z", "Ω", " ", "100%"), self.print)
        body = lambda: self.body(depth - 1)
        kinds = [
            lambda: f"{o} if {self.truth(1)} {c}{body()}{o} endif {c}",
            lambda: f"{o} if {self.truth(1)} {c}{body()}{o} elif {self.truth(1)} {c}{body()}{o} else {c}{body()}{o} endif {c}",
            lambda: f"{o} for i in {self.many(1)} {c}{self.blank()}{{{{ i }}}}{{{{ loop.index }}}}{body()}{o} endfor {c}",
            lambda: f"{o} for i in {self.numbers(0)} if i > 1 {c}{{{{ i }}}}:{{{{ loop.length }}}},{o} else {c}none{o} endfor {c}",
            lambda: f"{o} for k, v in d.items() {c}{{{{ k }}}}={{{{ v }}}}{o} if not loop.last {c}, {o} endif {c}{o} endfor {c}",
            lambda: f"{o} for r in rows {c}{{{{ loop.{r.choice(['index0', 'first', 'last', 'revindex', 'revindex0', 'length'])} }}}}{{{{ r.name }}}}{{{{ loop.cycle('a', 'b') }}}}{{{{ loop.previtem.id }}}};{o} endfor {c}",
            lambda: f"{o} set v = {self.any(1)} {c}{{{{ v }}}}{body()}",
            lambda: f"{o} set a, b = ({self.any(0)}, {self.any(0)}) {c}{{{{ a }}}}{{{{ b }}}}",
            lambda: f"{o} set w {c}{body()}{o} endset {c}[{{{{ w }}}}]", lambda: f"{o} set w | upper | trim {c}{body()}{o} endset {c}[{{{{ w }}}}]",
            lambda: f"{o} raw {c}{{{{ x }}}}{{% if %}} {o} endraw {c}", lambda: "{#" + self.pick("", "-", "") + " c {{ x }} " + self.pick("", "-", "") + "#}",
            lambda: f"{o} set v = 1 {c}{o} for i in list {c}{o} set v = i {c}{{{{ v }}}}{o} endfor {c}{{{{ v }}}}",
            lambda: f"{o} for x in list {c}{o} for y in words {c}{{{{ x }}}}{{{{ y }}}}{{{{ loop.index }}}}{o} endfor {c}{{{{ loop.index }}}}{o} endfor {c}"]
        return r.choice(kinds)()

    def body(self, depth):
        return "".join(self.blank() + self.block(self.r.choice([0, depth, depth])) for _ in range(self.r.randint(1, 3))) + self.blank()

KNOWN = r'''
-2 ** 2
2 ** 3 ** 2
-n|abs
1 if yes
"a" "b" 'c'
'\x41\u00e9\t\\\q\101'
0x1F + 0b11 + 0o17 + 1_000
1.5e3 + 1e-2
[1, 2,] + [3]
{'a': {'b': {'c': 1}}}.a.b.c
list.0 + list.1
nested.1.1.0
1 < 2 < 3 > 2
not not n
not n in list
n is not defined or n is defined
n is divisibleby 7 and yes
d.c is iterable
(1, 2) == [1, 2]
(1)
(1,)
1 ~ 2 ~ none ~ true ~ 1.0 ~ []
1e16 ~ ' ' ~ 1e15 ~ ' ' ~ 123456789012345680.0 ~ ' ' ~ 0.0001 ~ ' ' ~ 0.00001 ~ ' ' ~ -0.0
100000000000000000000.0
1/3
7 // 2 ~ -7 // 2 ~ 7 % -3 ~ -7 % 3 ~ 7.5 // 2 ~ -7.5 % 2
True + True
2 ** -1
5 / 0
5 // 0
5 % 0
'a' + 1
[1] + 'a'
none + 1
undefined_name + 1
undefined_name.x
undefined_name|default('x')
undefined_name.x|default('x')
d.nope.deeper
nothing|default('x')
nothing|default('x', true)
''|d('e', boolean=true)
'12abc'|int
'12.7'|int
' 12 '|int
'0x1f'|int(base=16)
'ff'|int(0, 16)
'1e3'|int
'abc'|float
'abc'|float(default=1.5)
'1_0'|int
nothing|int
list|int
12.9|int
-12.9|int
true|int
undefined_name|int
undefined_name|length
undefined_name|list
undefined_name|upper
undefined_name|join
undefined_name|first
none_list|first
none_list|max
2.5|round
3.5|round
2.675|round(2)
1234.5678|round(-2)
7|round
7|round(1)
15|round(-1)
2.1|round(0, 'ceil')
2.9|round(method='floor')
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(true)
[3, 'a']|sort
[1, none]|max
d|tojson
u|tojson
q|tojson
'<a href="x">&</a>'|tojson
[1, 2.0, true, none, "x"]|tojson
d|tojson(indent=2)
'<b> & "q"'|e
'a b/c?d=é&f'|urlencode
{'a b': 1, 'c': 'x/y&z'}|urlencode
[['k', 'v w'], ['l', 2]]|urlencode
'hello'|b64encode
'x'.join(['a', 'b'])
', '.join(list)
'a-b'.title() ~ ' ' ~ "it's o'clock"|title ~ ' ' ~ 'foo(bar) x-y'|title
'HeLLo'|capitalize
'%s is %d years, %.1f%%' % ('Ann', 31, 99.55)
'%5s|%-5s|%05d|%+d|%x' % ('a', 'b', 42, 7, 255)
'%s' % list
'%s %s' % 'a'
'%s'|format(d)
'{} {} {}'.format(1, 'a', none)
'{1} {0} {x}'.format('a', 'b', x=3)
'{:.2f} {:5d}|{:<5}|{:>5}|{:^5}|{:05.1f}|{:,}|{:+d}'.format(3.14159, 42, 'a', 'b', 'c', 2.5, 1234567, 5)
'{{}}'.format(1)
'{:*^9}'.format('mid')
'{:.1%}'.format(0.256)
s[1:4] ~ s[-3:] ~ s[::-1] ~ s[:2]
u[0] ~ u[-1] ~ u|length ~ u[2:5]
u|upper
u|lower
list[::-1]
list[5:]
list[1:2][0]
d[n]
list['a']
range(3)|list
range(10, 0, -3)|list
dict(a=1, b=2)
dict({'a': 1}, b=2)
'a' in 'cat'
'a' in d
n in d
1 in 'x'
1 in 5
none in [none]
'x' < 'y' <= 'z'
'a' < 1
[1, 2] < [1, 3]
yes == 1
1.0 == 1
'1' == 1
none == false
rows|map(attribute='name')|join(', ')
rows|map(attribute='tags.0')|list
rows|selectattr('tags')|map(attribute='id')|list
rows|selectattr('name', 'in', ['Ann', 'Cid'])|list|length
rows|rejectattr('age', 'lt', 30)|map(attribute='name')|first
rows|sum(attribute='id', start=10)
words|map('replace', 'p', 'P')|join
words|map('length')|list
words|select('equalto', 'fig')|list
words|unique(true)|list
words|unique|list
words|join('-', attribute=0)
list|map('nope')|list
'x'|nope
x is nope
nope()
1 +
(1
[1, 2
{'a': 1
a b
'abc
1 2
a..b
a.
|upper
a|
{}
()
[]
''
true and
n if
n if yes else
d.items
d.items()|list
d.keys()|list|join
d.values()|map('string')|join
mixed
'a\'b'
"a\"b'c"
'\n\t\r\0'|string ~ ['\n\t\r\0é\x7f\u200b']
[q, s, "'", '"']
'abc'.index('c') ~ 'abc'.find('z')
'abc'.index('z')
list.index(2) ~ list.count(2)
'  x '.strip() ~ '|' ~ 'xxaxx'.strip('x') ~ '|' ~ 'xxa'.lstrip('x') ~ '|' ~ 'axx'.rstrip('x')
'a b  c'.split() ~ 'a b  c'.split(' ')
' a b '.split(none, 1)
'abc'.split('')
'abc'.replace('', '-')
'abc'|replace('', '-')
'aaa'|replace('a', 'b', 2)
'7'.zfill(3) ~ '-7'.zfill(4) ~ 'ab'.center(7, '*') ~ 'abc'.center(6, '*')
'abc'.removeprefix('a').removesuffix('c')
(1, 2) + (3,)
[0] * 3
'ab' * 2
3 * 'ab'
'ab' * 1.5
[1, [2, (3, {'a': None})]]
1 if undefined_name else 2
undefined_name == undefined_name
undefined_name is none
5 is in [5]
5 is not in [5]
5 is sameas 5
'A' is upper
output.status == 'error' and output.http.status in [429, 500, 502, 503]
'true' if output.error.retryable else 'false'
(n | int) + 1
d|dictsort
d.e|dictsort(by='value')
{'b': 1, 'a': 2}|dictsort(by='value', reverse=true)
{'b': 1, 'a': 2}|items|list
list|batch(2)|list
rows|groupby('age')|length
x|default([])|length
9223372036854775807
id
id + 1
id * id
id ** 7
(id ** 7) // (id ** 3 - 1)
(id ** 7) % (id ** 3 - 1)
-(id ** 7) // (id ** 3 - 1)
-(id ** 7) % (id ** 3 - 1)
(id ** 7) // -(id ** 3 - 1)
(id ** 7) % -(id ** 3 - 1)
edge - 1 + low
low // -1
low % -1
-low
low|abs
large / 7
large / id
id / large
1 / large
9007199254740993 / 1
9007199254740993 == 9007199254740992.0
9007199254740993 > 9007199254740992.0
9007199254740993 <= 9007199254740993.0
2 ** 60 == 2.0 ** 60
2 ** 2000 > 1.0e308
-(2 ** 2000) < -1.0e308
large == large + 0
large in [large - 1, large]
[large, id, edge]|sort
[large, id, edge]|max
[large, id, edge]|sum
[large, large + 0, id]|unique|list
large|string
large|tojson
{'a': large}|tojson
(large ~ '')|int == large
'761295407002419364761295407002419364'|int + 1
'0xffffffffffffffffffff'|int(base=16)
'ffff_ffff_ffff_ffff_ffff'|int(base=16)
'zzzzzzzzzzzzzzzzzzzz'|int(base=36)
1e30|int
-1.5e20|int
huge|int
large|float
large|round
large|round(-3)
-large|round(-29)
1500000000000000000000000000000|round(-30)
2500000000000000000000000000000|round(-30)
'%d' % large
'%x' % large
'%X' % -large
'%o' % large
'%040d' % -large
'{:,}'.format(large)
'{:>40}'.format(large)
'{:x}'.format(large)
'{:.3f}'.format(large)
'{:e}'.format(large)
'%d' % 1e30
large is divisibleby 7
large is odd
large is integer
large is float
1.0
2.0 * 3
10 / 5
7 // 2.0
0x1fffffffffffffffff
1_000_000_000_000_000_000_000
0 ** large
1 ** large
(zero - 1) ** large
(zero - 1) ** (large + 1)
true + edge
'a,b;c'.split(',')[1].split(';')|last
'x'|attr('y')
rows|map(attribute='zz', default=0)|sum
list is iterable and list is sequence and d is mapping and s is string and n is number
yes is boolean and yes is true and no is false and yes is not integer
nothing.x is defined
not yes|default(false)
- 5 + + 3
1 - -1
'a'~'b'|upper
('a'~'b')|upper
list[-1] + list[-2]
'%d' % 3.99
'%s' % none
words|first|upper
n|string|length
[n, f, s]|map('string')|list
'a' 'b' ~ 'c'
'é'|length
'日本語'[1:]
'日本語'|urlencode
['日本語', 'é']
1 == 1.0 == true
3 in (1, 2, 3)
{'a': 1} == {'a': 1.0}
[] or {} or '' or 0 or none or 'last'
1 and 2 and 3
'' and 1
false or none
'a' if true else 'b' if false else 'c'
1 if 0 else 2 if 0 else 3
'''

KNOWN_TEMPLATES = ["", "plain", "{{ n }}", " {{ n }} ", "{{ n }}\n", "\n{{ list }}\n", "a{{ n }}", "{{ n }}{{ n }}", "{{ n }} {{ undefined_name }}", "{{ d }}!", "{{ mixed }}.", "{{ '{{' }}", "{{ '}}' }}x", "a {{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}.a.b }}", "{% if n %}a{% endif %}", "{%if n%}a{%else%}b{%endif%}\n\n", "a\n\n", "a\r\nb\rc", "{{ 'a\r\nb' }}x", "{% for i in [] %}{% else %}e{% endfor %}", "  {%- if yes -%}  x  {%- endif -%}  y",
    "{# c #}", "a{#- c -#} b", "{% raw %}{{ x }}{% endraw %}", "a {%- raw -%} {{ x }} {%- endraw -%} b", "{% set x = 1 %}{{ x }}", "{% set x = [1,2] %}{% for i in x %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for (a, b) in [(1,2),(3,4)] %}{{ a+b }} {% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for i in 5 %}{% endfor %}", "{% for i in s %}{{ i }}.{% endfor %}",
    "{% if %}", "{% if n %}", "{% endif %}", "{% for %}", "{{", "{{ n", "{%", "{{ }}", "{{ n }", "{% foo %}", "{% if n %}{% endfor %}", "{% set = 1 %}", "{{ n }} }} %} #}", "{ { n } }", "{{n}}%{{n}}", "a{{- n -}} b", "a {{- n }} b",
    "{% for i in range(3) %}{% for j in range(i) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{% endfor %}", "{% set a %}x{{ n }}{% endset %}<{{ a }}>", "{% for i in list %}{{ loop.nextitem }}|{% endfor %}", "{% for i in list if i != 1 %}{{ loop.index }}{{ i }}{% endfor %}",
    "{% if undefined_name is defined %}a{% elif n > 5 %}b{% else %}c{% endif %}", "SELECT * FROM t WHERE x = '{{ q | replace(\"'\", \"''\") }}' LIMIT {{ n }}", "x{{ 1, 2 }}", "{% for i in 1, 2 %}{{ i }}{% endfor %}", "{%- set x = 5 -%}\n{{ x }}",
    "{{ n }}{# c #}", "{{ loop }}x", "{% for i in list %}{{ loop.index }}{% endfor %}{{ loop }}", "{% set n = 1 %}{% if yes %}{% set n = 2 %}{% endif %}{{ n }}", "{% for i in undefined_name %}x{% else %}e{% endfor %}", "{{ 'a' }}\n{{ 'b' }}\n\n", "{{ nothing }} x", "{{ f }} {{ huge }} {{ tiny }} {{ g }}",
    "{% set ns = namespace(t=0, a='x') %}{% for i in list %}{% set ns.t = ns.t + i %}{% endfor %}{{ ns.t }}{{ ns.a }}{{ ns['t'] }}{{ ns.none }}", "{% set ns = namespace(d) %}{% set ns.b = [1] %}{{ ns.b }}{{ ns.a }}",
    "{% set ns = namespace() %}{% if yes %}{% set ns.found = true %}{% endif %}{{ ns.found }}{{ 'y' if ns else 'n' }}", "{% set x = 1 %}{% set x.a = 2 %}", "{% set zz.a = 2 %}", "{% set ns = namespace(a=1) %}{% set ns.a.b = 2 %}", "{% set ns = namespace(1) %}x",
    "{% macro m(a, b=2) %}<{{ a }}-{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {{ m('x', b='y') | upper }}{{ m(1) ~ 2 }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}", "{% macro f(n) %}{% if n > 0 %}{{ n }},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% set x = 5 %}{% macro m() %}{{ x }}{{ n }}{% endmacro %}{% for x in [1] %}{{ m() }}{% endfor %}", "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ n }}{% endcall %}", "{% macro m() %}{% for i in [1,2] %}{{ caller(i) }};{% endfor %}{% endmacro %}{% call(x) m() %}<{{ x }}>{% endcall %}",
    "{% macro m() %}a{% endmacro m %}{{ m() }}", "{% macro m(a, a) %}{% endmacro %}", "{% macro %}{% endmacro %}", "{% macro m() %}", "{% call n() %}{% endcall %}", "{%- macro m() -%}  a  {%- endmacro -%}  {{ m() }}!", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with n = 1 %}{% with n = n + 1, k = n %}{{ n }}{{ k }}{% endwith %}{{ n }}{% endwith %}{{ n }}", "{% with %}{% set q = 3 %}{{ q }}{% endwith %}{{ q }}", "{% with a %}{% endwith %}",
    "{% macro m(x) %}{% set ns = namespace(v=x) %}{% set ns.v = ns.v * 2 %}{{ ns.v }}{% endmacro %}{{ m(4) }}{{ m(5) }}"]

def corpus(directory):
    texts = set()
    for name in sorted(os.listdir(directory)):
        text = open(os.path.join(directory, name), encoding="utf-8").read()
        texts.update(re.findall(r"\{\{.*?\}\}", text))
        texts.update(line.split(": ", 1)[-1].strip("'\"|> ") for line in text.splitlines() if "{{" in line and line.count("{{") == line.count("}}"))
    if not texts: sys.exit(77)
    for text in sorted(texts):
        case(text.replace("''", "'") if text.count("''") > 1 and "\"''\"" not in text else text)

def main():
    mode = sys.argv[1]
    if mode == "known":
        for line in KNOWN.strip("\n").split("\n"): case(line, expression=True)
        for text in KNOWN_TEMPLATES: case(text)
    elif mode == "corpus":
        corpus(sys.argv[2])
    else:
        maker = Maker(int(sys.argv[2]))
        for _ in range(int(sys.argv[3])):
            if mode == "expressions": case(maker.top(maker.r.choice([1, 1, 2, 2, 3])), expression=True)
            else: case(maker.body(2))

main()
