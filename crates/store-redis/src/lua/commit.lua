#!lua flags=allow-oom
-- Commits a transaction: all of it or nothing, and only if no other commit happened since it began. A resent commit (its
-- reply was lost) is recognised by its nonce and changes nothing.
--
-- KEYS  1 pointsman:store-state, 2 pointsman:commit-records, 3 pointsman:write-lock, 4 pointsman:write-lock:waiting,
--       5 pointsman:invalidation-records: see begin_transaction.lua
--       6 pointsman:write-lock:wake:    prefix of the list that each waiting node blocks on
-- ARGV  1 the committing node
--       2 lease of the next lock owner, in milliseconds
--       3 version and nonce that the transaction began with, 16 bytes
--       4 the new store state; it starts with the new version and nonce. Empty: nothing is written, only the lock is released
--       5 commit record of this commit
--       6 invalidation record, preceded by the new version and nonce; empty if none is published
--       7 key prefix
--       8 whether the lock is kept for the next transaction of the same node (1) or released (empty)
--       9 number of objects whose events are acknowledged
--       then the required state of the outbox of each: object, required owner (empty: any), id of its event in flight (empty:
--       none) and the number of acknowledged events
--       then the writes: the number of arguments and the arguments of a command. These are implemented below:
--         prune HASH INDEX MEMBER      removes the member if the hash does not exist
--         log KEY SECONDS REST …       appends log lines, each given as its time and its JSON after the line number
--         acknowledge OBJECT HEADER …  removes events from the outbox of an object, first the one in flight; an event whose
--                                      header is not empty is set aside after that header
--         release WORKER OBJECT        gives up ownership of an object; if it still has events, it is queued again
-- Returns 'committed', 'conflict' (another commit happened), 'unknown' (too many commits happened to know whether this one
-- was applied), 'fenced' (an outbox has changed) or {'wrong_type', a key that has the wrong type}.

local prefix = ARGV[7]

-- Returns the string a command replies with; false if there is none or the key has another type.
local function string_or_false(...)
    local result = redis.pcall(...)
    return type(result) == 'string' and result
end

local function list_length(list)
    local length = redis.pcall('LLEN', list)
    return type(length) == 'number' and length or 0
end

local function owner_of_object(object)
    return string_or_false('GET', prefix .. object .. ':event.worker')
end

local function worker_key(worker, name)
    return prefix .. 'event.worker:' .. worker .. ':' .. name
end

-- Counts the outbox events that an owner has taken and that are not acknowledged yet: usually one or none.
local function count_events_in_flight(owner)
    return owner and list_length(worker_key(owner, 'event')) or 0
end

-- Returns whether an outbox is as the transaction read it: same owner, same id of the event in flight, and at least as many
-- events as are acknowledged. Checked before the first write, because scripts are not rolled back.
local function is_outbox_unchanged(object, required_owner, required_event_id, acknowledged_count)
    local owner = owner_of_object(object)
    if required_owner ~= '' and owner ~= required_owner then
        return false
    end
    local in_flight_count = count_events_in_flight(owner)
    local assigned_id = in_flight_count > 0 and string_or_false('GET', worker_key(owner, 'event.id')) or ''
    return assigned_id == required_event_id and in_flight_count + list_length(prefix .. object .. ':events') >= tonumber(acknowledged_count)
end

local function append_log_lines(first, last)
    local log_key = ARGV[first]
    local line_count = redis.call('ZCARD', log_key)
    local newest_line = redis.call('ZRANGE', log_key, -1, -1, 'WITHSCORES')
    local latest_time = tonumber(newest_line[2]) or 0
    for i = first + 1, last, 2 do
        -- Lines keep the order in which they arrived, even if their clocks differ.
        latest_time = math.max(latest_time, tonumber(ARGV[i]))
        local line_member = string.format('{"n":%.0f,', 1000000000 + line_count) .. ARGV[i + 1]
        redis.call('ZADD', log_key, string.format('%.6f', latest_time), line_member)
        line_count = line_count + 1
    end
end

local function acknowledge_events(first, last)
    local object = ARGV[first]
    local owner = owner_of_object(object)
    local in_flight_count = count_events_in_flight(owner)
    for i = first + 1, last do
        local event
        if in_flight_count > 0 then
            event = redis.call('RPOP', worker_key(owner, 'event'))
            redis.call('DEL', worker_key(owner, 'event.id'))
            in_flight_count = in_flight_count - 1
        else
            event = redis.call('RPOP', prefix .. object .. ':events')
        end
        if ARGV[i] ~= '' then
            redis.call('LPUSH', prefix .. 'events.set.aside', ARGV[i] .. event)
        end
    end
end

local function release_object(worker, object)
    if owner_of_object(object) == worker then
        redis.call('DEL', prefix .. object .. ':event.worker')
        if list_length(prefix .. object .. ':events') > 0 then
            redis.call('LPUSH', prefix .. 'objects.with.events', object)
        end
    end
    redis.call('DEL', worker_key(worker, 'object'))
end

-- Keeps the write lock, hands it to the node that has waited longest, or deletes it.
local function keep_or_pass_on_lock()
    if redis.call('GET', KEYS[3]) ~= ARGV[1] then
        return
    end
    if ARGV[8] ~= '' then
        redis.call('PEXPIRE', KEYS[3], ARGV[2])
        return
    end
    local next_lock_owner = redis.call('ZPOPMIN', KEYS[4])
    if next_lock_owner[1] then
        redis.call('SET', KEYS[3], next_lock_owner[1], 'PX', ARGV[2])
        redis.call('LPUSH', KEYS[6] .. next_lock_owner[1], 1)
        redis.call('PEXPIRE', KEYS[6] .. next_lock_owner[1], ARGV[2])
    else
        redis.call('DEL', KEYS[3])
    end
