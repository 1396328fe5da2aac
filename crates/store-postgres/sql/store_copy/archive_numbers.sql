-- How many tasks had ended when these did.
SELECT seq, n FROM pointsman.history WHERE seq = ANY ($1)
