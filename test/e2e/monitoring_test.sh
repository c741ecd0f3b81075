# The dashboard and the alert rules ask for metrics that the service has, under labels that they have.
. "$(dirname "$0")/serve_lib.sh"
monitoring=$root/docs/monitoring

# NAME: as /metrics declares it, without what a counter or a histogram adds.
declared() { sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' metrics | sort -u; }
asked() { grep -oh 'cairn_[a-z_]*' "$@" | sed -E 's/_(total|bucket|sum|count)$//' | sort -u; }

test_every_metric_that_is_asked_for_exists() {
    serve
    ask GET /metrics '' 'Accept: application/openmetrics-text; version=1.0.0' && answers 200 && cp body metrics
    declared >have
    [ "$(wc -l <have)" -gt 20 ] || fail "few metrics: $(head -c 300 metrics)"
    for file in grafana.json alerts.yaml; do
        asked "$monitoring/$file" >want
        [ "$(wc -l <want)" -gt 8 ] || fail "$file asks for little"
        sed -E 's/_total$//' have | sort -u | comm -23 want - >missing
        [ ! -s missing ] || fail "$file asks for what is not there: $(paste -sd ' ' missing)"
    done
    jq -e '.panels | length > 10 and all(.targets | length > 0)' "$monitoring/grafana.json" >/dev/null || fail 'panels without a question'
    jq -e '[.panels[].id] | length == (unique | length)' "$monitoring/grafana.json" >/dev/null || fail 'panels with the same id'
}

test_promtool_takes_the_rules() {
    command -v promtool >/dev/null || skip 'promtool (Debian: prometheus) is not installed'
    promtool check rules "$monitoring/alerts.yaml" >out 2>&1 || fail "$(cat out)"
}

run_tests "$@"
