-- A chain whose orders must be reconciled.
SELECT path, pending FROM pointsman.chain WHERE pending IS NOT NULL LIMIT 1
