#!/usr/bin/env bash
# A small storm over three engines on one Postgres (engines_storm.py has the large one), and the proof that its checker sees what is planted:
# what every `make test` can afford.
cd "$(dirname "$0")/../.." || exit 1
python3 test/crash/engines_storm.py "${CAIRN:-build/cairn}" --kills 3 --stops 1 --restarts 1 --cuts 24 --withheld 4 --partitions 1 \
    --minutes 0.05 --rounds 1 --clients 3 --slack 10 --prove
