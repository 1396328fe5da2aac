-- Records that the outbox is and stays empty up to $1.
UPDATE pointsman.outbox_mark SET settled = $1
