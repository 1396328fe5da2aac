-- Of attempts, the tasks $1 with the fences $2, the fences of those that do not hold their task.
SELECT held.fence
FROM unnest($1::bigint[], $2::bigint[]) AS held (task, fence)
WHERE NOT EXISTS (SELECT FROM pointsman.task t WHERE t.seq = held.task AND t.fence = held.fence AND t.phase = 5)
