-- Records that the outbox is and stays empty up to $1.
UPDATE pointsman.outbox_progress SET empty_up_to = $1
