-- All that stand in a lane, by place.
SELECT seq, queue FROM pointsman.task WHERE lane = $1 AND place IS NOT NULL ORDER BY place
