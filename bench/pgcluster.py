"""A Postgres of a bench's own, as Debian ships it (fsync, synchronous_commit and full_page_writes are on), in a directory that is
removed with it. It is reached through a Unix socket and, for clients that want one, a port of 127.0.0.1. It does not run as root.
"""
import glob, os, pwd, shutil, signal, socket, subprocess, tempfile, time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    def __init__(self, base="/var/tmp", settings=()):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: int(p.split("/")[4]))
        if not found:
            raise SystemExit("Postgres is not installed (package postgresql)")
        self.bin = os.path.dirname(found[-1])
        self.dir = tempfile.mkdtemp(prefix="cairn-bench-pg-", dir=base)
        os.chmod(self.dir, 0o755)
        self.user = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            self.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        subprocess.run([self.bin + "/initdb", "-D", self.dir + "/data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
        self.settings = ["max_connections=200", *settings]
        self.port = free_port()
        self.start()

    def start(self):
        words = [w for s in self.settings for w in ("-c", s)]
        self.log = open(self.dir + "/log", "a")
        self.process = subprocess.Popen([self.bin + "/postgres", "-D", self.dir + "/data", "-k", self.dir, "-p", str(self.port),
                                         "-c", "listen_addresses=127.0.0.1", *words], stdout=self.log, stderr=self.log, cwd="/", **self.user)
        until = time.monotonic() + 60
        while subprocess.run([self.bin + "/pg_isready", "-q", "-h", self.dir, "-p", str(self.port)], cwd="/").returncode:
            if time.monotonic() > until:
                raise SystemExit("Postgres does not start: " + open(self.dir + "/log").read()[-2000:])
            time.sleep(0.05)

    def end(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(60)
        shutil.rmtree(self.dir, ignore_errors=True)

    def url(self, more="", tcp=False, database="postgres"):
        """Of a Cairn store: files of runs are kept beside the cluster."""
        host = f"127.0.0.1:{self.port}" if tcp else ""
        where = "" if tcp else f"host={self.dir}&port={self.port}&"
        return f"postgres://postgres@{host}/{database}?{where}files={self.dir}/files{more}"

    def psql(self, *statements, database="postgres"):
        words = [w for s in statements for w in ("-c", s)]
        return subprocess.run([self.bin + "/psql", "-h", self.dir, "-p", str(self.port), "-U", "postgres", "-AtXq", "-v", "ON_ERROR_STOP=1",
                               "-d", database, *words], check=True, capture_output=True, text=True, cwd="/").stdout.strip()

    def pgbench(self, script, clients, seconds, database="postgres"):
        """Transactions per second of `script`, each on its own."""
        path = os.path.join(self.dir, "script.sql")
        with open(path, "w") as out:
            out.write(script)
        text = subprocess.run([self.bin + "/pgbench", "-h", self.dir, "-p", str(self.port), "-U", "postgres", "-n", "-M", "prepared", "-f", path,
                               "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(seconds), database],
                              check=True, capture_output=True, text=True, cwd="/").stdout
        return float(next(line for line in text.splitlines() if line.startswith("tps")).split()[2])

    def cpu(self):
        """Seconds that all its processes have used, those that ended included."""
        tick, total = os.sysconf("SC_CLK_TCK"), 0
        for pid in [str(self.process.pid), *open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()]:
            try:
                fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            total += int(fields[11]) + int(fields[12])
            total += int(fields[13]) + int(fields[14]) if pid == str(self.process.pid) else 0
        return total / tick
