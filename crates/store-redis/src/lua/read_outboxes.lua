#!lua flags=allow-oom
-- Looks at what lies in the outboxes of objects, and takes the next event of those that are held into flight. Asked again, it
-- answers the same and what came later: an event that is in flight stays there until it is acknowledged (commit.lua).
--
-- KEYS  1 next.event.id
-- ARGV  1 what all keys begin with
--       2 what an id is at least, by the clock
--       3 how many events of an object are taken at most that is held
--       4 the same of one that is only looked at
--       5 from how many bytes on nothing more is taken along
--       6 how many bytes an event has at most; of a longer one its length is told
--       7 how long a heartbeat lasts, in milliseconds
--       8 how many objects are held
--       then for each of them the worker that holds it, and the object; then objects that are only looked at
-- Answers for each object that has something: its name, who holds it, the id of its event in flight (empty: it has none),
-- whether it is held by the one that was named, what lies behind (0: nothing, 1: more events, 2: what is no list), and its
-- events in their order.

local prefix = ARGV[1]
local most = {[0] = tonumber(ARGV[4]), [1] = tonumber(ARGV[3])}
local limit, longest = tonumber(ARGV[5]), tonumber(ARGV[6])
local bytes = 0
local answer = {}

-- What a command answers that finds a string; nothing if it finds none, or a key of another kind.
local function string_of(...)
    local found = redis.pcall(...)
    return type(found) == 'string' and found
end

local function told(event)
    bytes = bytes + math.min(#event, longest)
    return #event <= longest and event or #event
end

-- One that cannot be used is replaced when the event is journaled.
local function next_id()
    local last = tonumber(string_of('GET', KEYS[1]) or '0') or 0
    local id = string.format('%.0f', math.max(last + 1, tonumber(ARGV[2])))
    redis.call('SET', KEYS[1], id)
    return id
end

local function behind(queue, taken)
    local length = redis.pcall('LLEN', queue)
    if type(length) == 'table' then
        return 2
    end
    return length > taken and 1 or 0
end

local function look(object, owner, named)
    local queue = prefix .. object .. ':events'
    local found = {object, owner or '', '', named, 0}
    local flying, taken = 0, 0
    if owner then
        local flight = prefix .. 'event.worker:' .. owner .. ':event'
        if named == 1 and not string_of('LINDEX', flight, -1) and string_of('RPOPLPUSH', queue, flight) then
            redis.call('SET', flight .. '.id', next_id())
        end
        -- Mostly there is one. Whoever lost an answer may have taken another.
        local event = string_of('LINDEX', flight, -1)
        if event then
            found[3] = string_of('GET', flight .. '.id') or ''
        end
        while event do
            flying = flying + 1
            found[#found + 1] = told(event)
            event = string_of('LINDEX', flight, -1 - flying)
        end
    end
    while bytes < limit and flying + taken < most[named] do
        -- Events are pushed in front and taken from behind.
        local event = string_of('LINDEX', queue, -1 - taken)
        if not event then
            break
        end
        taken = taken + 1
        found[#found + 1] = told(event)
    end
    found[5] = behind(queue, taken)
    if flying + taken > 0 or found[5] > 0 or named == 1 then
        answer[#answer + 1] = found
    end
end

local held = tonumber(ARGV[8])
for i = 9, 8 + 2 * held, 2 do
    local worker, object = ARGV[i], ARGV[i + 1]
    if string_of('GET', prefix .. object .. ':event.worker') == worker then
        redis.call('SET', prefix .. 'event.worker:' .. worker .. ':heartbeat', 1, 'PX', ARGV[7])
        look(object, worker, 1)
    end
end
for i = 9 + 2 * held, #ARGV do
    look(ARGV[i], string_of('GET', prefix .. ARGV[i] .. ':event.worker'), 0)
end
return answer
