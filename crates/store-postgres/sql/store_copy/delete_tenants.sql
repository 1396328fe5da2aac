-- No tenant was heard of any more.
DELETE FROM pointsman.tenant
