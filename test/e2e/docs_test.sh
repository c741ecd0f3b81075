#!/usr/bin/env bash
# Every example of the documents: console blocks are typed into a real terminal and must show what is written there
# (tools/transcript), all other blocks are validated, compiled or run (docs_blocks.py).
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cairn=${CAIRN:-$root/build/cairn}
cd "$root" || exit 1
mapfile -t documents < <(ls ./*.md docs/*.md docs/*/*.md bindings/*/*.md | sort)
mapfile -t screens < <(grep -l '^```console$' "${documents[@]}")
rc=0
python3 "$here/docs_blocks.py" "$cairn" "${documents[@]}" || rc=1
if command -v tmux >/dev/null; then
    tools/transcript "$cairn" "${screens[@]}" || rc=1
else
    echo "skip transcripts: tmux is not installed"
fi
# What is observed has one list in the code; the page and the schema have the same names.
missing=$(
    for name in $(grep -oE '"cairn_[a-z_]+"' src/view/metrics.h | tr -d '"'); do
        grep -qE "\`$name(_seconds|_bytes|_total)*\`" docs/format/observe.md || echo "$name"
    done
    for name in $(grep -oE '^    X\([A-Z_]+, [123]\)' src/view/alerts.h | grep -oE '[A-Z_]{4,}'); do
        grep -q "\`$name\`" docs/format/observe.md && grep -q "\"$name\"" schemas/alert.json || echo "$name"
    done
)
if [ -z "$missing" ]; then
    echo "ok metrics_and_alerts_are_documented"
else
    echo "not ok metrics_and_alerts_are_documented:" $missing
    rc=1
fi
echo "# observe: $([ -z "$missing" ] && echo '1 passed, 0' || echo '0 passed, 1') failed, 0 skipped"
exit $rc
