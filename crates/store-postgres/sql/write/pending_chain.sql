-- A changed chain whose orders are being re-evaluated, and the number of the last order that was.
SELECT path, reconciled_up_to FROM pointsman.chain WHERE reconciled_up_to IS NOT NULL LIMIT 1
