-- Roles, or all roles in this database, whose commits do not wait for the disk. They commit their own emits in SQL.
SELECT coalesce(r.rolname, '')::text, s.setdatabase <> 0, setting
FROM pg_db_role_setting s
CROSS JOIN unnest(s.setconfig) AS settings (setting)
LEFT JOIN pg_roles r ON r.oid = s.setrole
WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
  AND setting IN ('synchronous_commit=off', 'synchronous_commit=local')
ORDER BY 1, 2
