# For tests that need a container runtime: a real runc or crun and a root directory of the test's own. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/serve_lib.sh"

# A root directory with bash, sh and a few programs of this machine, and the libraries that they name.
image() {
    local root=images/$1 program library
    mkdir -p "$root"/{bin,proc,dev,tmp,sys,workspace,etc}
    chmod 1777 "$root/tmp" # runc gives what it mounts there the same mode
    for program in bash sleep cat id env head ls; do
        cp "$(command -v "$program")" "$root/bin/"
        for library in $(ldd "$(command -v "$program")" | grep -o '/[^ ]*'); do
            mkdir -p "$root$(dirname "$library")"
            cp -Ln "$library" "$root$library"
        done
    done
    ln -s bash "$root/bin/sh"
}
# The runtime of this machine that can run a container here, in $runtime; else the test is skipped with what it said.
runtime() {
    image small
    local name last='neither runc nor crun is installed'
    for name in ${CAIRN_RUNTIMES:-runc crun}; do
        command -v "$name" >/dev/null || continue
        printf '{"command": ["%s"], "images": "%s/images", "limits": {"memoryBytes": 134217728, "processes": 64}}' "$name" "$PWD" >containers.json
        book probe "      - {name: a, kind: container, image: small, command: [/bin/sh, -c, 'echo up']}"
        if "$CAIRN" run probe.yaml --store "sqlite:probe.db" --run-id probe --progress none --containers containers.json >probe.out 2>&1; then
            runtime=$name
            return
        fi
        last="$name cannot run a container here: $("$CAIRN" logs probe --store "sqlite:probe.db" 2>&1 | tail -n 1)"
    done
    skip "$last"
}
