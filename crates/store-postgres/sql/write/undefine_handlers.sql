-- Marks all handlers as undefined, until the defined ones are written.
UPDATE pointsman.handler SET defined = false WHERE defined
