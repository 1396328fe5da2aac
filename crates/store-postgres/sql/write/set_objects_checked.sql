-- Sets when retention checked objects. Each object is looked up by its key, because a join may scan all objects.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT o.tenant, o.key, o.number, o.last_event, o.last_sent, used.checked
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS used (tenant, key, checked)
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = used.tenant AND key = used.key LIMIT 1) o
ON CONFLICT (tenant, key) DO UPDATE SET checked = excluded.checked
