-- Counts the waiting rows of the outbox, up to 100,001, and returns for how many seconds the first has waited.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp()) - min(o.at) / 1000000.0, 0)::float8
FROM (SELECT at FROM pointsman.outbox
      WHERE n > (SELECT CASE WHEN m.empty_up_to <= s.last_value THEN m.empty_up_to ELSE 0 END
                 FROM pointsman.outbox_progress m, pointsman.outbox_number s)
      ORDER BY n LIMIT 100001) o
