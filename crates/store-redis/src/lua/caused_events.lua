#!lua flags=no-writes
-- Returns the events that an event caused, directly or indirectly, breadth first, in one round trip.
--
-- KEYS  1 pointsman:journal, 2 pointsman:caused-events
-- ARGV  1 the id of the event, as in a member of the index
--       2 maximum number of events
--       3 maximum number of bytes
-- Returns journal entries.
--
-- An index member is the id of the cause and the id of the caused event, 8 bytes each, with the first bit flipped so that
-- byte order is numeric order.

local max_events = tonumber(ARGV[2])
local remaining_bytes = tonumber(ARGV[3])
local highest_suffix = string.rep('\255', 8)
local causes = {ARGV[1]}
local expanded_count = 0
local entries = {}
while expanded_count < #causes and #causes <= max_events and remaining_bytes > 0 do
    expanded_count = expanded_count + 1
    local cause = causes[expanded_count]
    local remaining_events = max_events + 1 - #causes
    local members = redis.call('ZRANGE', KEYS[2], '[' .. cause, '[' .. cause .. highest_suffix, 'BYLEX', 'LIMIT', 0, remaining_events)
    for _, member in ipairs(members) do
        local id_high, id_low = struct.unpack('>I4I4', string.sub(member, 9, 16))
        local entry_id = string.format('%.0f-0', (id_high - 2147483648) * 4294967296 + id_low)
        local entry = redis.call('XRANGE', KEYS[1], entry_id, entry_id)[1]
        if entry and remaining_bytes > 0 then
            causes[#causes + 1] = string.sub(member, 9, 16)
            entries[#entries + 1] = entry
            remaining_bytes = remaining_bytes - #entry[2][2]
        end
    end
end
return entries
