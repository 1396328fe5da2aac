#!lua flags=no-writes
-- Returns the first ready tasks of queues with their events, in one round trip.
--
-- KEYS  1 pointsman:journal, 2 pointsman:active-tasks:  prefix of the bucket keys
--       then the index of ready tasks of each queue
-- ARGV  1 tasks per bucket
--       then the maximum number of tasks of each queue
-- Returns a list for each queue: index member, task row and event row (or false) of each task.
--
-- A member is a score, a rank, a task number and a fairness bucket (8, 8, 8 and 2 bytes); the first bit of numbers is
-- flipped so that byte order is numeric order. A task row starts with the id of its event (8 bytes, 0 if it has none).

local tasks_per_bucket = tonumber(ARGV[1])
local reply = {}
for i = 3, #KEYS do
    local tasks_with_events = {}
    for _, member in ipairs(redis.call('ZRANGE', KEYS[i], 0, tonumber(ARGV[i - 1]) - 1)) do
        local number_high, number_low = struct.unpack('>I4I4', string.sub(member, 17, 24))
        local task_number = (number_high - 2147483648) * 4294967296 + number_low
        local bucket = math.floor(task_number / tasks_per_bucket)
        local field = string.format('%.0f', task_number - bucket * tasks_per_bucket)
        local task = redis.call('HGET', KEYS[2] .. string.format('%.0f', bucket), field)
        local event = false
        if task then
            local event_id = struct.unpack('>I8', task)
            if event_id > 0 then
                local entry_id = string.format('%.0f-0', event_id)
                local entry = redis.call('XRANGE', KEYS[1], entry_id, entry_id)[1]
                event = entry and entry[2][2]
            end
        end
        tasks_with_events[#tasks_with_events + 1] = member
        tasks_with_events[#tasks_with_events + 1] = task
        tasks_with_events[#tasks_with_events + 1] = event
    end
    reply[#reply + 1] = tasks_with_events
end
return reply
