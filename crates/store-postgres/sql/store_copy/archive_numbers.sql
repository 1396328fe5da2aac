-- The archive numbers of these tasks.
SELECT seq, n FROM pointsman.history WHERE seq = ANY ($1)
