-- At most $1 waiting rows of the outbox, with the columns that determine their read set, and the state of the drainer
-- and of the progress in each row. If nothing waits, one row with the latter. Texts that
-- are too long for an event, which only a manual insert can write, are shortened, but remain too long.
SELECT w.asleep, w.empty_up_to, w.candidate, w.candidate_xact, w.oldest, w.newest, w.last,
       o.n, left(o.type, 256), left(o.tenant, 129), left(o.key, 513), left(o.idempotency_key, 256)
FROM (SELECT (SELECT last_value FROM pointsman.drainer_state) = 1 AS asleep,
             m.empty_up_to, m.candidate, m.candidate_xact::text::bigint AS candidate_xact,
             pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest,
             pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS newest,
             s.last_value AS last
      FROM pointsman.outbox_progress m CROSS JOIN pointsman.outbox_number s) w
LEFT JOIN LATERAL (
    SELECT * FROM pointsman.outbox
    WHERE n > CASE WHEN w.empty_up_to <= w.last THEN w.empty_up_to ELSE 0 END
    ORDER BY n LIMIT $1) o ON true
ORDER BY o.n
