-- The first and the last id of the journal. Only the partition of the newest event is scanned.
SELECT s.forgotten,
       coalesce((SELECT j.id FROM pointsman.journal j WHERE j.number >= s.journaled ORDER BY j.id DESC LIMIT 1), 0)
FROM pointsman.sequencer s
