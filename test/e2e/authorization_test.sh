#!/usr/bin/env bash
# The authorization matrix is data; what is written about it elsewhere must say the same.
. "$(dirname "$0")/lib.sh"

test_the_document_shows_the_table_C_39() {
    python3 "$root/test/e2e/matrix/table.py" "$root/docs/format/authorization.md" 2>why || fail "$(cat why)"
    sed 's/| `run.cancel` | item | – | own |/| `run.cancel` | item | – | – |/' "$root/docs/format/authorization.md" >changed.md
    ! cmp -s changed.md "$root/docs/format/authorization.md" || fail 'the edit did nothing'
    ! python3 "$root/test/e2e/matrix/table.py" changed.md 2>why || fail 'another table is taken for the same'
}

run_tests "$@"
