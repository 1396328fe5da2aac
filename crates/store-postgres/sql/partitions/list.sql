-- Partitions of the partitioned tables, with their upper bounds.
SELECT parent.relname::text, child.relname::text,
       (regexp_match(pg_get_expr(child.relpartbound, child.oid), 'TO \(''?(\d+)''?\)'))[1]::bigint
FROM pg_inherits i
JOIN pg_class parent ON parent.oid = i.inhparent
JOIN pg_class child ON child.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = parent.relnamespace
WHERE n.nspname = 'pointsman' AND parent.relname IN ('journal', 'history', 'attempt', 'log')
  AND child.relname <> parent.relname || '_retained'
ORDER BY 3
