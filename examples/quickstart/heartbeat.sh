#!/bin/sh
# Logs that the system is alive, once a minute.
set -eu
echo "still here at $(date -u +%H:%M:%S) UTC"
