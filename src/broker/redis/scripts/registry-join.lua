-- Takes a place in the registry of workers, or keeps it, and takes out those whose lease has run out.
--
-- KEYS  places: hash, place -> id of the worker that has it
--       leases: sorted set, places by the time in ms at which their leases run out
-- ARGV  place
--       id of the worker
--       length of a lease in ms
--       any of the letters f (the worker's first time: it follows whoever has the place), a (announce it even if it had the place),
--         l (list all places), p (take out others)
--       the message that announces the worker
--       topic of all workers
--       the command that publishes
--
-- Returns 0 if another worker has the place, else how many places are taken, or with l: place, id, place, id ...
local places, leases = KEYS[1], KEYS[2]
local place, id, ttl, flags, here, topic, publish = unpack(ARGV)
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function has(flag)
  return string.find(flags, flag, 1, true) ~= nil
end

local function gone(who)
  redis.call(publish, topic, '-' .. who .. '\n')
end

local before = redis.call('hget', places, place)
if before and before ~= id then
  local lease = redis.call('zscore', leases, place)
  if not has('f') and lease and tonumber(lease) > now then
    return 0
  end
  gone(before)
end
redis.call('hset', places, place, id)
redis.call('zadd', leases, string.format('%.0f', now + ttl), place)
if before ~= id or has('a') then
  redis.call(publish, topic, here)
end

if has('p') then
  for _, late in ipairs(redis.call('zrangebyscore', leases, '-inf', string.format('%.0f', now), 'limit', 0, 100)) do
    local who = redis.call('hget', places, late)
    redis.call('hdel', places, late)
    redis.call('zrem', leases, late)
    if who then
      gone(who)
    end
  end
end

redis.call('pexpire', places, ttl)
redis.call('pexpire', leases, ttl)
if has('l') then
  return redis.call('hgetall', places)
end
return redis.call('hlen', places)
