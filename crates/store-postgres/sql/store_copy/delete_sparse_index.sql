-- Deletes the sparse index of the journal.
DELETE FROM pointsman.mark
