-- Counts orders by state: with keys from $1 on and before $2, of a tenant ($3) or all, at the time $4. $5 selects
-- among these keys: `all`, the `children` of the folder $1, or `exactly` $1 and, if that is a chain, its orders.
SELECT count(*),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned IS NULL),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned > $4),
       count(*) FILTER (WHERE o.started IS NULL AND o.planned <= $4),
       count(o.started),
       count(o.task),
       count(*) FILTER (WHERE t.phase = 5),
       count(*) FILTER (WHERE t.retries > 0 AND t.phase <= 3),
       count(*) FILTER (WHERE o.suspended)
FROM pointsman.orders o
LEFT JOIN pointsman.task t ON t.seq = o.task
WHERE o.key >= $1 AND o.key < $2
  AND ($3 IS NULL OR o.tenant = $3)
  AND CASE $5
        WHEN 'children' THEN o.key <> $1 AND strpos(substr(o.key, length($1) + 1), '/') = 0
        WHEN 'exactly' THEN o.key = $1 OR (strpos($1, ',') = 0 AND starts_with(o.key, $1 || ','))
        ELSE true
      END
