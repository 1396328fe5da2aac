-- The last row at or below what is settled: only who chooses a number himself can have put one there.
SELECT o.n FROM pointsman.outbox o
WHERE o.n <= (SELECT CASE WHEN m.settled <= s.last_value THEN m.settled ELSE 0 END
              FROM pointsman.outbox_mark m, pointsman.outbox_n s)
ORDER BY o.n DESC LIMIT 1
