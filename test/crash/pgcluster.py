"""A Postgres of our own for a storm, reached through a Unix socket, and the witness that is put into it: triggers of the storm's, which keep
who wrote what, inside the transaction that wrote it."""
import glob, os, pwd, subprocess, time

# append() first moves the row of its engine: that is how a trigger knows who writes. Numbers of the witness are taken under the lock
# of the row that moved, so those of one row are in the order of its commits.
WITNESS = """
CREATE SCHEMA witness;
CREATE TABLE witness.shard_moves(id bigserial, shard int, epoch bigint, owner bigint);
CREATE TABLE witness.head_moves(id bigserial, run_no bigint, epoch bigint, owner bigint, last_seq bigint, terminal boolean);
CREATE TABLE witness.writes(id bigserial, run_no bigint, sequence bigint, writer bigint, owner bigint, epoch bigint, holder bigint);
CREATE FUNCTION witness.see_engine() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 PERFORM set_config('witness.engine',NEW.engine_no::text,true); RETURN NULL; END $$;
CREATE FUNCTION witness.see_shard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO witness.shard_moves(shard,epoch,owner) VALUES(NEW.shard_no,NEW.epoch,NEW.owner); RETURN NULL; END $$;
CREATE FUNCTION witness.see_head() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO witness.head_moves(run_no,epoch,owner,last_seq,terminal) VALUES(NEW.run_no,NEW.epoch,NEW.owner,NEW.last_seq,NEW.terminal);
 RETURN NULL; END $$;
CREATE FUNCTION witness.see_event() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 INSERT INTO witness.writes(run_no,sequence,writer,owner,epoch,holder)
  SELECT NEW.run_no,NEW.sequence,coalesce(nullif(current_setting('witness.engine',true),''),'0')::bigint,h.owner,h.epoch,
   coalesce((SELECT s.owner FROM cairn.shards s WHERE s.shard_no=h.shard),0)
  FROM cairn.run_heads h WHERE h.run_no=NEW.run_no; RETURN NULL; END $$;
CREATE TRIGGER witness AFTER UPDATE ON cairn.engines FOR EACH ROW EXECUTE FUNCTION witness.see_engine();
CREATE TRIGGER witness AFTER UPDATE ON cairn.shards FOR EACH ROW EXECUTE FUNCTION witness.see_shard();
CREATE TRIGGER witness AFTER INSERT OR UPDATE ON cairn.run_heads FOR EACH ROW EXECUTE FUNCTION witness.see_head();
CREATE TRIGGER witness AFTER INSERT ON cairn.workflow_events FOR EACH ROW EXECUTE FUNCTION witness.see_event();
"""


class Cluster:
    """It does not run as root."""

    def __init__(self, directory):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: int(p.split("/")[4]))
        self.bin = os.path.dirname(found[-1]) if found else None
        self.dir = os.path.join(directory, "pg")
        self.socket = self.dir + "/.s.PGSQL.5432"
        self.process = None

    def as_user(self):
        if os.geteuid() != 0:
            return {}
        user = pwd.getpwnam("postgres")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def make(self):
        os.mkdir(self.dir)
        os.chmod(os.path.dirname(self.dir), 0o755)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        subprocess.run([self.bin + "/initdb", "-D", self.dir + "/data", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.as_user())
        self.start()

    def start(self):
        with open(self.dir + "/../postgres.log", "a") as log:
            self.process = subprocess.Popen([self.bin + "/postgres", "-D", self.dir + "/data", "-k", self.dir, "-c", "port=5432", "-c", "listen_addresses=", "-c", "max_connections=200"], stdout=log, stderr=log, cwd="/", **self.as_user())
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if subprocess.run([self.bin + "/pg_isready", "-q", "-h", self.dir], cwd="/").returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit("not ok engines_storm: Postgres does not start")

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(60)

    def url(self):
        return f"postgres://postgres@/postgres?host={self.dir}"

    def ask(self, *statements):
        """Rows of the last one, as text."""
        commands = [part for sql in ("SET search_path=cairn", *statements) for part in ("-c", sql)]
        said = subprocess.run([self.bin + "/psql", "-h", self.dir, "-U", "postgres", "-AtXq", *commands], capture_output=True, text=True, cwd="/")
        if said.returncode:
            raise OSError(said.stderr.strip())
        return said.stdout.splitlines()

    def ask_while_shot(self, sql, seconds=60):
        """The same, from a server that may be on its way down or up."""
        until = time.monotonic() + seconds
        while True:
            try:
                return self.ask(sql)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
