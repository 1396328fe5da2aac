#!lua flags=no-writes
-- Returns the objects whose events no worker processes unless they are queued: they have no owner, or a dead owner that
-- does not name them.
--
-- KEYS  1 objects.with.events
-- ARGV  1 key prefix
--       then objects
-- Returns the orphaned objects.

local prefix = ARGV[1]
local orphaned = {}

-- Returns the string a command replies with; false if there is none or the key has another type.
local function string_or_false(...)
    local result = redis.pcall(...)
    return type(result) == 'string' and result
end

local function list_length(list)
    local length = redis.pcall('LLEN', list)
    return type(length) == 'number' and length or 0
end

local function worker_key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

local function is_processed_by(owner, object)
    return redis.call('EXISTS', worker_key(owner, 'heartbeat')) == 1 or string_or_false('LINDEX', worker_key(owner, 'object'), 0) == object
end

-- A store without a prefix also sees the keys of stores that have one.
local function belongs_to_another_store(object)
    for length = 1, #object do
        if redis.call('EXISTS', prefix .. string.sub(object, 1, length) .. 'pointsman:store-state') == 1 then
            return true
        end
    end
    return false
end

for i = 2, #ARGV do
    local object = ARGV[i]
    local owner = string_or_false('GET', prefix .. object .. ':event.worker')
    local event_count = list_length(prefix .. object .. ':events') + (owner and list_length(worker_key(owner, 'event')) or 0)
    if event_count > 0 and not (owner and is_processed_by(owner, object)) and not belongs_to_another_store(object) then
        orphaned[#orphaned + 1] = object
    end
end
return orphaned
