#!lua flags=allow-oom
-- Begins a transaction: acquires the write lock if it is free, and returns the store state.
--
-- KEYS  1 pointsman:store-state           store state: version (8 bytes), nonce (8 bytes), counters after the last commit
--       2 pointsman:commit-records        records of the last commits, newest first; each starts with its version and nonce
--       3 pointsman:write-lock            owner of the write lock; expires with its lease
--       4 pointsman:write-lock:waiting    waiting nodes by the time they started to wait, in microseconds: served in order
--       5 pointsman:invalidation-records  invalidation records of the last commits that published one, newest first; each
--                                         starts with its version and nonce
--       6 pointsman:write-lock:requested  waiting nodes by the time of their last request
-- ARGV  1 the requesting node
--       2 lease of the write lock, in milliseconds
--       3 the version that the node has cached, or empty
-- Returns {0, remaining lease of the lock owner} or {1, store state, {invalidation record …}, commit record …}: the commit
-- records from the newest to that of the cached version; none if that is too old. A node that has missed no commit gets no
-- invalidation records.

-- A waiting node repeats its request twice a second. After this time without a request it counts as gone, in milliseconds.
local WAITER_TIMEOUT_MS = 3000

-- Adds the requesting node to the waiting nodes, and removes those that have not repeated their request for too long.
local function enqueue_waiter(now)
    local now_micros = tonumber(now[1]) * 1000000 + tonumber(now[2])
    local function format_number(number)
        return string.format('%.0f', number)
    end
    redis.call('ZADD', KEYS[4], 'NX', format_number(now_micros), ARGV[1])
    redis.call('ZADD', KEYS[6], format_number(now_micros), ARGV[1])
    for _, gone_waiter in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', format_number(now_micros - WAITER_TIMEOUT_MS * 1000))) do
        redis.call('ZREM', KEYS[4], gone_waiter)
        redis.call('ZREM', KEYS[6], gone_waiter)
    end
    redis.call('PEXPIRE', KEYS[4], WAITER_TIMEOUT_MS)
    redis.call('PEXPIRE', KEYS[6], WAITER_TIMEOUT_MS)
end

local lock_owner = redis.call('GET', KEYS[3])
if lock_owner and lock_owner ~= ARGV[1] then
    enqueue_waiter(redis.call('TIME'))
    return {0, redis.call('PTTL', KEYS[3])}
end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])

local store_state = redis.call('GET', KEYS[1]) or ''
local reply = {1, store_state, {}}
if ARGV[3] ~= '' and #store_state >= 8 then
    local missed_commits = struct.unpack('>I8', store_state) - tonumber(ARGV[3])
    if missed_commits > 0 and missed_commits <= 16 then
        local invalidations = redis.pcall('LRANGE', KEYS[5], 0, missed_commits - 1)
        reply[3] = invalidations.err and {} or invalidations
    end
    if missed_commits >= 0 and missed_commits < 256 then
        for _, record in ipairs(redis.call('LRANGE', KEYS[2], 0, missed_commits)) do
            reply[#reply + 1] = record
        end
    end
end
return reply
