-- Whether the schema has the table of migrations, and whether it is empty. Returns no row if
-- there is no schema `pointsman`.
SELECT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = s.oid AND c.relname = 'migration'),
       NOT EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = s.oid)
           AND NOT EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = s.oid)
           AND NOT EXISTS (SELECT FROM pg_type t WHERE t.typnamespace = s.oid)
FROM pg_namespace s
WHERE s.nspname = 'pointsman'
