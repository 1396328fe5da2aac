-- Wakes a node, if none is awake.
SELECT pointsman.ring() FROM pointsman.bell WHERE last_value = 1
