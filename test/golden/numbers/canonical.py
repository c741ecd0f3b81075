# The canonical form of a number (docs/format/events.md) once more, with Python's decimal: what other implementations can start from.
#   canonical.py              writes the vectors, canonical.json, to stdout
#   canonical.py --check N    reads N canonical numbers, one a line, from stdin and says which are not in canonical form
import decimal
import json
import sys

CONTEXT = decimal.Context(prec=5000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def canonical(text):
    if not set(text) & set(".eE"):  # an integer: its digits
        return "0" if text == "-0" else text
    sign, digits, exponent = CONTEXT.create_decimal(text).as_tuple()
    minus = "-" if sign else ""
    digits = "".join(map(str, digits)).lstrip("0")
    short = digits.rstrip("0")
    exponent += len(digits) - len(short)
    if not short:
        return minus + "0.0"
    count, point = len(short), len(short) + exponent
    if count <= point <= 21:
        return minus + short + "0" * (point - count) + ".0"
    if 0 < point <= 21:
        return minus + short[:point] + "." + short[point:]
    if -6 < point <= 0:
        return minus + "0." + "0" * -point + short
    fraction = "." + short[1:] if count > 1 else ""
    return "%s%s%se%+d" % (minus, short[0], fraction, point - 1)


TEXTS = """0 -0 1 -1 17 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 761295407002419364
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
100000000000000000000 1000000000000000000000 1000000000000000000000000000000 340282366920938463463374607431768211456
0.0 -0.0 0e5 0.000 -0.0e-7 1.0 1.00 1e0 10e-1 -1.0 1.5 1.10 0.1 0.10 1e2 1E2 1e+2 100.0 56.0 4.50 2e-3 1E30 1e30
0.1000000000000000055511151231257827 0.10000000000000001 0.30000000000000004 333333333.33333329 3.141592653589793238462643383279
0.000001 0.0000001 1e-6 1e-7 1.25e-7 0.00000125 0.000000000000000000000000001 5e-324 1e-400 2.2250738585072014e-308
100000000000000000000.0 1e20 1e21 1000000000000000000000.0 1.5e21 123456789012345678901.5 1234567890123456789012.5
1.7976931348623157e308 1.7976931348623159e308 1e400 -1e400 123e998 1e999999999 -1E-999999999 9007199254740993.0 9223372036854775807.0""".split()
REFUSED = ["1e1000000000", "1e-1000000000", "10e999999999", "01", "1.", ".5", "+1", "1e", "0x10", "NaN", "Infinity"]


def main():
    if sys.argv[1:2] == ["--check"]:
        lines = sys.stdin.read().split()
        wrong = [line for line in lines if canonical(line) != line]
        sys.exit("not canonical: %s" % wrong if wrong or len(lines) != int(sys.argv[2]) else 0)
    print(json.dumps({"vectors": [{"text": t, "canonical": canonical(t)} for t in TEXTS], "refused": REFUSED}, indent=1))


main()
