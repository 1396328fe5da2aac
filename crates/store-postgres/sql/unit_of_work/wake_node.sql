-- Notifies the nodes if their drainers sleep.
SELECT pointsman.notify_drainers() FROM pointsman.drainer_state WHERE last_value = 1
