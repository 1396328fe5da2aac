#!lua flags=allow-oom
-- Begins a transaction: takes the turn if nobody has it, and tells how far everything has come.
--
-- KEYS  1 pointsman:point         version (8 bytes), mark (8 bytes), and all that the last commit counted
--       2 pointsman:told          what the last commits changed, the newest first; each begins with its version and mark
--       3 pointsman:turn          who has the turn, for as long as its lease lasts
--       4 pointsman:turn:waiting  who waits for it, and since when, in microseconds: whoever came first gets it first
--       5 pointsman:touched       what a few of the last commits wrote, if they told it, the newest first; each begins
--                                 with its version and mark
--       6 pointsman:turn:asked    who waits for it, and when it asked last
-- ARGV  1 who asks
--       2 how long it has the turn at most, in milliseconds
--       3 the version that it remembers, or nothing
-- Answers {0, how long the other one has it at most} or {1, point, {touched …}, told …}: what was told
-- from the remembered version on, which is the last of them; none if it is too long ago. Who has missed nothing is not told
-- what was touched.

-- Whoever waits asks twice a second, and is taken for gone if it does not for so long, in milliseconds.
local SILENCE = 3000

-- However long somebody waits, it keeps its place as long as it asks.
local function wait(now)
    local micros = tonumber(now[1]) * 1000000 + tonumber(now[2])
    local function text(number)
        return string.format('%.0f', number)
    end
    redis.call('ZADD', KEYS[4], 'NX', text(micros), ARGV[1])
    redis.call('ZADD', KEYS[6], text(micros), ARGV[1])
    for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', text(micros - SILENCE * 1000))) do
        redis.call('ZREM', KEYS[4], gone)
        redis.call('ZREM', KEYS[6], gone)
    end
    redis.call('PEXPIRE', KEYS[4], SILENCE)
    redis.call('PEXPIRE', KEYS[6], SILENCE)
end

local owner = redis.call('GET', KEYS[3])
if owner and owner ~= ARGV[1] then
    wait(redis.call('TIME'))
    return {0, redis.call('PTTL', KEYS[3])}
end
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[6], ARGV[1])

local point = redis.call('GET', KEYS[1]) or ''
local answer = {1, point, {}}
if ARGV[3] ~= '' and #point >= 8 then
    local missed = struct.unpack('>I8', point) - tonumber(ARGV[3])
    if missed > 0 and missed <= 16 then
        local touched = redis.pcall('LRANGE', KEYS[5], 0, missed - 1)
        answer[3] = touched.err and {} or touched
    end
    if missed >= 0 and missed < 256 then
        for _, told in ipairs(redis.call('LRANGE', KEYS[2], 0, missed)) do
            answer[#answer + 1] = told
        end
    end
end
return answer
