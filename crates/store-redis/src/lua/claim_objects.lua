#!lua flags=allow-oom
-- Renews the heartbeats of event workers; each worker without an object claims a queued one. A worker that owns an object
-- gets it again. An object whose owner has no heartbeat is taken over, with the event in flight and its id.
--
-- KEYS  1 objects.with.events
-- ARGV  1 key prefix
--       2 time to live of a heartbeat, in milliseconds
--       3 maximum number of queued names to read: names of objects with another live owner are dropped
--       then the workers
-- Returns worker and object of each worker that owns one now.

local prefix = ARGV[1]
local remaining_names = tonumber(ARGV[3])

local function worker_key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

-- Returns the string a command replies with; false if there is none or the key has another type.
local function string_or_false(...)
    local result = redis.pcall(...)
    return type(result) == 'string' and result
end

-- Moves the outbox event that a dead owner has in flight, and its assigned id, to a worker, unless the dead owner names
-- another object.
local function take_over_event_in_flight(dead_owner, worker, object)
    local object_of_dead_owner = string_or_false('LINDEX', worker_key(dead_owner, 'object'), 0)
    if object_of_dead_owner and object_of_dead_owner ~= object then
        return
    end
    local moved_event = false
    while string_or_false('RPOPLPUSH', worker_key(dead_owner, 'event'), worker_key(worker, 'event')) do
        moved_event = true
    end
    if moved_event then
        redis.call('SET', worker_key(worker, 'event.id'), string_or_false('GET', worker_key(dead_owner, 'event.id')) or '0')
    end
    redis.call('DEL', worker_key(dead_owner, 'event'), worker_key(dead_owner, 'event.id'), worker_key(dead_owner, 'object'))
end

-- Makes the worker the owner of an object, unless that has another live owner. Returns whether the worker owns it now.
local function try_own_object(worker, object)
    local owner_key = prefix .. object .. ':event.worker'
    local owner = redis.pcall('GET', owner_key)
    if type(owner) == 'table' then
        -- The key belongs to another application.
        return false
    end
    if owner and owner ~= worker then
        if redis.call('EXISTS', worker_key(owner, 'heartbeat')) == 1 then
            -- The name can be dropped: when the owner releases the object and that still has events, it is queued again.
            return false
        end
        take_over_event_in_flight(owner, worker, object)
    end
    redis.call('SET', owner_key, worker)
    return true
end

-- Moves the next queued name to the worker; false if the queue is empty or enough names were read.
local function move_next_name_to_worker(worker)
    remaining_names = remaining_names - 1
    return remaining_names >= 0 and redis.call('RPOPLPUSH', KEYS[1], worker_key(worker, 'object'))
end

-- Returns the object that a worker owns, or the next queued one without another live owner.
local function own_or_claim_object(worker)
    local object = redis.call('LINDEX', worker_key(worker, 'object'), 0) or move_next_name_to_worker(worker)
    while object and not try_own_object(worker, object) do
        redis.call('DEL', worker_key(worker, 'object'))
        object = move_next_name_to_worker(worker)
    end
    return object
end

for i = 4, #ARGV do
    redis.call('SET', worker_key(ARGV[i], 'heartbeat'), 1, 'PX', ARGV[2])
end
local claimed = {}
for i = 4, #ARGV do
    local object = own_or_claim_object(ARGV[i])
    if object then
        claimed[#claimed + 1] = ARGV[i]
        claimed[#claimed + 1] = object
    end
end
return claimed
