#!/usr/bin/env bash
# What helps to write documents: graph.
. "$(dirname "$0")/lib.sh"
ex=$root/examples

test_graph_of_a_file_in_every_format() {
    cairn_is 0 graph "$ex/joins.yaml"; has out '┌'; has out 'countdown'; has out 'all_done'; empty err
    [ "$(LC_ALL=C.UTF-8 wc -L <out)" -le 80 ] || fail 'wider than 80 columns'
    cairn_is 0 graph "$ex/joins.yaml" -o ascii; LC_ALL=C grep -q '[^ -~]' out && fail 'not ASCII'
    cairn_is 0 graph "$ex/joins.yaml" --ascii; LC_ALL=C grep -q '[^ -~]' out && fail 'not ASCII'
    cairn_is 0 graph "$ex/joins.yaml" -o dot; has_line out '^digraph'
    ! command -v dot >/dev/null || dot -Tsvg out >/dev/null || fail 'graphviz does not take it'
    cairn_is 0 graph "$ex/joins.yaml" -o mermaid; has_line out '^flowchart TD'
    cairn_is 0 graph "$ex/joins.yaml" -o svg; python3 -c 'import sys, xml.dom.minidom as m; m.parse("out")' || fail 'not XML'
    cairn_is 0 graph - <"$ex/hello.json" || true
}
test_graph_of_a_run_shows_states() {
    cairn_is 0 run "$ex/joins.yaml" "${store[@]}" --progress none
    cairn_is 0 graph @last "${store[@]}"; has out '✓ done'; has out '⊘ skipped'
    cairn_is 0 graph @last@2 "${store[@]}"; has out '◌ waiting'; hasnt out 'skipped'
    cairn_is 0 graph @last -o svg "${store[@]}"; has out 'class="n done"'; has out 'prefers-color-scheme:dark'
    cairn_is 0 graph @last --color always "${store[@]}"; has out $'\e[32m'
}
test_graph_of_nothing() {
    cairn_is 5 graph nowhere.yaml; has err 'nowhere.yaml'
    cairn_is 5 graph nosuchrun "${store[@]}"
    echo 'nodes: [{id: a}]' >bad.yaml; cairn_is 3 graph bad.yaml; has err 'bad.yaml:1'
    cairn_is 2 graph x.yaml -o png; has err 'text|ascii|dot|mermaid|svg'
}

run_tests "$@"
