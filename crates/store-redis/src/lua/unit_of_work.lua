#!lua
-- A unit of work: a program's own commands, and its events, left in the outboxes of their objects. Sent again because its
-- answer was lost, it does nothing more.
--
-- KEYS  1 pointsman:unit:ID      that it was done
--       2 objects.with.events
-- ARGV  1 what all keys begin with
--       2 how long it is remembered that it was done, in milliseconds
--       3 how many commands there are
--       then for each of them the number of its words, and the words
--       then for each event its object and itself
-- Answers {0}, or the number of the command that Redis refused, and why. What came before that one is done; what comes
-- behind it is not, and no event is left.

if redis.call('EXISTS', KEYS[1]) == 1 then
    return {0}
end
local function is_list(key)
    local kind = redis.call('TYPE', key).ok
    return kind == 'list' or kind == 'none'
end

-- What would fail behind the commands is looked at before them.
local at = 4
for _ = 1, tonumber(ARGV[3]) do
    at = at + tonumber(ARGV[at]) + 1
end
if not is_list(KEYS[2]) then
    return redis.error_reply('WRONGTYPE ' .. KEYS[2] .. ' is not a list')
end
for i = at, #ARGV, 2 do
    local queue = ARGV[1] .. ARGV[i] .. ':events'
    if not is_list(queue) then
        return redis.error_reply('WRONGTYPE ' .. queue .. ' is not a list')
    end
end

at = 4
for number = 1, tonumber(ARGV[3]) do
    local words = tonumber(ARGV[at])
    local answer = redis.pcall(unpack(ARGV, at + 1, at + words))
    if type(answer) == 'table' and answer.err then
        return {number, answer.err}
    end
    at = at + words + 1
end
local lined = {}
for i = at, #ARGV, 2 do
    redis.call('LPUSH', ARGV[1] .. ARGV[i] .. ':events', ARGV[i + 1])
    if not lined[ARGV[i]] then
        lined[ARGV[i]] = true
        redis.call('LPUSH', KEYS[2], ARGV[i])
    end
end
redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
return {0}
