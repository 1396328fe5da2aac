-- Checks the invariants of all keys of document 001 at one moment.
--
-- ARGV  1 key prefix
--       2 whether the outbox must be drained (1): then nothing may be queued, in flight or owned
-- Returns a line for each violation.

local prefix, must_be_drained = ARGV[1], ARGV[2] == '1'
local violations = {}

local function report(...)
    violations[#violations + 1] = table.concat({...}, ' ')
end

local function get(name)
    return redis.call('GET', prefix .. name)
end

local function range(name)
    return redis.call('LRANGE', prefix .. name, 0, -1)
end

local is_queued = {}
for _, object in ipairs(range('objects.with.events')) do
    is_queued[object] = true
end

local function names_only(worker, object)
    local named = range('event.worker:' .. worker .. ':object')
    return #named == 1 and named[1] == object
end

local function check_object(object)
    local owner = get(object .. ':event.worker')
    if owner and not names_only(owner, object) then
        report(object, 'is owned by', owner, 'which does not name it')
    end
    if #range(object .. ':events') > 0 and not is_queued[object] and not owner then
        report(object, 'has events, is not queued and has no owner')
    end
end

local function check_worker(worker)
    local objects = range('event.worker:' .. worker .. ':object')
    local events = range('event.worker:' .. worker .. ':event')
    local id = get('event.worker:' .. worker .. ':event.id')
    if #objects > 1 or #events > 1 then
        report(worker, 'has', #objects, 'objects and', #events, 'events')
    end
    if (#events > 0) ~= (id and true or false) then
        report(worker, 'has', #events, 'events, and the id', id or 'none')
    end
    local object = objects[1]
    if not object then
        if #events > 0 then
            report(worker, 'has an event in flight, and no object')
        end
    elseif get(object .. ':event.worker') ~= worker then
        report(worker, 'names', object, 'which it does not own')
    elseif events[1] and redis.call('LPOS', prefix .. object .. ':events', events[1]) then
        report(object, 'has an event that is in flight and queued:', events[1])
    end
end

local checked = {}
local function check_once(kind, name, check)
    if name and not checked[kind .. name] then
        checked[kind .. name] = true
        check(name)
    end
end

for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
    local name = string.sub(key, #prefix + 1)
    local worker, what = string.match(name, '^event%.worker:(.+):([a-z.]+)$')
    if worker then
        if what ~= 'heartbeat' then
            check_once('worker ', worker, check_worker)
            if must_be_drained then
                report(name, 'is left over')
            end
        end
    else
        local object = string.match(name, '^(.+):events$') or string.match(name, '^(.+):event%.worker$')
        check_once('object ', object, check_object)
        if must_be_drained and (object or name == 'objects.with.events') then
            report(name, 'is left over')
        end
    end
end
return violations
