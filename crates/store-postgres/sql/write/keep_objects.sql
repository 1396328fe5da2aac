-- Sets when the objects of events were checked, as far as that was not after $2.
UPDATE pointsman.object o SET checked = $3
FROM (SELECT DISTINCT tenant, key FROM pointsman.journal WHERE id = ANY ($1) AND key IS NOT NULL) AS used
WHERE o.tenant = used.tenant AND o.key = used.key AND o.checked <= $2
