-- Records that a migration was applied.
INSERT INTO pointsman.migration (version, name, checksum, at) VALUES ($1, $2, $3, now())
