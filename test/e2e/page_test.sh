# The page that the service carries: what is where, in which form, and what is not swallowed by it.
. "$(dirname "$0")/serve_lib.sh"

html='Accept: text/html,application/xhtml+xml,*/*;q=0.8'
# As a browser asks, without a token.
get() {
    local path=$1
    shift
    token='' ask GET "$path" '' "$@"
}
header() { sed -n "s/^$1: \(.*\)\r/\1/p" head; }

test_the_page_is_carried_and_needs_nothing_else() {
    serve
    get / "$html" && answers 200
    equal "$(header Content-Type)" 'text/html; charset=utf-8'
    equal "$(header Cache-Control)" no-cache
    cp body index
    etag=$(header ETag)
    get / "$html" "If-None-Match: \"x\", W/$etag" && answers 304
    hasnt index 'http:' && hasnt index 'https:'
    hasnt index '<style' && hasnt index 'style=' && hasnt index 'onload'
    [ "$(grep -c '<script' index)" = "$(grep -c '<script type="module" src="/assets/' index)" ] || fail "a script that is not a file of ours"
    for path in $(grep -o '/assets/[^"]*' index); do
        get "$path" && answers 200
        equal "$(header Cache-Control)" 'public, max-age=31536000, immutable'
        case $path in *.js) type=text/javascript ;; *.css) type=text/css ;; *) fail "what is $path" ;; esac
        equal "$(header Content-Type)" "$type; charset=utf-8"
        cmp -s body "$root/web/dist$path" || fail "$path is not what was built"
        get "$path" 'Accept-Encoding: gzip;q=0.5, br' && equal "$(header Content-Encoding)" br
        cmp -s body "$root/web/dist$path.br" || fail "$path is not what was packed"
        get "$path" 'Accept-Encoding: br;q=0, gzip' && equal "$(header Content-Encoding)" gzip
        gunzip -c <body | cmp -s - "$root/web/dist$path" || fail "$path is not what was packed as gzip"
    done
}

test_the_page_has_a_strict_policy() {
    serve
    for path in / /favicon.svg "$(curl -s "$url/" | grep -o '/assets/main[^"]*js')"; do
        get "$path" "$html" && answers 200
        policy=$(header Content-Security-Policy)
        case $policy in *unsafe-inline* | *"'unsafe-eval'"* | *http* | *'*'* | *data:*) fail "$path: $policy" ;; esac
        for must in "default-src 'none'" "script-src 'self' 'wasm-unsafe-eval'" "frame-ancestors 'none'" "base-uri 'none'" "require-trusted-types-for 'script'"; do
            case $policy in *"$must"*) ;; *) fail "$path: $must is not in: $policy" ;; esac
        done
        equal "$(header X-Content-Type-Options)" nosniff
    done
}

test_addresses_of_the_page_swallow_nothing_of_the_api() {
    serve
    for path in /runs /runs/3f2a/why /compare /definitions/a/b/source /metricsx; do
        get "$path" "$html" && answers 200
        equal "$(header Content-Type)" 'text/html; charset=utf-8'
        get "$path" && answers 401 # a program, which asked for no document
        token='' ask POST "$path" '{}' "$html" && answers 401
    done
    for path in /v1 /v1/ /v1/runs /v1/nothing /openapi.json /metrics /schemas/run-snapshot.json /v1/t/a/p/b/e/c/runs; do
        get "$path" "$html"
        [ "$status" = 401 ] || [ "$status" = 400 ] || fail "$path: $status"
        equal "$(header Content-Type)" application/problem+json
    done
    get /readyz "$html" && answers 200 && equal "$(cat body)" ok
    get /assets/main-0000.js "$html" && answers 404
    get /assets/ "$html" && [ "$status" != 200 ] || fail "a directory"
    ask GET /metrics && answers 200 && has body 'route="page"'
}

test_the_page_is_read_from_a_directory_during_development() {
    mkdir -p dist/assets
    echo '<p>one</p>' >dist/index.html
    echo 'let a' >dist/assets/a.js
    echo secret >secret
    ln -s ../secret dist/link.txt
    serve --page-dir dist
    get /runs "$html" && answers 200 && has body one
    echo '<p>two</p>' >dist/index.html
    get / && has body two
    get /assets/a.js && equal "$(header Content-Type)" 'text/javascript; charset=utf-8'
    equal "$(header Cache-Control)" no-cache
    get /link.txt && answers 401
    get /..%2fsecret "$html" && hasnt body secret
    stop_serving
    cairn_is 5 serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 --page-dir nowhere
    has err nowhere
}

run_tests "$@"
