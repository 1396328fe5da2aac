#!lua flags=no-writes
-- Tells why the newest of what was set aside is no event. What was left itself may be long, and stays where it is.
--
-- KEYS  1 events.set.aside
-- ARGV  1 how many are told of
-- Answers the first line of each: object, reason and time, as JSON.

local told = {}
for i, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)) do
    told[i] = string.match(entry, '^[^\n]*')
end
return told
