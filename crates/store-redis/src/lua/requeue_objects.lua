#!lua flags=allow-oom
-- Puts objects that dead workers hold in front of the line, where whoever takes them takes them over.
--
-- KEYS  1 objects.with.events
-- ARGV  1 what all keys begin with
--       2 how many workers there are, each of which holds an object
--       then these workers
--       then objects that somebody holds, whoever it is
-- Answers how many objects were put in line.

local prefix = ARGV[1]
local swept = 0

-- What a command answers that finds a string; nothing if it finds none, or a key of another kind.
local function string_of(...)
    local found = redis.pcall(...)
    return type(found) == 'string' and found
end

local function key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

local function is_dead(worker)
    return redis.call('EXISTS', key(worker, 'heartbeat')) == 0
end

local function put_in_line(object)
    redis.call('RPUSH', KEYS[1], object)
    swept = swept + 1
end

-- The keys of a store that has a prefix lie among those of one that has none: it is for others to sweep them.
local function is_of_another_store(object)
    for length = 1, #object do
        if redis.call('EXISTS', prefix .. string.sub(object, 1, length) .. 'pointsman:point') == 1 then
            return true
        end
    end
    return false
end

local last_worker = 2 + tonumber(ARGV[2])
for i = 3, last_worker do
    local worker = ARGV[i]
    local object = is_dead(worker) and string_of('LINDEX', key(worker, 'object'), 0)
    if object then
        put_in_line(object)
        if string_of('GET', prefix .. object .. ':event.worker') ~= worker then
            redis.call('DEL', key(worker, 'object'))
        end
    end
end

-- Of a dead worker that does not name the object that it holds, nothing above tells.
for i = last_worker + 1, #ARGV do
    local object = ARGV[i]
    local owner = string_of('GET', prefix .. object .. ':event.worker')
    local is_named = owner and string_of('LINDEX', key(owner, 'object'), 0) == object
    if owner and not is_named and is_dead(owner) and not is_of_another_store(object) then
        put_in_line(object)
    end
end
return swept
