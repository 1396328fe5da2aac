-- All rows are there: what hangs on all of them.
UPDATE pointsman.sequencer
SET orders = (SELECT coalesce(max(n), 0) FROM pointsman.orders),
    next_due = (SELECT min(due) FROM pointsman.task WHERE phase = 2),
    version = version + 1, registry = registry + 1, told_from = version + 1, changes = '{}'
