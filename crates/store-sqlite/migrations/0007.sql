-- When retention last found an object in use, as an event id (see prune_objects.rs of the common store). 0: not yet.
ALTER TABLE pointsman_object ADD COLUMN checked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX pointsman_object_checked ON pointsman_object (checked);
