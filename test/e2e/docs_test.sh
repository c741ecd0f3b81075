#!/usr/bin/env bash
# Every example of the documents: console blocks are typed into a real terminal and must show what is written there
# (tools/transcript), all other blocks are validated, compiled or run (docs_blocks.py).
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cairn=${CAIRN:-$root/build/cairn}
cd "$root" || exit 1
mapfile -t documents < <(ls ./*.md docs/*.md docs/*/*.md bindings/*/*.md clients/*.md clients/*/*.md | sort)
mapfile -t screens < <(grep -l '^```console$' "${documents[@]}")
rc=0
python3 "$here/docs_blocks.py" "$cairn" "${documents[@]}" || rc=1
if command -v tmux >/dev/null; then
    tools/transcript "$cairn" "${screens[@]}" || rc=1
else
    echo "skip transcripts: tmux is not installed"
fi
exit $rc
