#!/usr/bin/env python3
"""Times of schedules as another implementation has them.

usage: vectors.py ZONES OUT        write the table
       vectors.py ZONES --check IN make it again and compare

ZONES holds files of the time zone database (test/golden/zones). The times come from cronsim (PyPI) and from zoneinfo; nothing of
Cairn is asked. A line of the table: zone|expression|gap|fold|from|until|limit|count|the first 16 digits of
the SHA-256 of the times, one a line, in seconds.
test/unit/schedule_years.c holds this program's answers against src/schedule.

What cronsim does not know:
  - policies other than (run, once) for fixed times: its times without a zone are mapped to UTC here, with zoneinfo.
  - W and L-n: the dates are made here, day by day.
  - clocks that are set by half an hour (Lord Howe): it looks for the next hour in steps of an hour and passes over "7 */3 * * *" at 03:07
    after 02:00 became 02:30. There its times without a zone are mapped here, too.
  - 9-9/1, which it takes for 9/1: from 9 on. To Cairn that is a range of one value. It is not asked for.
  - expressions of six fields: cronsim treats them all as if they ran by the clock, which is (skip, twice) of Cairn; so that is asked.
"""
import calendar
import hashlib
import random
import re
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

from cronsim import CronSim

UTC = timezone.utc
NAMES = ["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca"]
BEGIN, END = datetime(2015, 1, 1, tzinfo=UTC), datetime(2035, 1, 1, tzinfo=UTC)
FIXED = ["30 2 * * *", "0 3 * * *", "15,45 1-3 * * *", "59 23 * * *", "0 0 1 * *", "30 2 * * SUN", "0 2 29 2 *",
         "0 2 L * *", "30 2 * * SUN#1", "30 2 * * 0L", "0 0 13 * FRI", "10 0-23/2 * * *"]
BY_CLOCK = ["0 * * * *", "*/30 * * * *", "*/20 1,2 * * *", "7 */3 * * *", "* 2 1 * *"]
POLICIES = [("skip", "once"), ("skip", "skip"), ("run", "twice"), ("run", "skip"), ("skip", "twice")]


def seconds(dt):
    return int(dt.astimezone(UTC).timestamp())


def runs_by_clock(expression):
    fields = expression.split()[-5:]
    return fields[0].startswith("*") or fields[1].startswith("*") or len(expression.split()) == 6


def by_cronsim(expression, zone, begin, end, limit):
    """Its own treatment of the zone."""
    if zone.key == "Australia/Lord_Howe" and runs_by_clock(expression):
        naive = naive_times(expression, begin, end, limit + (400000 if len(expression.split()) == 6 else 5000))
        return mapped(naive, zone, "skip", "twice", begin, end, limit)
    out, last = [], None
    for dt in CronSim(expression, begin.astimezone(zone)):
        at = seconds(dt)
        if at > seconds(end) or len(out) == limit:
            break
        if last is None or at > last:
            out.append(at)
        last = at
    return out


def transitions(zone, begin, end):
    """Instants at which the offset changes, found by halving."""
    out, at = [], seconds(begin) - 3 * 86400
    offset = lambda s: datetime.fromtimestamp(s, UTC).astimezone(zone).utcoffset()
    while at < seconds(end) + 3 * 86400:
        step = 86400
        if offset(at) != offset(at + step):
            low, high = at, at + step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            out.append((high, int(offset(low).total_seconds()), int(offset(high).total_seconds())))
        at += step
    return out


def mapped(naive, zone, gap, fold, begin, end, limit):
    """Local times without a zone, as instants: every policy, by what zoneinfo says of each."""
    out = set()
    changes = transitions(zone, begin, end)
    for dt in naive:
        local = calendar.timegm(dt.timetuple())
        hits = sorted({int(dt.replace(tzinfo=zone, fold=f).astimezone(UTC).timestamp()) for f in (0, 1)})
        hits = [h for h in hits if calendar.timegm(datetime.fromtimestamp(h, UTC).astimezone(zone).timetuple()) == local]
        if not hits:
            if gap == "run":
                out.update(at for at, a, b in changes if b > a and at + a <= local < at + b)
        elif len(hits) == 1:
            out.add(hits[0])
        elif fold == "once":
            out.add(hits[0])
        elif fold == "twice":
            out.update(hits)
    return [s for s in sorted(out) if seconds(begin) < s <= seconds(end)][:limit]


def naive_times(expression, begin, end, limit=10 ** 9):
    out = []
    for dt in CronSim(expression, (begin - timedelta(days=2)).replace(tzinfo=None)):
        if dt > (end + timedelta(days=2)).replace(tzinfo=None):
            return out
        out.append(dt)
        if len(out) == limit:
            return out
    return out


