-- All objects of the schema, by kind and name: tables, views, sequences and indexes, columns, functions, types.
SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' WHEN 'i' THEN 'index ' WHEN 'I' THEN 'index '
                      ELSE 'table ' END || c.relname
FROM pg_class c WHERE c.relnamespace = 'pointsman'::regnamespace
UNION ALL
SELECT 'column ' || c.relname || '.' || a.attname
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'pointsman'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT 'function ' || p.proname FROM pg_proc p WHERE p.pronamespace = 'pointsman'::regnamespace
UNION ALL
SELECT 'type ' || t.typname FROM pg_type t WHERE t.typnamespace = 'pointsman'::regnamespace AND t.typtype = 'e'
