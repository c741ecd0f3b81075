#!/usr/bin/env bash
# The library as it is installed: what it exports, its layout, pkg-config, the example, plugins, the examples of the docs.
. "$(dirname "$0")/lib.sh"

prefix=$PWD/usr
cc=${CC:-gcc}
installed() {
    make -s -C "$root" install PREFIX="$prefix" >install.log 2>&1 || fail "make install: $(tail -n 3 install.log)"
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    cflags=$(pkg-config --cflags cairn) || fail 'pkg-config does not know cairn'
}
strict="-std=c17 -Wall -Wextra -Wpedantic -Werror"

test_only_cairn_names_are_exported() {
    installed
    nm -D --defined-only "$prefix/lib/libcairn.so" | awk '{ print $NF }' >shared
    grep -v '^cairn_.*@@CAIRN_0.1$' shared | grep -vx 'CAIRN_0.1' && fail 'the shared library exports other names'
    nm -g --defined-only "$prefix/lib/libcairn.a" | awk 'NF == 3 { print $3 }' | sort >static
    grep -v '^cairn_' static && fail 'the static library exports other names'
    equal "$(sed 's/@@.*//' shared | grep '^cairn_' | sort)" "$(cat static)" 'names'
    sed -n 's/.*CAIRN_API.*\(cairn_[a-z_]*\)(.*/\1/p' "$prefix/include/cairn/cairn.h" | sort >declared
    equal "$(cat declared)" "$(cat static)" 'declared and exported names'
    readelf -d "$prefix/lib/libcairn.so" | grep -q 'SONAME.*\[libcairn.so.0\]' || fail 'soname'
    readelf -d "$prefix/lib/libcairn.so" >dynamic
    hasnt dynamic TEXTREL
    for f in bin/cairn lib/libcairn.so.0 lib/pkgconfig/cairn.pc share/man/man1/cairn.1 share/man/man3/cairn.3 include/cairn/plugin.h; do
        [ -e "$prefix/$f" ] || fail "$f was not installed"
    done
    make -s -C "$root" install PREFIX=/opt/x DESTDIR="$PWD/stage" >/dev/null 2>&1
    has stage/opt/x/lib/pkgconfig/cairn.pc 'prefix=/opt/x'
}
test_abi_is_the_golden_one() {
    installed
    $cc $strict $cflags -o abi "$e2e/abi.c" || fail 'abi.c does not compile'
    { nm -D --defined-only "$prefix/lib/libcairn.so" | awk '{ print $2, $NF }' | grep cairn_ | sort -k2; ./abi; } >abi.txt
    [ -n "${CAIRN_GOLDEN_UPDATE:-}" ] && cp abi.txt "$root/test/golden/abi.txt"
    diff "$root/test/golden/abi.txt" abi.txt >difference || fail "the ABI has changed: $(head -n 5 difference)"
}
test_example_runs_shared_and_static() {
    installed
    equal "$(($(wc -l <"$root/examples/embed.c") < 60))" 1 'lines of embed.c'
    $cc $strict $cflags -o shared "$root/examples/embed.c" $(pkg-config --libs cairn) || fail 'shared'
    $cc $strict $cflags -o static "$root/examples/embed.c" "$prefix/lib/libcairn.a" \
        $(pkg-config --static --libs cairn | sed 's/-lcairn//') || fail 'static'
    readelf -d static >dynamic; hasnt dynamic libcairn
    for how in shared static; do
        ./$how sqlite:$how.db >out 2>err || fail "$how: $(cat err)"
        has err 'charging {"amount":42} (order-1:charge:1)'
        equal "$(tr -s ' \n' ' ' <out)" ' 1 workflow_started 2 node_started 3 node_completed 4 node_started 5 node_completed 6 workflow_completed COMPLETED '
        ./$how sqlite:$how.db >again 2>err || fail "again: $(cat err)" # attaches; nothing is charged twice
        empty err; cmp out again || fail 'another log'
        "$prefix/bin/cairn" get order-1 --store sqlite:$how.db -o json >card || fail 'cairn get'
        equal "$(jq -r .status card)" COMPLETED
    done
}
test_headers_are_for_c99_and_cxx() {
    installed
    printf '#include <cairn/plugin.h>\nint main(void) { return cairn_version() == 0; }\n' >h.c
    $cc -std=c99 -Wall -Wextra -Wpedantic -Werror $cflags -fsyntax-only h.c || fail 'C99'
    command -v g++ >/dev/null || skip 'g++ is not installed'
    g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror $cflags -fsyntax-only -x c++ h.c || fail 'C++'
}
test_examples_of_the_docs_compile() {
    installed
    awk '/^```c$/ { on = 1; name = ""; next } /^```/ { on = 0 } on && /^\/\/ [a-z]*\.c$/ { name = $2 } on && name { print > name }' "$root/docs/library.md"
    [ -s hello.c ] && [ -s loop.c ] || fail 'no examples in docs/library.md'
    $cc $strict $cflags -c loop.c || fail loop.c
    $cc $strict $cflags -o hello hello.c $(pkg-config --libs cairn) || fail hello.c
    ./hello >out || fail 'hello'
    equal "$(cat out)" 'attempt 1 of a in hello-1, key hello-1:a:1'
}
plugin() {
    $cc -std=c17 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -I"$root/include" -o greet.so "$root/examples/plugin/greet.c" || fail 'greet.c'
}
test_plugin_brings_kinds_to_the_command_line() {
    plugin
    cairn_is 3 validate "$root/examples/plugin/greet.yaml"; has err 'there is no function "greet"'
    cairn_is 0 validate "$root/examples/plugin/greet.yaml" --plugin greet.so
    cairn_is 0 run "$root/examples/plugin/greet.yaml" "${store[@]}" --plugin ./greet.so --run-id g-1 -- World
    "$CAIRN" events g-1 "${store[@]}" -o jsonl >log; has log 'Cairn greets World: hello, later'
    cairn_is 0 get g-1 "${store[@]}" # reading needs no plugin
    cairn_is 5 run "$root/examples/plugin/greet.yaml" --plugin ./nosuch.so; has err nosuch.so
    cp "$root/examples/plugin/greet.yaml" . # functions are mocked like everything else, and give values, not texts
    cairn_is 0 run greet.yaml "${store[@]}" --plugin ./greet.so --run-id g-2 -- World
    cairn_is 0 test record g-2 "${store[@]}"; cp out greet.test.yaml
    cairn_is 0 test greet.test.yaml
    cp "$root/LICENSE" bad.so; cairn_is 5 validate x.yaml --plugin bad.so; has err hint
    intact
}
test_run_of_a_plugin_is_recovered_with_it_only() {
    plugin
    cat >slow.yaml <<'YAML'
name: slow
nodes:
  - id: a
    use: greet
    with: { to: you }
  - id: b
    depends_on: [a]
    bash: touch begun; while [ ! -e go ]; do sleep 0.05; done
  - id: c
    depends_on: [b]
    use: greet-later
YAML
    "$CAIRN" run slow.yaml "${store[@]}" --plugin ./greet.so --run-id s-1 >/dev/null 2>&1 &
    wait_for test -e begun
    kill -9 $!; wait $! 2>/dev/null
    "$CAIRN" recover "${store[@]}" >out 2>err; has err 'greet'; has err 'hint'
    status_is s-1 RUNNING || fail 'the run did not stay as it was'
    touch go
    cairn_is 0 recover "${store[@]}" --plugin ./greet.so
    status_is s-1 COMPLETED || fail 'not completed'
    intact
}
# Kills the process before every fifth write, and while recovering too; a function is called once per attempt that the log
# names, and never again once its step has completed.
test_functions_survive_a_kill_at_every_write_I12() {
    $cc -std=c17 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -I"$root/include" -o note.so "$e2e/note_plugin.c" || fail note_plugin.c
    $cc -shared -fPIC -O1 -o shim.so "$root/test/crash/shim.c" -ldl || fail shim.c
    echo '{"planId":"n","planVersion":"1","steps":[{"stepId":"a","kind":"note"},{"stepId":"b","kind":"note","with":{"of":"$a.output"}},{"stepId":"c","kind":"note"}]}' >n.json
    NOTES=/dev/null "$CAIRN" run n.json "${store[@]}" --plugin ./note.so --run-id warm >/dev/null 2>&1 # makes the store
    export NOTES=$PWD/notes
    local n worlds=0
    for n in $(seq 2 5 300); do
        : >notes
        LD_PRELOAD=$PWD/shim.so KILL_AT=$n "$CAIRN" run n.json "${store[@]}" --plugin ./note.so --run-id "r$n" --progress none >/dev/null 2>&1 && break
        LD_PRELOAD=$PWD/shim.so KILL_AT=$((1 + n % 17)) "$CAIRN" recover "${store[@]}" --plugin ./note.so --progress none >/dev/null 2>&1
        "$CAIRN" run n.json "${store[@]}" --plugin ./note.so --run-id "r$n" --progress none >/dev/null 2>err || fail "at $n: $(tail -n 1 err)"
        "$CAIRN" events "r$n" "${store[@]}" -o jsonl >log
        for step in a b c; do
            local again calls
            again=$(jq -r "select(.stepId==\"$step\" and .eventType==\"StepRedispatched\").eventType" log | wc -l)
            calls=$(grep -c "^$step " notes)
            [ "$calls" -ge 1 ] && [ "$calls" -le $((1 + again)) ] || fail "at $n: step $step was called $calls times, redispatched $again"
            equal "$(grep "^$step " notes | sort | uniq -d)" '' "at $n: an attempt was called twice"
        done
        worlds=$((worlds + 1))
    done
    [ "$worlds" -ge 5 ] || fail "only $worlds worlds"
    intact
}
run_tests "$@"
