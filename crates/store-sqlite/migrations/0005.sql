-- When somebody last named a schedule. What nobody names any more is forgotten after a while.
ALTER TABLE pointsman_schedule ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
