#!lua flags=no-writes
-- Returns the last events of an object, following `prev` from the newest, in one round trip.
--
-- KEYS  1 pointsman:journal
-- ARGV  1 id of the newest event
--       2 events up to this id have expired
--       3 maximum number of events
--       4 maximum number of bytes
-- Returns the event rows of the journal, newest first. Each starts with the id of the preceding event (8 bytes, 0 if there
-- is none).

local id = tonumber(ARGV[1])
local expired_up_to = tonumber(ARGV[2])
local max_events = tonumber(ARGV[3])
local remaining_bytes = tonumber(ARGV[4])
local events = {}
while id > expired_up_to and #events < max_events and remaining_bytes > 0 do
    local entry_id = string.format('%.0f-0', id)
    local entry = redis.call('XRANGE', KEYS[1], entry_id, entry_id)[1]
    if not entry then
        break
    end
    local event = entry[2][2]
    events[#events + 1] = event
    remaining_bytes = remaining_bytes - #event
    id = struct.unpack('>I8', event)
end
return events
