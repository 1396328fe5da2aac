#!lua flags=allow-oom
-- Reads the outboxes of objects, and moves the next event of each owned object in flight. A repeated call returns the same
-- events and later ones: an event stays in flight until it is acknowledged (commit.lua).
--
-- KEYS  1 next.event.id
-- ARGV  1 key prefix
--       2 smallest id to assign, derived from the clock
--       3 maximum number of events of an owned object
--       4 maximum number of events of an object that is only read
--       5 stop reading after this many bytes
--       6 maximum size of an event in bytes; for a larger one only its length is returned
--       7 time to live of a heartbeat, in milliseconds
--       8 number of owned objects
--       then worker and object of each owned object; then the objects that are only read
-- Returns for each object with entries: name, owner, id of its event in flight (empty: none), whether the named worker owns
-- it, what remains (0: nothing, 1: more events, 2: the key is not a list), and its events in order.

local prefix = ARGV[1]
local max_events_by_ownership = {[0] = tonumber(ARGV[4]), [1] = tonumber(ARGV[3])}
local max_bytes, max_event_bytes = tonumber(ARGV[5]), tonumber(ARGV[6])
local read_bytes = 0
local reply = {}

-- Returns the string a command replies with; false if there is none or the key has another type.
local function string_or_false(...)
    local result = redis.pcall(...)
    return type(result) == 'string' and result
end

local function event_or_length(event)
    read_bytes = read_bytes + math.min(#event, max_event_bytes)
    return #event <= max_event_bytes and event or #event
end

-- Assigns the next id to an event in flight. If the stored last id is unusable, the journal assigns another one later.
local function assign_next_id()
    local last_id = tonumber(string_or_false('GET', KEYS[1]) or '0') or 0
    local id = string.format('%.0f', math.max(last_id + 1, tonumber(ARGV[2])))
    redis.call('SET', KEYS[1], id)
    return id
end

local function remainder_code(queue_key, queued_count)
    local length = redis.pcall('LLEN', queue_key)
    if type(length) == 'table' then
        return 2
    end
    return length > queued_count and 1 or 0
end

local function read_outbox(object, owner, is_owned)
    local queue_key = prefix .. object .. ':events'
    local outbox = {object, owner or '', '', is_owned, 0}
    local in_flight_count, queued_count = 0, 0
    if owner then
        local in_flight_key = prefix .. 'event.worker:' .. owner .. ':event'
        if is_owned == 1 and not string_or_false('LINDEX', in_flight_key, -1) and string_or_false('RPOPLPUSH', queue_key, in_flight_key) then
            redis.call('SET', in_flight_key .. '.id', assign_next_id())
        end
        -- Usually one event is in flight. A worker that lost a reply may have moved a second one.
        local event = string_or_false('LINDEX', in_flight_key, -1)
        if event then
            outbox[3] = string_or_false('GET', in_flight_key .. '.id') or ''
        end
        while event do
            in_flight_count = in_flight_count + 1
            outbox[#outbox + 1] = event_or_length(event)
            event = string_or_false('LINDEX', in_flight_key, -1 - in_flight_count)
        end
    end
    while read_bytes < max_bytes and in_flight_count + queued_count < max_events_by_ownership[is_owned] do
        -- Producers push at the head; the oldest event is at the tail.
        local event = string_or_false('LINDEX', queue_key, -1 - queued_count)
        if not event then
            break
        end
        queued_count = queued_count + 1
        outbox[#outbox + 1] = event_or_length(event)
    end
    outbox[5] = remainder_code(queue_key, queued_count)
    if in_flight_count + queued_count > 0 or outbox[5] > 0 or is_owned == 1 then
        reply[#reply + 1] = outbox
    end
end

local owned_count = tonumber(ARGV[8])
for i = 9, 8 + 2 * owned_count, 2 do
    local worker, object = ARGV[i], ARGV[i + 1]
    if string_or_false('GET', prefix .. object .. ':event.worker') == worker then
        redis.call('SET', prefix .. 'event.worker:' .. worker .. ':heartbeat', 1, 'PX', ARGV[7])
        read_outbox(object, worker, 1)
    end
end
for i = 9 + 2 * owned_count, #ARGV do
    read_outbox(ARGV[i], string_or_false('GET', prefix .. ARGV[i] .. ':event.worker'), 0)
end
return reply
