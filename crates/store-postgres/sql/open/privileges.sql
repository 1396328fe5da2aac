-- What our role may do: make the schema; and, if that is there, whose it is, whether we may use it and make tables in
-- it, how many of its tables and functions we do not own, and whether it would do to act in the name of its owner: that
-- one is no superuser, and owns all the rest. Ours are those with the names $1, and the slices of these.
WITH schema AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = 'pointsman'),
     foreigners AS (
         SELECT owner FROM (
             SELECT relowner FROM pg_class
             WHERE relnamespace = (SELECT oid FROM schema) AND relkind IN ('r', 'p', 'v', 'S')
               AND (relispartition OR relname = ANY ($1))
             UNION ALL
             SELECT proowner FROM pg_proc WHERE pronamespace = (SELECT oid FROM schema) AND proname = ANY ($1)
         ) things (owner)
         WHERE NOT pg_has_role(owner, 'USAGE'))
SELECT current_user::text,
       has_database_privilege(current_database(), 'CREATE'),
       pg_get_userbyid(s.nspowner)::text,
       coalesce(has_schema_privilege(s.oid, 'USAGE') AND has_schema_privilege(s.oid, 'CREATE'), false),
       (SELECT count(*) FROM foreigners),
       NOT coalesce((SELECT rolsuper FROM pg_roles WHERE oid = s.nspowner), true)
           AND NOT EXISTS (SELECT FROM foreigners WHERE owner <> s.nspowner)
FROM (SELECT) me
LEFT JOIN schema s ON true
