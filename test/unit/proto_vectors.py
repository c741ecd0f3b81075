"""Writes test/unit/proto_vectors.h: every message of src/proto/temporal_list.h as Temporal's own library (PyPI: temporalio) writes it. Run it with
that package installed, outside the tree, when a table has changed: python3 test/unit/proto_vectors.py > test/unit/proto_vectors.h

Each field of a table gets a value that follows from its number (n * 1000 + 7, "fn", n / 4), so that the test can check where a value
went. A table that calls a field something that it is not is refused here. Of a oneof only one member can be set: it gives a vector each."""
import importlib, os, pkgutil, re, sys
import temporalio.api
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.descriptor import FieldDescriptor as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
official = {"Any": any_pb2.Any, "Duration": duration_pb2.Duration}
for found in pkgutil.walk_packages(temporalio.api.__path__, "temporalio.api."):
    if not found.name.endswith("_pb2") or ".cloud." in found.name or found.name.endswith("service_pb2"): continue
    for value in vars(importlib.import_module(found.name)).values():
        if hasattr(value, "DESCRIPTOR") and hasattr(value, "SerializeToString"): official.setdefault(value.DESCRIPTOR.name, value)
official["Status"] = official["GrpcStatus"]  # google.rpc.Status: the same three fields

tables = {}
source = open(f"{ROOT}/src/proto/temporal_list.h").read()
for name, spelled, rows in re.findall(r'^MESSAGE\((\w+), "([\w.]+)",(.*?)\)\n(?=MESSAGE|//|\n|$)', source, re.S | re.M):
    tables[name] = (spelled, [(kind, int(number), of) for kind, number, of in re.findall(r"(\w+)\(\w+, \w+, (\d+)(?:, (\w+))?\)", rows)])

def class_of(spelled):
    outer, _, inner = spelled.partition(".")
    return getattr(official[outer], inner) if inner else official[outer]

KINDS = {"NUMBER": (F.TYPE_INT32, F.TYPE_INT64, F.TYPE_ENUM, F.TYPE_BOOL), "DOUBLE": (F.TYPE_DOUBLE,),
         "TEXT": (F.TYPE_STRING, F.TYPE_BYTES), "ONE": (F.TYPE_MESSAGE,), "MANY": (F.TYPE_MESSAGE,)}

def check(name, table, field, kind, of):
    assert field.type in KINDS[kind], (name, field.name, kind)
    assert (kind == "MANY") == field.is_repeated, (name, field.name)

def fill(name, depth, only=None):
    spelled, rows = table = tables[name]
    message = class_of(spelled)()
    for kind, number, of in rows:
        field = message.DESCRIPTOR.fields_by_number[number]
        check(name, table, field, kind, of)
        if field.containing_oneof and only is not None and number != only: continue
        if field.containing_oneof and only is None: continue
        put(message, field, kind, number, of, depth)
    return message

def put(message, field, kind, number, of, depth):
    if kind == "NUMBER":
        value = 1 if field.type == F.TYPE_BOOL else number * 1000 + 7
        setattr(message, field.name, value)
    elif kind == "DOUBLE": setattr(message, field.name, number / 4)
    elif kind == "TEXT": setattr(message, field.name, f"f{number}" if field.type == F.TYPE_STRING else f"f{number}".encode())
    elif depth == 0: return
    elif field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        entries = getattr(message, field.name)
        if value.type == F.TYPE_MESSAGE: entries["f1"].CopyFrom(fill("payload", depth - 1))
        else: entries["f1"] = 2007 if value.type == F.TYPE_ENUM else b"f2"
    elif kind == "ONE":  # by its bytes: one table may stand for several messages of the same shape
        getattr(message, field.name).SetInParent()
        getattr(message, field.name).MergeFromString(fill(of, depth - 1).SerializeToString())
    else:
        for _ in range(2): getattr(message, field.name).add().CopyFrom(fill(of, depth - 1))

lines = []
def write(name, message): lines.append(f'    {{"{name}", "{message.SerializeToString(deterministic=True).hex()}"}},')

for name, (spelled, rows) in tables.items():
    if spelled.endswith("Entry"): continue
    cls = class_of(spelled)
    ones = [n for _, n, _ in rows if cls.DESCRIPTOR.fields_by_number[n].containing_oneof]
    for only in ones or [None]: write(name, fill(name, 3, only))
write("duration", duration_pb2.Duration(seconds=-1, nanos=-999999999))
write("payloads", class_of("Payloads")())
assert len(lines) > 80, len(lines)
print("// Made by test/unit/proto_vectors.py with Temporal's own library: a message of src/proto/temporal.h, and its bytes in hex.")
print("#ifndef CAIRN_TEST_PROTO_VECTORS_H\n#define CAIRN_TEST_PROTO_VECTORS_H\n")
print("static const struct {\n    const char *message, *hex;\n} vectors[] = {")
for line in lines:  # 140 columns
    head, text = line.split(', "', 1)
    text = text[:-3]
    print(head + ",")
    for i in range(0, max(len(text), 1), 120): print(f'     "{text[i:i + 120]}"' + ("}," if i + 120 >= len(text) else ""))
print("};\n\n#endif")
