-- How far the numbers have come. Whoever remembers anything of the tables reads it again.
UPDATE pointsman.sequencer
SET journaled = $1, archived = $2, journal_to = $3, history_to = $4,
    version = version + 1, registry = registry + 1, told_from = version + 1, changes = '{}'
