-- No handler is defined, until those that are have been written.
UPDATE pointsman.handler SET defined = false WHERE defined
