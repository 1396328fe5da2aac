-- A chain whose orders are to be looked at again.
SELECT path, pending FROM pointsman.chain WHERE pending IS NOT NULL LIMIT 1
