-- Notifies the nodes if their drainers sleep.
SELECT pointsman.ring() FROM pointsman.bell WHERE last_value = 1
