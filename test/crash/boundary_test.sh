#!/usr/bin/env bash
# Kills the real binary before and after every call that changes a file, recovers, and checks the promises; then again with a
# second kill during recovery (I1, I6, I11–I15).
. "$(dirname "$0")/lib.sh"
gcc -shared -fPIC -O1 -o "$work/shim.so" test/crash/shim.c -ldl || { not_ok crash_shim "does not compile"; finish boundary; exit 1; }
shim=$work/shim.so

# crash_at STORE_KIND VARIABLE N [M]: one world. Prints nothing when all holds, else what does not; 3 = the limit was not reached.
crash_at() {
    local store=$1:$work/$1-$2-$3 run=r$3
    rm -rf "$work/$1-$2-$3"*
    : >"$EFFECTS"
    env LD_PRELOAD="$shim" "$2=$3" "$CAIRN" run "$work/doc.json" --store "$store" --run-id "$run" --progress none >/dev/null 2>"$work/err"
    local rc=$?
    [ $rc -eq 0 ] && return 3
    [ $rc -eq 137 ] || { echo "exit $rc: $(head -n 1 "$work/err")"; return 1; }
    if [ -n "${4:-}" ]; then
        env LD_PRELOAD="$shim" KILL_AT="$4" "$CAIRN" recover --store "$store" --progress none >/dev/null 2>"$work/err"
    fi
    "$CAIRN" recover --store "$store" --progress none >/dev/null 2>"$work/err" || {
        # Before the first append there is no run, or no store, to recover: nothing was promised yet.
        "$CAIRN" events "$run" --store "$store" -o jsonl >/dev/null 2>&1 || { rm -rf "$work/$1-$2-$3"*; return 0; }
        echo "recover: $(head -n 1 "$work/err")"
        return 1
    }
    if ! "$CAIRN" get "$run" --store "$store" >/dev/null 2>&1; then
        "$CAIRN" run "$work/doc.json" --store "$store" --run-id "$run" --progress none >/dev/null 2>&1 || { echo "a run after the crash fails"; return 1; }
    fi
    keep_world "$store" "$run" "$worlds_dir/$3" || return 1
    echo "$worlds_dir/$3.events $worlds_dir/$3.effects $run" >>"$worlds_dir/list"
    rm -rf "$work/$1-$2-$3"*
}

walk() { # STORE VARIABLE STRIDE [double]
    worlds_dir=$work/worlds
    rm -rf "$worlds_dir"; mkdir "$worlds_dir"
    local n=1 worlds=0 bad= name="kill_9_$2_every_$1_write_boundary${4:+_and_again_in_recovery}_I1_I11_I12_I13_I14_I15_RE_1_0"
    while :; do
        local why
        why=$(crash_at "$1" "$2" "$n" ${4:+$((1 + n % 23))})
        local rc=$?
        [ $rc -eq 3 ] && break
        worlds=$((worlds + 1))
        [ $rc -ne 0 ] && { bad="at call $n: $why"; break; }
        n=$((n + $3))
        [ $n -gt 2000 ] && break
    done
    # One look at the logs of all of them: Python takes longer to start than to check.
    [ -n "$bad" ] || bad=$(python3 test/crash/check_world.py $(cat "$worlds_dir/list") 2>&1) || bad="at call ${bad##*"$worlds_dir/"}"
    if [ -n "$bad" ]; then not_ok "$name" "$bad"; elif [ "$worlds" -lt 10 ]; then not_ok "$name" "only $worlds worlds"; else ok "$name ($worlds worlds)"; fi
}

walk_store() { # STORE, in a directory of its own
    work=$work/$1
    mkdir "$work"
    document
    walk "$1" KILL_AT 1
    walk "$1" KILL_AFTER 3
    walk "$1" KILL_AT 4 double
}
# Both at once: they wait for the disk most of the time.
for store in sqlite files; do (trap - EXIT; walk_store $store) >"$work/$store.out" & done
wait
cat "$work"/*.out
passed=$(cat "$work"/*.out | grep -c '^ok ') failed=$(cat "$work"/*.out | grep -c '^not ok ')
[ $((passed + failed)) = 6 ] || not_ok boundary_walks 'one of them did not come to its end'
finish boundary
