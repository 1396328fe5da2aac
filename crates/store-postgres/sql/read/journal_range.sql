-- The id up to which events have expired, and the id of the newest event. Only the partition of the newest event is
-- scanned.
SELECT s.expired_up_to,
       coalesce((SELECT j.id FROM pointsman.journal j WHERE j.number >= s.journaled_events ORDER BY j.id DESC LIMIT 1),
                0)
FROM pointsman.last_commit s
