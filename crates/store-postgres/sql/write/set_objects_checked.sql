-- Sets when objects were checked.
UPDATE pointsman.object o SET checked = used.checked
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS used (tenant, key, checked)
WHERE o.tenant = used.tenant AND o.key = used.key
