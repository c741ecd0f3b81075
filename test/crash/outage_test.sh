#!/usr/bin/env bash
# Sinks that are away for three seconds while runs go on (ES-4c, ES-4h, ES-4i, I31, I32): the short form of what `make storm` does for a minute.
set -u
cd "$(dirname "$0")/../.."
said=$(python3 test/crash/service_storm.py "${CAIRN:-$PWD/build/cairn}" --nats-outage 3 --clients 3)
echo "$said" | sed 's/^ok sink_outage/ok sinks_that_were_away_get_every_event_once_in_order_ES_4h_ES_4i_I31_I32/; s/^not ok sink_outage/not ok sinks_that_were_away_get_every_event_once_in_order_ES_4h_ES_4i_I31_I32/'
