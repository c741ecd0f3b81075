"""include/cairn/cairn.h in ctypes: structs, prototypes, the library itself. Nothing here is public."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)

OK, E_NOT_FOUND, E_EXISTS, E_CONFLICT, E_TIMEOUT, E_UNSUPPORTED, END = 0, 4, 5, 6, 12, 17, 100
DONE, FAIL, PENDING = 0, 1, 2
NOW, DRAIN = 0, 1
NO_PROCESS_TOOLS, NO_CREATE = 2, 4
ATTACH = 1
RUN_SIZE = 129


class Error(Structure):
    _fields_ = [("code", c_int32), ("line", c_uint32), ("column", c_uint32), ("message", c_char * 468), ("hint", c_char * 240)]


class Attempt(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_char_p), ("run", c_char_p), ("step", c_char_p), ("input", c_void_p),
                ("input_len", c_size_t), ("key", c_char_p), ("artifacts_dir", c_char_p), ("logical", c_uint32),
                ("engine", c_uint32), ("timeout_ms", c_int64), ("token", c_uint64)]


class Result(Structure):
    _fields_ = [("size", c_size_t), ("answer", c_int32), ("retryable", c_int32), ("output", c_void_p), ("output_len", c_size_t),
                ("code", c_char_p), ("message", c_char_p), ("release", c_void_p), ("memory", c_void_p)]


RUN_FUNCTION = CFUNCTYPE(c_int, c_void_p, POINTER(Attempt), POINTER(Result))
CANCELLED_FUNCTION = CFUNCTYPE(None, c_void_p, c_uint64)
RELEASE_FUNCTION = CFUNCTYPE(None, c_void_p)
LOG_FUNCTION = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
OUTPUT_FUNCTION = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p, c_int, c_char_p)
ENDED_FUNCTION = CFUNCTYPE(None, c_void_p, c_char_p, c_int)


class Kind(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("run", RUN_FUNCTION), ("cancelled", CANCELLED_FUNCTION),
                ("context", c_void_p), ("release", RELEASE_FUNCTION)]


class Options(Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("workers", c_uint32), ("processes", c_uint32), ("poll_ms", c_uint32),
                ("tenant", c_char_p), ("actor", c_char_p), ("context", c_void_p), ("now", c_void_p), ("allocate", c_void_p),
                ("release", c_void_p), ("log", LOG_FUNCTION), ("output", OUTPUT_FUNCTION), ("ended", ENDED_FUNCTION),
                ("max_steps", c_uint32)]


class Start(Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("document", c_char_p), ("document_len", c_size_t), ("file", c_char_p),
                ("inputs", c_char_p), ("run", c_char_p), ("arguments", c_char_p), ("work_dir", c_char_p)]


class Signal(Structure):
    _fields_ = [("size", c_size_t), ("type", c_char_p), ("id", c_char_p), ("step", c_char_p), ("reason", c_char_p),
                ("payload", c_char_p), ("force", c_int32)]


class Decision(Structure):
    _fields_ = [("size", c_size_t), ("accepted", c_int32), ("duplicate", c_int32), ("seq", c_uint64), ("code", c_char * 64),
                ("message", c_char * 256), ("new_run", c_char * RUN_SIZE)]


class Event(Structure):
    _fields_ = [("size", c_size_t), ("seq", c_uint64), ("type", c_char_p), ("bytes", c_void_p), ("len", c_size_t)]


class Filter(Structure):
    _fields_ = [("size", c_size_t), ("statuses", c_uint32), ("unfinished", c_int32), ("roots", c_int32), ("plan", c_char_p),
                ("prefix", c_char_p), ("since_ms", c_int64), ("until_ms", c_int64)]


class RunRow(Structure):
    _fields_ = [("size", c_size_t), ("run", c_char_p), ("plan", c_char_p), ("version", c_char_p), ("name", c_char_p),
                ("parent", c_char_p), ("substatus", c_char_p), ("cause", c_char_p), ("status", c_int32), ("owned", c_int32),
                ("last_seq", c_uint64), ("created_ms", c_int64), ("started_ms", c_int64), ("ended_ms", c_int64),
                ("steps", c_uint32), ("completed", c_uint32), ("failed", c_uint32), ("skipped", c_uint32), ("running", c_uint32)]


_PROTOTYPES = {
    "cairn_version": (c_char_p, []),
    "cairn_code_name": (c_char_p, [c_int]),
    "cairn_free": (None, [c_void_p]),
    "cairn_open": (c_int, [c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)]),
    "cairn_shutdown": (c_int, [c_void_p, c_int, c_int64]),
    "cairn_close": (None, [c_void_p, c_int, c_int64]),
    "cairn_register": (c_int, [c_void_p, POINTER(Kind), POINTER(Error)]),
    "cairn_load_plugin": (c_int, [c_void_p, c_char_p, POINTER(Error)]),
    "cairn_complete": (c_int, [c_void_p, c_uint64, POINTER(Result), POINTER(Error)]),
    "cairn_cancelled": (c_int, [c_void_p, c_uint64]),
    "cairn_log": (None, [c_void_p, c_uint64, c_char_p]),
    "cairn_start": (c_int, [c_void_p, POINTER(Start), POINTER(c_char), POINTER(Error)]),
    "cairn_check": (c_int, [c_void_p, POINTER(Start), POINTER(c_void_p), POINTER(Error)]),
    "cairn_recover": (c_int, [c_void_p, c_char_p, POINTER(c_size_t), POINTER(Error)]),
    "cairn_wait": (c_int, [c_void_p, c_char_p, c_int64, POINTER(c_int), POINTER(Error)]),
    "cairn_signal": (c_int, [c_void_p, c_char_p, POINTER(Signal), POINTER(Decision), POINTER(Error)]),
    "cairn_view": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_output": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_payload": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_artifacts": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_artifact": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_proof": (c_int, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t), POINTER(Error)]),
    "cairn_events_open": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_void_p), POINTER(Error)]),
    "cairn_events_next": (c_int, [c_void_p, POINTER(Event), POINTER(Error)]),
    "cairn_events_close": (None, [c_void_p]),
    "cairn_runs_open": (c_int, [c_void_p, POINTER(Filter), POINTER(c_void_p), POINTER(Error)]),
    "cairn_runs_next": (c_int, [c_void_p, POINTER(RunRow), POINTER(Error)]),
    "cairn_runs_close": (None, [c_void_p]),
}


def _load() -> ctypes.CDLL:
    """$CAIRN_LIBRARY, else the one in this package (wheels carry it), else libcairn.so.0 where the system keeps libraries. The interpreter's
    lock is released in every call."""
    carried = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libcairn.so.0")
    name = os.environ.get("CAIRN_LIBRARY") or (carried if os.path.exists(carried) else ctypes.util.find_library("cairn") or "libcairn.so.0")
    try:
        library = ctypes.CDLL(name)
    except OSError as why:
        raise ImportError(f"cannot load {name}: {why}; install libcairn, or set CAIRN_LIBRARY to its file") from why
    for function, (result, arguments) in _PROTOTYPES.items():
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


lib = _load()
