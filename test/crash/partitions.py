"""Engines in network namespaces of their own, each with one link to its clients and one to the database. The second one can lose what is
sent, what is answered, or both, as a switch that has gone mad would: the neighbour's address is replaced by nobody's."""
import json, os, subprocess

NOBODY = "02:00:00:00:00:01"


def ip(*words):
    said = subprocess.run(["ip", *words], capture_output=True, text=True)
    if said.returncode:
        raise OSError(f"ip {' '.join(words)}: {said.stderr.strip()}")
    return said.stdout


class Island:
    """One engine's network: 198.18.0.0/15 is set aside for such things."""

    def __init__(self, number):
        self.name = f"cairn-{os.getpid()}-{number}"
        net = (os.getpid() % 4096) * 32 + number * 8
        address = lambda last: f"198.{18 + (net >> 16)}.{net >> 8 & 255}.{(net & 255) + last}"
        self.outer, self.host = address(1), address(2)  # clients
        self.database, self.inner = address(5), address(6)
        self.links = [f"cs{os.getpid() % 1000000}{number}{end}" for end in "cd"]
        self.mac = {}

    def make(self):
        ip("netns", "add", self.name)
        ip("-n", self.name, "link", "set", "lo", "up")
        for link, inside, here, there in ((self.links[0], "clients", self.outer, self.host), (self.links[1], "database", self.database, self.inner)):
            ip("link", "add", link, "type", "veth", "peer", "name", inside, "netns", self.name)
            ip("addr", "add", here + "/30", "dev", link)
            ip("link", "set", link, "up")
            ip("-n", self.name, "addr", "add", there + "/30", "dev", inside)
            ip("-n", self.name, "link", "set", inside, "up")
        subprocess.run([*self.command(), "true"], check=True, capture_output=True)
        self.mac["answers"] = json.loads(ip("-n", self.name, "-j", "link", "show", "database"))[0]["address"]
        self.mac["requests"] = json.loads(ip("-j", "link", "show", self.links[1]))[0]["address"]

    def lose(self, what):
        """requests: nothing reaches the database; answers: nothing comes back; both."""
        if what in ("requests", "both"):
            self.neighbour("requests", NOBODY)
        if what in ("answers", "both"):
            self.neighbour("answers", NOBODY)

    def heal(self):
        for what, mac in self.mac.items():
            self.neighbour(what, mac)

    def neighbour(self, what, mac):
        if what == "requests":
            ip("-n", self.name, "neigh", "replace", self.database, "lladdr", mac, "dev", "database", "nud", "permanent")
        else:
            ip("neigh", "replace", self.inner, "lladdr", mac, "dev", self.links[1], "nud", "permanent")

    def command(self):
        return ["ip", "netns", "exec", self.name]

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)
        for link in self.links:
            subprocess.run(["ip", "link", "del", link], capture_output=True)


def make_islands(count):
    """As many as wanted, or none and why."""
    islands = [Island(i) for i in range(count)]
    try:
        for island in islands:
            island.make()
        return islands, None
    except (OSError, subprocess.CalledProcessError) as e:
        for island in islands:
            island.remove()
        return [], str(e)
