-- Nothing will stand at or below $1 any more.
UPDATE pointsman.outbox_mark SET settled = $1
