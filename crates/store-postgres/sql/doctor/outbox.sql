-- Counts the waiting rows of the outbox, up to 100,001, and returns for how many seconds the first has waited.
SELECT count(*), coalesce(extract(epoch FROM clock_timestamp()) - min(o.at) / 1000000.0, 0)::float8
FROM (SELECT at FROM pointsman.outbox
      WHERE n > (SELECT CASE WHEN m.settled <= s.last_value THEN m.settled ELSE 0 END
                 FROM pointsman.outbox_mark m, pointsman.outbox_n s)
      ORDER BY n LIMIT 100001) o
