#!lua flags=no-writes
-- Tells which objects have events that nobody looks at, unless they are in line: nobody holds them, or a dead worker that
-- does not know of it.
--
-- KEYS  1 objects.with.events
-- ARGV  1 what all keys begin with
--       then objects
-- Answers those objects.

local prefix = ARGV[1]
local stray = {}

-- What a command answers that finds a string; nothing if it finds none, or a key of another kind.
local function string_of(...)
    local found = redis.pcall(...)
    return type(found) == 'string' and found
end

local function length_of(list)
    local length = redis.pcall('LLEN', list)
    return type(length) == 'number' and length or 0
end

local function key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

local function is_looked_after(owner, object)
    return redis.call('EXISTS', key(owner, 'heartbeat')) == 1 or string_of('LINDEX', key(owner, 'object'), 0) == object
end

-- The keys of a store that has a prefix lie among those of one that has none.
local function is_of_another_store(object)
    for length = 1, #object do
        if redis.call('EXISTS', prefix .. string.sub(object, 1, length) .. 'pointsman:point') == 1 then
            return true
        end
    end
    return false
end

for i = 2, #ARGV do
    local object = ARGV[i]
    local owner = string_of('GET', prefix .. object .. ':event.worker')
    local events = length_of(prefix .. object .. ':events') + (owner and length_of(key(owner, 'event')) or 0)
    if events > 0 and not (owner and is_looked_after(owner, object)) and not is_of_another_store(object) then
        stray[#stray + 1] = object
    end
end
return stray
