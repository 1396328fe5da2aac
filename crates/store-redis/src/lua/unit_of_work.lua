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
    local found_type = redis.call('TYPE', key).ok
    return found_type == 'list' or found_type == 'none'
end

-- Wrong key types are detected before the commands run, because scripts are not rolled back.
local arg_index = 4
for _ = 1, tonumber(ARGV[3]) do
    arg_index = arg_index + tonumber(ARGV[arg_index]) + 1
end
if not is_list_or_missing(KEYS[2]) then
    return redis.error_reply('WRONGTYPE ' .. KEYS[2] .. ' is not a list')
end
for i = arg_index, #ARGV, 2 do
    local queue_key = ARGV[1] .. ARGV[i] .. ':events'
    if not is_list_or_missing(queue_key) then
        return redis.error_reply('WRONGTYPE ' .. queue_key .. ' is not a list')
    end
end

arg_index = 4
for command_number = 1, tonumber(ARGV[3]) do
    local arg_count = tonumber(ARGV[arg_index])
    local reply = redis.pcall(unpack(ARGV, arg_index + 1, arg_index + arg_count))
    if type(reply) == 'table' and reply.err then
        return {command_number, reply.err}
    end
    arg_index = arg_index + arg_count + 1
end
local queued_objects = {}
for i = arg_index, #ARGV, 2 do
    redis.call('LPUSH', ARGV[1] .. ARGV[i] .. ':events', ARGV[i + 1])
    if not queued_objects[ARGV[i]] then
        queued_objects[ARGV[i]] = true
        redis.call('LPUSH', KEYS[2], ARGV[i])
    end
end
redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
return {0}
