#!lua
-- Runs a unit of work: the commands of an application, then its events are pushed to the outboxes of their objects. A
-- resent unit (its reply was lost) changes nothing.
--
-- KEYS  1 pointsman:unit-of-work:ID  set once the unit has run
--       2 objects.with.events
-- ARGV  1 key prefix
--       2 time to live of key 1, in milliseconds
--       3 number of commands
--       then for each command its number of arguments and its arguments
--       then for each event its object and the event
-- Returns {0}, or the number of the command that Redis refused and the error. Commands before it have run; those after it
-- have not, and no event was pushed.

if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0}
end
local function is_list_or_missing(key)
    local kind = redis.call('TYPE', key).ok
    return kind == 'list' or kind == 'none'
end

-- Checks that could fail after the commands run before them.
local at = 4
for _ = 1, tonumber(ARGV[3]) do
    at = at + tonumber(ARGV[at]) + 1
end
if not is_list_or_missing(KEYS[2]) then
    return redis.error_reply('WRONGTYPE ' .. KEYS[2] .. ' is not a list')
end
for i = at, #ARGV, 2 do
    local queue = ARGV[1] .. ARGV[i] .. ':events'
    if not is_list_or_missing(queue) then
        return redis.error_reply('WRONGTYPE ' .. queue .. ' is not a list')
    end
end

at = 4
for number = 1, tonumber(ARGV[3]) do
    local arg_count = tonumber(ARGV[at])
    local reply = redis.pcall(unpack(ARGV, at + 1, at + arg_count))
    if type(reply) == 'table' and reply.err then
        return {number, reply.err}
    end
    at = at + arg_count + 1
end
local queued = {}
for i = at, #ARGV, 2 do
    redis.call('LPUSH', ARGV[1] .. ARGV[i] .. ':events', ARGV[i + 1])
    if not queued[ARGV[i]] then
        queued[ARGV[i]] = true
        redis.call('LPUSH', KEYS[2], ARGV[i])
    end
end
redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
return {0}
