-- When retention last found an object in use, as an event id: see the verbs' prune_objects.rs. 0: not yet.
ALTER TABLE pointsman.object ADD COLUMN checked bigint NOT NULL DEFAULT 0;
CREATE INDEX object_checked ON pointsman.object (checked);
