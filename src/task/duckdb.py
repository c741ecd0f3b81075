# Runs the SQL on stdin as the program duckdb does with -json: each query prints its rows as one array. Given to python3 -c where
# there is the library and not the program; argv[1] is the database. Exit 3: there is no library.
import decimal
import json
import os
import re
import sys

try:
    import duckdb
except ImportError:
    sys.exit(3)

# Statements that answer with rows because they were asked for some; others only count what they changed.
QUIET = {"CREATE", "INSERT", "UPDATE", "DELETE", "COPY", "DROP", "ALTER", "SET", "LOAD", "ATTACH", "DETACH", "TRANSACTION"}


MARK = os.urandom(16).hex()  # stands before a number that json.dumps cannot write


def plain(value):
    if isinstance(value, decimal.Decimal):
        return MARK + str(value)
    if isinstance(value, (bytes, bytearray)):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def main():
    connection = duckdb.connect(sys.argv[1])
    for statement in connection.extract_statements(sys.stdin.read()):
        connection.execute(statement)
        if statement.type.name.replace("_STATEMENT", "") in QUIET or not connection.description:
            continue
        names = [column[0] for column in connection.description]
        rows = [dict(zip(names, row)) for row in connection.fetchall()]
        if rows:
            print(re.sub(f'"{MARK}([^"]*)"', r"\1", json.dumps(rows, default=plain)))


try:
    main()
except duckdb.Error as error:
    sys.exit(f"{type(error).__name__}: {error}")
