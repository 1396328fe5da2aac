#!lua flags=no-writes
-- Returns the first non-empty lanes of an object in one round trip. Each lookup skips all members of the previous lane.
--
-- KEYS  1 pointsman:lane-positions
-- ARGV  1 first possible lane of the object, as a member prefix
--       2 last possible lane, as a member prefix
--       3 maximum number of lanes
-- Returns for each lane its first member and its number of members.
--
-- A member is a lane, a position and a task number, 8 bytes each.

local highest_suffix = string.rep('\255', 16)
local upper_bound = '[' .. ARGV[2] .. highest_suffix
local lower_bound = '[' .. ARGV[1]
local lanes = {}
for _ = 1, tonumber(ARGV[3]) do
    local member = redis.call('ZRANGE', KEYS[1], lower_bound, upper_bound, 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then
        break
    end
    local lane = string.sub(member, 1, 8)
    lanes[#lanes + 1] = member
    lanes[#lanes + 1] = redis.call('ZLEXCOUNT', KEYS[1], '[' .. lane, '[' .. lane .. highest_suffix)
    lower_bound = '(' .. lane .. highest_suffix
end
return lanes
