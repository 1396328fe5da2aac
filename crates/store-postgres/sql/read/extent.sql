-- Where the journal begins and ends. Of its slices only that of the newest event is looked at.
SELECT s.forgotten,
       coalesce((SELECT j.id FROM pointsman.journal j WHERE j.number >= s.journaled ORDER BY j.id DESC LIMIT 1), 0)
FROM pointsman.sequencer s
