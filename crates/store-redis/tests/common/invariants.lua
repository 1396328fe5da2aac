-- Checks the invariants of all keys of document 001 at one moment, because a script runs alone.
--
-- ARGV  1 key prefix
--       2 whether the outbox must be drained (1): then nothing may be queued, in flight or owned
-- Returns a line for each violation.

local prefix, must_be_drained = ARGV[1], ARGV[2] == '1'
local violations = {}

local function report_violation(...)
    violations[#violations + 1] = table.concat({...}, ' ')
end

local function get_string(name)
    return redis.call('GET', prefix .. name)
end

local function read_list(name)
    return redis.call('LRANGE', prefix .. name, 0, -1)
end

local is_queued = {}
for _, object in ipairs(read_list('objects.with.events')) do
    is_queued[object] = true
end

local function names_only_object(worker, object)
    local named = read_list('event.worker:' .. worker .. ':object')
    return #named == 1 and named[1] == object
end

local function check_object(object)
    local owner = get_string(object .. ':event.worker')
    if owner and not names_only_object(owner, object) then
        report_violation(object, 'is owned by', owner, 'which does not name it')
    end
    if #read_list(object .. ':events') > 0 and not is_queued[object] and not owner then
        report_violation(object, 'has events, is not queued and has no owner')
    end
end

local function check_worker(worker)
    local objects = read_list('event.worker:' .. worker .. ':object')
    local events = read_list('event.worker:' .. worker .. ':event')
    local id = get_string('event.worker:' .. worker .. ':event.id')
    if #objects > 1 or #events > 1 then
        report_violation(worker, 'has', #objects, 'objects and', #events, 'events')
    end
    if (#events > 0) ~= (id and true or false) then
        report_violation(worker, 'has', #events, 'events, and the id', id or 'none')
    end
    local object = objects[1]
    if not object then
        if #events > 0 then
            report_violation(worker, 'has an event in flight, and no object')
        end
    elseif get_string(object .. ':event.worker') ~= worker then
        report_violation(worker, 'names', object, 'which it does not own')
    elseif events[1] and redis.call('LPOS', prefix .. object .. ':events', events[1]) then
        report_violation(object, 'has an event that is in flight and queued:', events[1])
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
    local worker, suffix = string.match(name, '^event%.worker:(.+):([a-z.]+)$')
    if worker then
        if suffix ~= 'heartbeat' then
            check_once('worker ', worker, check_worker)
            if must_be_drained then
                report_violation(name, 'is left over')
            end
        end
    else
        local object = string.match(name, '^(.+):events$') or string.match(name, '^(.+):event%.worker$')
        check_once('object ', object, check_object)
        if must_be_drained and (object or name == 'objects.with.events') then
            report_violation(name, 'is left over')
        end
    end
end
return violations
