# For the tests of packages: systems of their own, and the commands that the guides tell their readers to type.
#
#   guide FILE WHERE           the lines of the blocks "sh in=WHERE" of a document
#   script FILE WHERE          the same as a script that ends where a command fails
#   boot ROOT                  systemd in ROOT, as it starts a machine, in namespaces of its own; $machine is its first process
#   inside COMMAND             in that system
#   halt                       ends it
package_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
package_root=$(cd "$package_here/../.." && pwd)

guide() {
    [ -e "$package_root/$1" ] || { echo "FAIL: there is no $1" >&2; return 1; }
    awk -v begin="\`\`\`sh in=$2" '$0 == begin { on = 1; next } on && $0 == "```" { on = 0 } on' "$package_root/$1"
}

# Files of the release have the version that was built; NEXT is the one after it.
script() {
    local lines
    lines=$(guide "$1" "$2") && [ -n "$lines" ] || { echo "FAIL: $1 has no commands for $2" >&2; return 1; }
    printf 'set -e\n%s\n' "$lines" | sed "s/NEXT/${next:-NEXT}/g; s/cairn_0\.1\.0_/cairn_${version:-0.1.0}_/"
}

# The kernel's settings are this machine's: /proc/sys and /sys are for reading. No device but those that programs expect.
boot() {
    unshare --mount --pid --fork --uts --ipc --cgroup --kill-child bash -c '
        set -e
        root=$1
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --bind "$root/proc/sys" "$root/proc/sys"
        mount -o remount,ro,bind "$root/proc/sys"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
        if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
            mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
        else
            mkdir "$root/sys/fs/cgroup/systemd"
            mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
        fi
        mount -t tmpfs tmpfs "$root/run"
        mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
        mount -t tmpfs -o mode=755 tmpfs "$root/dev"
        mkdir "$root/dev/pts" "$root/dev/shm"
        for one in null zero full random urandom tty; do touch "$root/dev/$one"; mount --bind "/dev/$one" "$root/dev/$one"; done
        mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
        ln -s pts/ptmx "$root/dev/ptmx"; ln -s /proc/self/fd "$root/dev/fd"
        hostname cairn-test
        mkdir -p "$root/.before"
        cd "$root"
        pivot_root . .before
        umount -l /.before
        exec env -i container=cairn-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd' boot "$1" >"$1.boot" 2>&1 &
    machine_outside=$!
    disown # its end is no news
    echo $machine_outside >"$1.machine" # for who ends the test when this process has not
    local until=$((SECONDS + 60))
    while [ $SECONDS -lt $until ]; do
        machine=$(pgrep -P $machine_outside)
        case $(inside systemctl is-system-running 2>/dev/null) in running | degraded) return 0 ;; esac
        kill -0 $machine_outside 2>/dev/null || break
        sleep 0.1
    done
    echo "FAIL: systemd did not start: $(tail -n 3 "$1.boot")" >&2
    return 1
}
inside() {
    nsenter -t "$machine" -m -p -u -i -C -r -w env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=xterm "$@"
}
halt() { [ -z "${machine_outside:-}" ] || kill -9 "$machine_outside" 2>/dev/null; }
