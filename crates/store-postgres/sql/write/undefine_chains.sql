-- Marks all chains as undefined, until the defined ones are written.
UPDATE pointsman.chain SET defined = false WHERE defined
