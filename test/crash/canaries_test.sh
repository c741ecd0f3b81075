#!/usr/bin/env bash
# Secrets that steps print, searched for everywhere: the short form of `make canaries` (RE-5b, ES-2b).
cd "$(dirname "$0")/../.." && python3 test/crash/canaries.py "${CAIRN:-$PWD/build/cairn}" --runs 120
