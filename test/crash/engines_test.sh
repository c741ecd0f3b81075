#!/usr/bin/env bash
# A small storm over three engines on one Postgres (engines_storm.py has the large one): what every `make test` can afford.
cd "$(dirname "$0")/../.." || exit 1
python3 test/crash/engines_storm.py "${CAIRN:-build/cairn}" --kills 2 --stops 1 --restarts 1 --clients 2 --slack 10
