-- All tasks of a lane, by position.
SELECT seq, queue FROM pointsman.task WHERE lane = $1 AND lane_position IS NOT NULL ORDER BY lane_position