def workdays(what, hour, minute, begin, end):
    """nW, LW, L-n."""
    out, day = [], (begin - timedelta(days=2)).date()
    while day <= (end + timedelta(days=2)).date():
        length = calendar.monthrange(day.year, day.month)[1]
        if what.startswith("L-"):
            wanted = length - int(what[2:])
        else:
            wanted = length if what == "LW" else int(what[:-1])
            if wanted <= length:
                weekday = date(day.year, day.month, wanted).weekday()
                if weekday == 5:
                    wanted += -1 if wanted > 1 else 2
                elif weekday == 6:
                    wanted += 1 if wanted < length else -2
        if day.day == wanted:
            out.append(datetime(day.year, day.month, day.day, hour, minute))
        day += timedelta(days=1)
    return out


def part(random, low, high, names=None):
    kind = random.randrange(6)
    a, b = sorted((random.randint(low, high), random.randint(low, high)))
    if kind == 0:
        return "*"
    if kind == 1:
        return "*/%d" % random.randint(1, max(2, (high - low) // 2))
    if kind == 2:
        return "%d-%d" % (a, b)
    if kind == 3:
        return "%d-%d/%d" % (a, b, random.randint(1, 5))
    if kind == 4:
        return ",".join(str(n) for n in sorted({random.randint(low, high) for _ in range(3)}))
    return names[a - low] if names and a - low < len(names) else str(a)


MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()


def any_expression(random):
    day = random.choice(["*", "*", part(random, 1, 31), "L", "LW"])
    weekday = random.choice(["*", "*", part(random, 0, 7, DAYS), "%d#%d" % (random.randint(0, 6), random.randint(1, 5)),
                             "%dL" % random.randint(0, 6)])
    fields = [part(random, 0, 59), part(random, 0, 23), day, random.choice(["*", part(random, 1, 12, MONTHS)]), weekday]
    if random.randrange(5) == 0:
        fields.insert(0, part(random, 0, 59))
    return " ".join(fields)


def rows(zones):
    changes = {name: transitions(zones[name], BEGIN, END) for name in NAMES}
    for name in NAMES:
        zone = zones[name]
        for expression in FIXED + BY_CLOCK:
            limit = 200000 if expression in FIXED else 40000
            yield name, expression, "run", "once", BEGIN, END, limit, by_cronsim(expression, zone, BEGIN, END, limit)
        for expression in FIXED[:6]:
            naive = naive_times(expression, BEGIN, END)
            for gap, fold in POLICIES:
                yield name, expression, gap, fold, BEGIN, END, 200000, mapped(naive, zone, gap, fold, BEGIN, END, 200000)
        for what in ("1W", "15W", "31W", "LW", "L-1", "L-7"):
            times = mapped(workdays(what, 2, 30, BEGIN, END), zone, "run", "once", BEGIN, END, 200000)
            yield name, "30 2 %s * *" % what, "run", "once", BEGIN, END, 200000, times
    source = random.Random(20260211)
    made = 0
    while made < 500:
        expression = any_expression(source)
        if re.search(r"\b(\d+)-\1/", expression):  # see above
            continue
        try:
            next(CronSim(expression, BEGIN))
        except Exception:  # it has none, and Cairn refuses it
            continue
        made += 1
        six = len(expression.split()) == 6
        for name in NAMES:
            set_at = [at for at, _, _ in changes[name]] or [seconds(BEGIN)]
            begin = datetime.fromtimestamp(source.choice(set_at) - source.randrange(86400), UTC)
            times = by_cronsim(expression, zones[name], begin, END, 300)
            yield name, expression, "skip" if six else "run", "twice" if six else "once", begin, END, 300, times


def table(directory):
    zones = {}
    for name in NAMES:
        with open(Path(directory) / name.replace("/", "-"), "rb") as file:
            zones[name] = ZoneInfo.from_file(file, key=name)
    for name, expression, gap, fold, begin, end, limit, times in rows(zones):
        digest = hashlib.sha256("".join("%d\n" % t for t in times).encode()).hexdigest()[:16]
        yield "%s|%s|%s|%s|%d|%d|%d|%d|%s\n" % (name, expression, gap, fold, seconds(begin), seconds(end), limit,
                                                len(times), digest)


def main():
    if len(sys.argv) == 4 and sys.argv[2] == "--check":
        kept = Path(sys.argv[3]).read_text()
        if "".join(table(sys.argv[1])) != kept:
            sys.exit("vectors: %s is not what cronsim says" % sys.argv[3])
        print("vectors: %d rows are as cronsim has them" % kept.count("\n"))
    elif len(sys.argv) == 3:
        Path(sys.argv[2]).write_text("".join(table(sys.argv[1])))
    else:
        sys.exit(__doc__)


main()
