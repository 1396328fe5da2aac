-- What our role may do: make the schema; and, if that is there, whose it is, whether we may use it and make tables in
-- it, and of how many of its tables and functions we are no owner.
SELECT current_user::text,
       has_database_privilege(current_database(), 'CREATE'),
       pg_get_userbyid(s.nspowner)::text,
       coalesce(has_schema_privilege(s.oid, 'USAGE') AND has_schema_privilege(s.oid, 'CREATE'), false),
       (SELECT count(*) FROM pg_class c
        WHERE c.relnamespace = s.oid AND c.relkind IN ('r', 'p', 'v', 'S') AND NOT pg_has_role(c.relowner, 'USAGE'))
       + (SELECT count(*) FROM pg_proc p WHERE p.pronamespace = s.oid AND NOT pg_has_role(p.proowner, 'USAGE'))
FROM (SELECT) me
LEFT JOIN pg_namespace s ON s.nspname = 'pointsman'
