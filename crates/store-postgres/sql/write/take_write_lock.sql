-- Takes the right to write.
SELECT FROM pointsman.turn FOR UPDATE
