#!/usr/bin/env bash
# Every example of `cairn help COMMAND`, which are those of the man page, does what it says: help_examples.py.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
exec python3 "$here/help_examples.py" "${CAIRN:-$root/build/cairn}" "$root/examples" "$@"
