-- Sets when retention checked the objects of events, except objects that were checked after $2. Each object is looked
-- up by its key, because a join may scan all objects.
INSERT INTO pointsman.object (tenant, key, number, last_event, last_sent, checked)
SELECT o.tenant, o.key, o.number, o.last_event, o.last_sent, $3
FROM (SELECT DISTINCT tenant, key FROM pointsman.journal WHERE id = ANY ($1) AND key IS NOT NULL) AS used
CROSS JOIN LATERAL (SELECT * FROM pointsman.object WHERE tenant = used.tenant AND key = used.key LIMIT 1) o
WHERE o.checked <= $2
ON CONFLICT (tenant, key) DO UPDATE SET checked = excluded.checked
