#!lua flags=no-writes
-- The first lanes of an object in which somebody stands, in one way there and back. Each is found behind the one before
-- it, however many stand there.
--
-- KEYS  1 pointsman:lanes
-- ARGV  1 the first lane that the object can have, as members of the index begin
--       2 the last one
--       3 how many are wanted at most
-- Answers for each lane the member that stands first, and how many stand there.
--
-- A member is a lane, a place and a number, 8 bytes each.

local behind = string.rep('\255', 16)
local last = '[' .. ARGV[2] .. behind
local from = '[' .. ARGV[1]
local answer = {}
for _ = 1, tonumber(ARGV[3]) do
    local member = redis.call('ZRANGE', KEYS[1], from, last, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then
        break
    end
    local lane = string.sub(member, 1, 8)
    answer[#answer + 1] = member
    answer[#answer + 1] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. lane, '[' .. lane .. behind)
    from = '(' .. lane .. behind
end
return answer
