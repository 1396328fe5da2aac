-- The last row at or below the progress: only a manual insert with an explicit number can be there.
SELECT o.n FROM pointsman.outbox o
WHERE o.n <= (SELECT CASE WHEN m.empty_up_to <= s.last_value THEN m.empty_up_to ELSE 0 END
              FROM pointsman.outbox_progress m, pointsman.outbox_number s)
ORDER BY o.n DESC LIMIT 1
