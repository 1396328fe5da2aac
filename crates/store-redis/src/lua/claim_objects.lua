#!lua flags=allow-oom
-- Event workers say that they live, and those that hold nothing take an object that has events. What the worker holds
-- already it is given again. An object whose owner has no heartbeat is taken over, with its event in flight and the id
-- of that.
--
-- KEYS  1 objects.with.events
-- ARGV  1 what all keys begin with
--       2 how long a heartbeat lasts, in milliseconds
--       3 how many names in the line are looked at, at most: of an object that another one holds the name is thrown away
--       then the workers
-- Answers worker and object, of each that holds one now.

local prefix = ARGV[1]
local patience = tonumber(ARGV[3])

local function key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

-- What a command answers that finds a string; nothing if it finds none, or a key of another kind.
local function string_of(...)
    local found = redis.pcall(...)
    return type(found) == 'string' and found
end

local function take_over(dead, worker, object)
    local held = string_of('LINDEX', key(dead, 'object'), 0)
    if held and held ~= object then
        return
    end
    local moved = false
    while string_of('RPOPLPUSH', key(dead, 'event'), key(worker, 'event')) do
        moved = true
    end
    if moved then
        redis.call('SET', key(worker, 'event.id'), string_of('GET', key(dead, 'event.id')) or '0')
    end
    redis.call('DEL', key(dead, 'event'), key(dead, 'event.id'), key(dead, 'object'))
end

-- Whether the worker holds the object now.
local function hold(worker, object)
    local owner_key = prefix .. object .. ':event.worker'
    local owner = redis.pcall('GET', owner_key)
    if type(owner) == 'table' then
        -- Somebody uses this key for something else.
        return false
    end
    if owner and owner ~= worker then
        if redis.call('EXISTS', key(owner, 'heartbeat')) == 1 then
            -- It lets go of it only when it has no events, or puts it in line again.
            return false
        end
        take_over(owner, worker, object)
    end
    redis.call('SET', owner_key, worker)
    return true
end

local function next_in_line(worker)
    patience = patience - 1
    return patience >= 0 and redis.call('RPOPLPUSH', KEYS[1], key(worker, 'object'))
end

-- The object that a worker holds, or the next in line that nobody else does.
local function object_for(worker)
    local object = redis.call('LINDEX', key(worker, 'object'), 0) or next_in_line(worker)
    while object and not hold(worker, object) do
        redis.call('DEL', key(worker, 'object'))
        object = next_in_line(worker)
    end
    return object
end

for i = 4, #ARGV do
    redis.call('SET', key(ARGV[i], 'heartbeat'), 1, 'PX', ARGV[2])
end
local taken = {}
for i = 4, #ARGV do
    local object = object_for(ARGV[i])
    if object then
        taken[#taken + 1] = ARGV[i]
        taken[#taken + 1] = object
    end
end
return taken
