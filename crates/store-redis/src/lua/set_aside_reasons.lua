#!lua flags=no-writes
-- Returns why the newest set-aside entries are not events. The entries themselves may be large and are not returned.
--
-- KEYS  1 events.set.aside
-- ARGV  1 maximum number of entries
-- Returns the first line of each: object, reason and time, as JSON.

local headers = {}
for i, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)) do
    headers[i] = string.match(entry, '^[^\n]*')
end
return headers
