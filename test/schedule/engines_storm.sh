#!/bin/bash
# engines_storm.sh KILLS: storm.py with two engines on a Postgres of its own.
. "$(dirname "$0")/../e2e/postgres_lib.sh"
export CAIRN_CONFINE=none
cd "$(mktemp -d)" || exit 1
postgres_up
python3 "$root/test/schedule/storm.py" "$CAIRN" --kills "$1" --store "$pg"
rc=$?
postgres_down
exit $rc
