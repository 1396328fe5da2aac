#!lua flags=no-writes
-- An object's last events, each found by the one after it, in one way there and back.
--
-- KEYS  1 pointsman:journal
-- ARGV  1 the id of the last one
--       2 nothing at or below this id
--       3 how many are wanted at most
--       4 beyond so many bytes nothing comes
-- Answers the events as they lie in the journal, the newest first. Each begins with the id of the one before it (8 bytes, 0
-- if there is none).

local id = tonumber(ARGV[1])
local forgotten = tonumber(ARGV[2])
local wanted = tonumber(ARGV[3])
local room = tonumber(ARGV[4])
local answer = {}
while id > forgotten and #answer < wanted and room > 0 do
    local name = string.format('%.0f-0', id)
    local entry = redis.call('XRANGE', KEYS[1], name, name)[1]
    if not entry then
        break
    end
    local event = entry[2][2]
    answer[#answer + 1] = event
    room = room - #event
    id = struct.unpack('>I8', event)
end
return answer
