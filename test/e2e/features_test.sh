#!/usr/bin/env bash
# docs/features.md: every "has" names a test, every test that the page names is there, and every row of the two tables is.
. "$(dirname "$0")/lib.sh"

rows() { grep -E '^\| [0-9]+ \|' "$root/docs/features.md"; }
cell() { cut -d'|' -f"$1" | sed 's/^ *//; s/ *$//'; }
# "FILE.sh CASE" and "unit:FILE CASE"
is_there() {
    local file=${1%% *} name=${1#* }
    case $file in
    unit:*) grep -qF "TEST($name)" "$e2e/../unit/${file#unit:}.c" ;;
    *) grep -qE "^test_$name\(\)" "$e2e/$file" ;;
    esac
}

test_every_row_of_the_tables_is_told_once() {
    equal "$(rows | cell 2 | tr '\n' ' ')" "$(seq -s ' ' 70) $(seq -s ' ' 30) " 'numbers of rows'
    equal "$(rows | cell 4 | sort -u | tr '\n' ' ')" 'has not part ' 'words'
}
test_every_has_names_a_test_that_is_there() {
    rows | while IFS= read -r row; do
        shown=$(cell 6 <<<"$row" | tr -d '`')
        [ "$(cell 4 <<<"$row")" = not ] || [ -n "$shown" ] || fail "no test: $row"
        [ -z "$shown" ] || is_there "$shown" || fail "there is no such test: $shown"
    done || exit 1
}
test_a_test_that_is_gone_is_noticed() {
    ! is_there 'run_test.sh of_no_such_name' && ! is_there 'unit:expr_rule of_no_such_name' || fail 'a test that is not there is found'
}

run_tests "$@"
