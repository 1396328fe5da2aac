-- The fences of the attempts (tasks $1, fences $2) that no longer lease their task.
SELECT leased.fence
FROM unnest($1::bigint[], $2::bigint[]) AS leased (task, fence)
WHERE NOT EXISTS (SELECT FROM pointsman.task t WHERE t.seq = leased.task AND t.fence = leased.fence AND t.phase = 5)
