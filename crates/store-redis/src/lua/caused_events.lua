#!lua flags=no-writes
-- What an event caused, and what that caused: the nearer first, in one way there and back.
--
-- KEYS  1 pointsman:journal, 2 pointsman:caused
-- ARGV  1 the id of the event, as in a member of the index
--       2 how many are wanted at most
--       3 beyond so many bytes nothing comes
-- Answers entries of the journal.
--
-- A member of the index is the id of the cause and the id of what it caused, 8 bytes each; they have their first bit
-- flipped, so that their order as bytes is their own.

local wanted = tonumber(ARGV[2])
local room = tonumber(ARGV[3])
local last = string.rep('\255', 8)
local causes = {ARGV[1]}
local followed = 0
local answer = {}
while followed < #causes and #causes <= wanted and room > 0 do
    followed = followed + 1
    local cause = causes[followed]
    local left = wanted + 1 - #causes
    local members = redis.call('ZRANGE', KEYS[2], '[' .. cause, '[' .. cause .. last, 'BYLEX', 'LIMIT', 0, left)
    for _, member in ipairs(members) do
        local flipped, low = struct.unpack('>I4I4', string.sub(member, 9, 16))
        local name = string.format('%.0f-0', (flipped - 2147483648) * 4294967296 + low)
        local entry = redis.call('XRANGE', KEYS[1], name, name)[1]
        if entry and room > 0 then
            causes[#causes + 1] = string.sub(member, 9, 16)
            answer[#answer + 1] = entry
            room = room - #entry[2][2]
        end
    end
end
return answer
