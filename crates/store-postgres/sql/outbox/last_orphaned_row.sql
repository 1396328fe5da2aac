-- The last row at or below the progress: only a manual insert with an explicit number can be there.
SELECT o.n FROM pointsman.outbox o
WHERE o.n <= (SELECT CASE WHEN m.settled <= s.last_value THEN m.settled ELSE 0 END
              FROM pointsman.outbox_mark m, pointsman.outbox_n s)
ORDER BY o.n DESC LIMIT 1
