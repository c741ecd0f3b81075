# Cases of the page in a browser (web/test/browser.mjs, web/test/cases): each prints a line, and fails its test by its name. One service and
# one browser for all that are named: cases, or files of them.
in_a_browser() {
    [ -e "$root/web/dist/index.html" ] || skip "built without the page (PAGE=no)"
    command -v "${CHROMIUM:-chromium}" >/dev/null || skip "chromium is not installed (./setup)"
    node "$root/web/test/browser.mjs" "$CAIRN" "$PWD" "$@" >browser.log 2>&1 || fail "$(grep -A 6 '^not ok' browser.log | head -c 3000; tail -n 3 browser.log | cut -c1-300)"
}
