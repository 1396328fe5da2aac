-- Looks at all keys of document 001 at one moment, and says what must not be so.
--
-- ARGV  1 what all keys begin with
--       2 whether everything is at rest: then nothing may be queued, in flight or held
-- Answers a line for each thing that is wrong.

local prefix, at_rest = ARGV[1], ARGV[2] == '1'
local wrong = {}

local function say(...)
    wrong[#wrong + 1] = table.concat({...}, ' ')
end

local function get(name)
    return redis.call('GET', prefix .. name)
end

local function range(name)
    return redis.call('LRANGE', prefix .. name, 0, -1)
end

local in_line = {}
for _, object in ipairs(range('objects.with.events')) do
    in_line[object] = true
end

local function holds(worker, object)
    local held = range('event.worker:' .. worker .. ':object')
    return #held == 1 and held[1] == object
end

local function of_object(object)
    local owner = get(object .. ':event.worker')
    if owner and not holds(owner, object) then
        say(object, 'is held by', owner, 'which does not know it')
    end
    if #range(object .. ':events') > 0 and not in_line[object] and not owner then
        say(object, 'has events, is not in line, and nobody holds it')
    end
end

local function of_worker(worker)
    local objects = range('event.worker:' .. worker .. ':object')
    local events = range('event.worker:' .. worker .. ':event')
    local id = get('event.worker:' .. worker .. ':event.id')
    if #objects > 1 or #events > 1 then
        say(worker, 'has', #objects, 'objects and', #events, 'events')
    end
    if (#events > 0) ~= (id and true or false) then
        say(worker, 'has', #events, 'events, and the id', id or 'none')
    end
    local object = objects[1]
    if not object then
        if #events > 0 then
            say(worker, 'has an event in flight, and no object')
        end
    elseif get(object .. ':event.worker') ~= worker then
        say(worker, 'names', object, 'which it does not hold')
    elseif events[1] and redis.call('LPOS', prefix .. object .. ':events', events[1]) then
        say(object, 'has an event that is in flight and queued:', events[1])
    end
end

local seen = {}
local function once(kind, name, look)
    if name and not seen[kind .. name] then
        seen[kind .. name] = true
        look(name)
    end
end

for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
    local name = string.sub(key, #prefix + 1)
    local worker, what = string.match(name, '^event%.worker:(.+):([a-z.]+)$')
    if worker then
        if what ~= 'heartbeat' then
            once('worker ', worker, of_worker)
            if at_rest then
                say(name, 'is left over')
            end
        end
    else
        local object = string.match(name, '^(.+):events$') or string.match(name, '^(.+):event%.worker$')
        once('object ', object, of_object)
        if at_rest and (object or name == 'objects.with.events') then
            say(name, 'is left over')
        end
    end
end
return wrong
