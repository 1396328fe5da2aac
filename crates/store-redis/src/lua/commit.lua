#!lua flags=allow-oom
-- Commits a transaction: all of it or nothing, and only if nobody has written since it began. Sent again because its answer
-- was lost, it knows its own mark and changes nothing.
--
-- KEYS  1 pointsman:point, 2 pointsman:told, 3 pointsman:turn, 4 pointsman:turn:waiting, 5 pointsman:touched: see begin_transaction.lua
--       6 pointsman:turn:wake:    with the name of a waiting one behind it: what that one waits for
-- ARGV  1 who commits
--       2 how long the next one has the turn at most, in milliseconds
--       3 version and mark that the transaction began with, 16 bytes
--       4 the new point; it begins with the new version and mark. Empty if nothing is written: the turn alone is handed on
--       5 what this commit tells the others
--       6 what it wrote, with the new version and mark before it; empty if that is not told
--       7 what all keys begin with
--       8 whether the turn is kept, for the next transaction of the same one (1), or handed on (empty)
--       9 how many objects' events were taken out of their outboxes
--       then for each of them its name, who must hold it (empty: whoever does), the id that its event in flight has
--       (empty: it has none), and how many events are acknowledged
--       then the writes: the number of words, and the words of a command. Some are of our own:
--         prune HASH INDEX MEMBER      removes the member if the hash is gone
--         log KEY SECONDS REST …       adds lines to a log, each as its time and the rest of its JSON after the line's number
--         acknowledge OBJECT HEADER …  takes events out of an object's outbox, first the one in flight, if there is one; where
--                                      a header is not empty, the event is set aside behind it
--         release WORKER OBJECT        holds an object no longer; if it has events still, it goes to the end of the line
-- Answers 'done', 'behind' (somebody else has written), 'unknown' (so much has been written since that it may have been done),
-- 'fenced' (the outbox is another's now) or {'strange', a key that is not of the kind that is needed}.

local prefix = ARGV[7]

-- What a command answers that finds a string; nothing if it finds none, or a key of another kind.
local function string_of(...)
    local found = redis.pcall(...)
    return type(found) == 'string' and found
end

local function length_of(list)
    local length = redis.pcall('LLEN', list)
    return type(length) == 'number' and length or 0
end

local function owner_of(object)
    return string_of('GET', prefix .. object .. ':event.worker')
end

local function worker_key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

local function flying_of(owner)
    return owner and length_of(worker_key(owner, 'event')) or 0
end

-- Nothing that is done below may fail: what was done before it would stay.
local function is_as_expected(object, holder, id, count)
    local owner = owner_of(object)
    if holder ~= '' and owner ~= holder then
        return false
    end
    local flying = flying_of(owner)
    local given = flying > 0 and string_of('GET', worker_key(owner, 'event.id')) or ''
    return given == id and flying + length_of(prefix .. object .. ':events') >= tonumber(count)
end

local function log(first, last)
    local key = ARGV[first]
    local count = redis.call('ZCARD', key)
    local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    local latest = tonumber(newest[2]) or 0
    for i = first + 1, last, 2 do
        -- Lines stand in the order in which they came, whatever their clock said.
        latest = math.max(latest, tonumber(ARGV[i]))
        local member = string.format('{"n":%.0f,', 1000000000 + count) .. ARGV[i + 1]
        redis.call('ZADD', key, string.format('%.6f', latest), member)
        count = count + 1
    end
end

local function acknowledge(first, last)
    local object = ARGV[first]
    local owner = owner_of(object)
    local flying = flying_of(owner)
    for i = first + 1, last do
        local event
        if flying > 0 then
            event = redis.call('RPOP', worker_key(owner, 'event'))
            redis.call('DEL', worker_key(owner, 'event.id'))
            flying = flying - 1
        else
            event = redis.call('RPOP', prefix .. object .. ':events')
        end
        if ARGV[i] ~= '' then
            redis.call('LPUSH', prefix .. 'events.set.aside', ARGV[i] .. event)
        end
    end
end

local function release(worker, object)
    if owner_of(object) == worker then
        redis.call('DEL', prefix .. object .. ':event.worker')
        if length_of(prefix .. object .. ':events') > 0 then
            redis.call('LPUSH', prefix .. 'objects.with.events', object)
        end
    end
    redis.call('DEL', worker_key(worker, 'object'))
end

local function hand_on()
    if redis.call('GET', KEYS[3]) ~= ARGV[1] then
        return
    end
    if ARGV[8] ~= '' then
        redis.call('PEXPIRE', KEYS[3], ARGV[2])
        return
    end
    local next = redis.call('ZPOPMIN', KEYS[4])
    if next[1] then
        redis.call('SET', KEYS[3], next[1], 'PX', ARGV[2])
        redis.call('LPUSH', KEYS[6] .. next[1], 1)
        redis.call('PEXPIRE', KEYS[6] .. next[1], ARGV[2])
    else
        redis.call('DEL', KEYS[3])
    end
end

-- Whether this very commit was done already. Others may have come after it, which tell of themselves.
local function was_done(point, new)
    local since = #point == 16 and struct.unpack('>I8', point) - struct.unpack('>I8', new) or -1
    local told = since >= 0 and redis.call('LINDEX', KEYS[2], since)
    return told and string.sub(told, 1, 16) == string.sub(new, 1, 16)
end

-- So many have committed since that it is no longer told whether this one had.
local function is_forgotten(point, new)
    local since = #point == 16 and struct.unpack('>I8', point) - struct.unpack('>I8', new) or -1
    return since >= redis.call('LLEN', KEYS[2])
end

-- What the key of a command must be, if it is there.
local KINDS = {
    HSET = 'hash', HDEL = 'hash', ZADD = 'zset', ZREM = 'zset', ZREMRANGEBYLEX = 'zset', LPUSH = 'list', XADD = 'stream',
    XDEL = 'stream', log = 'zset',
}
-- Keys that only readers of document 002 look at: what cannot be written there is left out.
local told_only = prefix .. 'sync_tasks'
local left_out = {}
local known = {}

local function is_of_kind(key, kind)
    if known[key] == nil then
        local found = redis.call('TYPE', key).ok
        known[key] = found == 'none' and kind or found
    end
    return known[key] == kind
end

local function sets_aside(first, last)
    for i = first, last do
        if ARGV[i] ~= '' then
            return true
        end
    end
    return false
end

-- A command that fails would leave what was done before it: so all keys are looked at first. Answers one that somebody else
-- has made something else of.
local function strange_key(at)
    if not is_of_kind(KEYS[2], 'list') then
        return KEYS[2]
    end
    while at <= #ARGV do
        local words, verb, key = tonumber(ARGV[at]), ARGV[at + 1], ARGV[at + 2]
        local kind = KINDS[verb]
        if verb == 'release' then
            key, kind = prefix .. 'objects.with.events', 'list'
        elseif verb == 'acknowledge' and sets_aside(at + 3, at + words) then
            key, kind = prefix .. 'events.set.aside', 'list'
        end
        if kind and not is_of_kind(key, kind) then
            if string.sub(key, 1, #told_only) ~= told_only then
                return key
            end
            left_out[key] = true
        end
        at = at + words + 1
    end
end

local function commit()
    local new = ARGV[4]
    local point = string.sub(redis.call('GET', KEYS[1]) or '', 1, 16)
    if was_done(point, new) then
        return 'done'
    end
    if point ~= ARGV[3] then
        return is_forgotten(point, new) and 'unknown' or 'behind'
    end
    local at = 10
    for _ = 1, tonumber(ARGV[9]) do
        if not is_as_expected(ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) then
            return 'fenced'
        end
        at = at + 4
    end
    local strange = strange_key(at)
    if strange then
        return {'strange', strange}
    end
    while at <= #ARGV do
        local words = tonumber(ARGV[at])
        local verb = ARGV[at + 1]
        if left_out[ARGV[at + 2]] then
            verb = 'leave out'
        end
        if verb == 'prune' then
            if redis.call('EXISTS', ARGV[at + 2]) == 0 then
                redis.call('ZREM', ARGV[at + 3], ARGV[at + 4])
            end
        elseif verb == 'log' then
            log(at + 2, at + words)
        elseif verb == 'acknowledge' then
            acknowledge(at + 2, at + words)
        elseif verb == 'release' then
            release(ARGV[at + 2], ARGV[at + 3])
        elseif verb ~= 'leave out' then
            redis.call(unpack(ARGV, at + 1, at + words))
        end
        at = at + words + 1
    end
    redis.call('SET', KEYS[1], new)
    redis.call('LPUSH', KEYS[2], ARGV[5])
    redis.call('LTRIM', KEYS[2], 0, 255)
    -- Whoever has missed a commit that does not tell has no use for what was told before.
    if ARGV[6] == '' or not is_of_kind(KEYS[5], 'list') then
        redis.call('DEL', KEYS[5])
    end
    if ARGV[6] ~= '' then
        redis.call('LPUSH', KEYS[5], ARGV[6])
        redis.call('LTRIM', KEYS[5], 0, 15)
    end
    return 'done'
end

local answer = ARGV[4] == '' and 'done' or commit()
hand_on()
return answer
