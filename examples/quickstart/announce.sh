#!/bin/sh
# Announces a published record: one JSON line in the effects file emits an event when this script ends well.
# The record's key comes from outside, so it is not pasted into JSON here; the new event's value has only the id.
set -eu
echo "announcing ${POINTSMAN_KEY:-a record}, attempt $POINTSMAN_ATTEMPT"
printf '{"emit": [{"type": "record.announced", "value": {"about": %s}}]}\n' "$POINTSMAN_EVENT_ID" >> "$POINTSMAN_EFFECTS"
