-- The commit version, and whether the outbox is empty.
SELECT version, NOT EXISTS (SELECT FROM pointsman.outbox) FROM pointsman.last_commit
