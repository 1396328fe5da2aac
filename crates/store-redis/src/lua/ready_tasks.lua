#!lua flags=no-writes
-- The first tasks of queues, with their events, in one way there and back.
--
-- KEYS  1 pointsman:journal, 2 pointsman:tasks:  with the number of a bucket behind it
--       then for each queue its index of ready tasks
-- ARGV  1 how many tasks share a bucket
--       then for each queue how many are wanted
-- Answers a list for each queue: member of the index, task, event (or nothing) of each.
--
-- A member is a score, a rank, a number and a bucket of keys (8, 8, 8 and 2 bytes); numbers have their first bit flipped,
-- so that their order as bytes is their own. A task begins with the id of its event (8 bytes, 0 if it has none).

local size = tonumber(ARGV[1])
local answer = {}
for i = 3, #KEYS do
    local found = {}
    for _, member in ipairs(redis.call('ZRANGE', KEYS[i], 0, tonumber(ARGV[i - 1]) - 1)) do
        local flipped, low = struct.unpack('>I4I4', string.sub(member, 17, 24))
        local number = (flipped - 2147483648) * 4294967296 + low
        local bucket = math.floor(number / size)
        local field = string.format('%.0f', number - bucket * size)
        local task = redis.call('HGET', KEYS[2] .. string.format('%.0f', bucket), field)
        local event = false
        if task then
            local id = struct.unpack('>I8', task)
            if id > 0 then
                local name = string.format('%.0f-0', id)
                local entry = redis.call('XRANGE', KEYS[1], name, name)[1]
                event = entry and entry[2][2]
            end
        end
        found[#found + 1] = member
        found[#found + 1] = task
        found[#found + 1] = event
    end
    answer[#answer + 1] = found
end
return answer
