#!/bin/sh
# Logs an event of a record. Needs only a shell.
set -eu
echo "$POINTSMAN_TYPE of ${POINTSMAN_KEY:-no object} (event $POINTSMAN_EVENT_ID)"
echo "the event: $(cat)"
