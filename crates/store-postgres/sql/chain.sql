-- Chains and their state.

-- name: list_chains
-- All chains that were ever defined.
SELECT :chain_columns FROM pointsman.chain ORDER BY path COLLATE "C"

-- name: find_reevaluation_cursor
-- A changed chain whose orders are being re-evaluated, and the number of the last order that was.
SELECT path, reconciled_up_to FROM pointsman.chain WHERE reconciled_up_to IS NOT NULL LIMIT 1

-- name: mark_chains_undefined
-- Marks all chains as undefined, until the defined ones are written.
UPDATE pointsman.chain SET defined = false WHERE defined

-- name: upsert_chain
-- Defines a chain. An existing one keeps its state.
INSERT INTO pointsman.chain (path, def, defined, state) VALUES ($1, $2, true, $3)
ON CONFLICT (path) DO UPDATE SET def = excluded.def, defined = true

-- name: write_chain_state
-- Sets the state of a chain.
UPDATE pointsman.chain SET state = $2 WHERE path = $1

-- name: write_reevaluation_cursor
-- Sets the last order of a changed chain that was re-evaluated; NULL if all were.
UPDATE pointsman.chain SET reconciled_up_to = $2 WHERE path = $1
