#!/bin/sh
# Logs what happened to a record. Needs nothing but a shell.
set -eu
echo "$POINTSMAN_TYPE of ${POINTSMAN_KEY:-no object} (event $POINTSMAN_EVENT_ID)"
echo "the event as it came: $(cat)"
