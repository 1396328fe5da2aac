-- All chains that were ever defined.
SELECT def, defined, state FROM pointsman.chain ORDER BY path COLLATE "C"
