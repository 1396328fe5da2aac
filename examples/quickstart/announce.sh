#!/bin/sh
# Announces a published record: a JSON line in the effects file emits an event if this script succeeds.
# The record's key is untrusted input and is not inserted into the JSON; the value of the new event has only the id.
set -eu
echo "announcing ${POINTSMAN_KEY:-a record}, attempt $POINTSMAN_ATTEMPT"
printf '{"emit": [{"type": "record.announced", "value": {"about": %s}}]}\n' "$POINTSMAN_EVENT_ID" >> "$POINTSMAN_EFFECTS"
