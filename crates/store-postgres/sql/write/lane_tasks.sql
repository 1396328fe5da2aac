-- All tasks of a lane, by position.
SELECT seq, queue FROM pointsman.task WHERE lane = $1 AND place IS NOT NULL ORDER BY place
