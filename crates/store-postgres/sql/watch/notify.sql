-- Wakes the other nodes. Sent beside the commits and not in them, because a NOTIFY in a commit lets no other commit
-- go on at the same time.
SELECT pg_notify('pointsman', $1)
