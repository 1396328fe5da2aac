-- A chain whose orders must be reconciled.
SELECT path, reconciled_up_to FROM pointsman.chain WHERE reconciled_up_to IS NOT NULL LIMIT 1
