-- The time when a node last registered a schedule. A schedule that no node registers any more is deleted after a while.
ALTER TABLE pointsman_schedule ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