end

-- Returns whether this commit was applied already; later commits may have followed it.
local function was_applied(stored_version, new_state)
    local commits_since = #stored_version == 16 and struct.unpack('>I8', stored_version) - struct.unpack('>I8', new_state) or -1
    local commit_record = commits_since >= 0 and redis.call('LINDEX', KEYS[2], commits_since)
    return commit_record and string.sub(commit_record, 1, 16) == string.sub(new_state, 1, 16)
end

-- Returns whether the record of this commit would have been trimmed by later commits.
local function is_record_trimmed(stored_version, new_state)
    local commits_since = #stored_version == 16 and struct.unpack('>I8', stored_version) - struct.unpack('>I8', new_state) or -1
    return commits_since >= redis.call('LLEN', KEYS[2])
end

-- Type that the key of a command must have, if the key exists.
local REQUIRED_KEY_TYPES = {
    HSET = 'hash', HDEL = 'hash', ZADD = 'zset', ZREM = 'zset', ZREMRANGEBYLEX = 'zset', LPUSH = 'list', XADD = 'stream',
    XDEL = 'stream', log = 'zset',
}
-- Keys with this prefix are only for readers of document 002: a write to one of the wrong type is skipped, and the commit
-- succeeds.
local document_002_prefix = prefix .. 'sync_tasks'
local skipped_keys = {}
local type_by_checked_key = {}

local function is_missing_or_has_type(key, expected_type)
    if type_by_checked_key[key] == nil then
        local found_type = redis.call('TYPE', key).ok
        type_by_checked_key[key] = found_type == 'none' and expected_type or found_type
    end
    return type_by_checked_key[key] == expected_type
end

local function has_set_aside_header(first, last)
    for i = first, last do
        if ARGV[i] ~= '' then
            return true
        end
    end
    return false
end

-- A failing command would leave the writes before it in place, so all key types are checked first. Returns a key of the
-- wrong type.
local function find_wrong_type_key(arg_index)
    if not is_missing_or_has_type(KEYS[2], 'list') then
        return KEYS[2]
    end
    while arg_index <= #ARGV do
        local arg_count, command_name, key = tonumber(ARGV[arg_index]), ARGV[arg_index + 1], ARGV[arg_index + 2]
        local expected_type = REQUIRED_KEY_TYPES[command_name]
        if command_name == 'release' then
            key, expected_type = prefix .. 'objects.with.events', 'list'
        elseif command_name == 'acknowledge' and has_set_aside_header(arg_index + 3, arg_index + arg_count) then
            key, expected_type = prefix .. 'events.set.aside', 'list'
        end
        if expected_type and not is_missing_or_has_type(key, expected_type) then
            if string.sub(key, 1, #document_002_prefix) ~= document_002_prefix then
                return key
            end
            skipped_keys[key] = true
        end
        arg_index = arg_index + arg_count + 1
    end
end

local function commit()
    local new_state = ARGV[4]
    local stored_version = string.sub(redis.call('GET', KEYS[1]) or '', 1, 16)
    if was_applied(stored_version, new_state) then
        return 'committed'
    end
    if stored_version ~= ARGV[3] then
        return is_record_trimmed(stored_version, new_state) and 'unknown' or 'conflict'
    end
    local arg_index = 10
    for _ = 1, tonumber(ARGV[9]) do
        if not is_outbox_unchanged(ARGV[arg_index], ARGV[arg_index + 1], ARGV[arg_index + 2], ARGV[arg_index + 3]) then
            return 'fenced'
        end
        arg_index = arg_index + 4
    end
    local wrong_type_key = find_wrong_type_key(arg_index)
    if wrong_type_key then
        return {'wrong_type', wrong_type_key}
    end
    while arg_index <= #ARGV do
        local arg_count = tonumber(ARGV[arg_index])
        local command_name = ARGV[arg_index + 1]
        if skipped_keys[ARGV[arg_index + 2]] then
            command_name = 'skip'
        end
        if command_name == 'prune' then
            if redis.call('EXISTS', ARGV[arg_index + 2]) == 0 then
                redis.call('ZREM', ARGV[arg_index + 3], ARGV[arg_index + 4])
            end
        elseif command_name == 'log' then
            append_log_lines(arg_index + 2, arg_index + arg_count)
        elseif command_name == 'acknowledge' then
            acknowledge_events(arg_index + 2, arg_index + arg_count)
        elseif command_name == 'release' then
            release_object(ARGV[arg_index + 2], ARGV[arg_index + 3])
        elseif command_name ~= 'skip' then
            redis.call(unpack(ARGV, arg_index + 1, arg_index + arg_count))
        end
        arg_index = arg_index + arg_count + 1
    end
    redis.call('SET', KEYS[1], new_state)
    redis.call('LPUSH', KEYS[2], ARGV[5])
    redis.call('LTRIM', KEYS[2], 0, 255)
    -- After a commit without an invalidation record, older records are useless to nodes that missed it.
    if ARGV[6] == '' or not is_missing_or_has_type(KEYS[5], 'list') then
        redis.call('DEL', KEYS[5])
    end
    if ARGV[6] ~= '' then
        redis.call('LPUSH', KEYS[5], ARGV[6])
        redis.call('LTRIM', KEYS[5], 0, 15)
    end
    return 'committed'
end

local reply = ARGV[4] == '' and 'committed' or commit()
keep_or_pass_on_lock()
return reply
