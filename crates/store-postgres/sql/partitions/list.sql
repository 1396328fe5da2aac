-- The slices of the tables that are cut into slices, and where each ends.
SELECT parent.relname::text, slice.relname::text,
       (regexp_match(pg_get_expr(slice.relpartbound, slice.oid), 'TO \(''?(\d+)''?\)'))[1]::bigint
FROM pg_inherits i
JOIN pg_class parent ON parent.oid = i.inhparent
JOIN pg_class slice ON slice.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = parent.relnamespace
WHERE n.nspname = 'pointsman' AND parent.relname IN ('journal', 'history', 'attempt', 'log')
  AND slice.relname <> parent.relname || '_kept'
ORDER BY 3
