#!lua flags=allow-oom
-- Puts objects of dead workers at the front of the queue; the worker that claims one takes it over.
--
-- KEYS  1 objects.with.events
-- ARGV  1 key prefix
--       2 number of workers that own an object
--       then these workers
--       then objects that have an owner
-- Returns the number of objects that were queued.

local prefix = ARGV[1]
local requeued_count = 0

-- Returns the string a command replies with; false if there is none or the key has another type.
local function string_or_false(...)
    local result = redis.pcall(...)
    return type(result) == 'string' and result
end

local function worker_key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

local function is_dead(worker)
    return redis.call('EXISTS', worker_key(worker, 'heartbeat')) == 0
end

local function requeue(object)
    redis.call('RPUSH', KEYS[1], object)
    requeued_count = requeued_count + 1
end

-- A store without a prefix also sees the keys of stores that have one; those requeue their own objects.
local function belongs_to_another_store(object)
    for length = 1, #object do
        if redis.call('EXISTS', prefix .. string.sub(object, 1, length) .. 'pointsman:store-state') == 1 then
            return true
        end
    end
    return false
end

local last_worker_index = 2 + tonumber(ARGV[2])
for i = 3, last_worker_index do
    local worker = ARGV[i]
    local object = is_dead(worker) and string_or_false('LINDEX', worker_key(worker, 'object'), 0)
    if object then
        requeue(object)
        if string_or_false('GET', prefix .. object .. ':event.worker') ~= worker then
            redis.call('DEL', worker_key(worker, 'object'))
        end
    end
end

-- Dead workers that do not name the object that they own are found by the owner key of the object.
for i = last_worker_index + 1, #ARGV do
    local object = ARGV[i]
    local owner = string_or_false('GET', prefix .. object .. ':event.worker')
    local is_named_by_owner = owner and string_or_false('LINDEX', worker_key(owner, 'object'), 0) == object
    if owner and not is_named_by_owner and is_dead(owner) and not belongs_to_another_store(object) then
        requeue(object)
    end
end
return requeued_count
