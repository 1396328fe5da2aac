-- No chain is defined, until those that are have been written.
UPDATE pointsman.chain SET defined = false WHERE defined
