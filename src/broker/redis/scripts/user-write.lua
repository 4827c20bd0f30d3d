-- Prolongs the lease of a worker, and writes down how many connections of some users it has.
--
-- KEYS  workers, line: see user-claim.lua
--       then users
-- ARGV  id of the worker
--       number of its connection
--       length of its lease in ms
--       ms until a user is forgotten
--       then of each user: how many connections
--
-- Returns 1 if the lease had run out or was lost: then its counts may be lost as well. Else 0.
local workers, line = KEYS[1], KEYS[2]
local worker, number, lease, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if tonumber(redis.call('get', line) or 0) > tonumber(number) then
  return 0
end
redis.call('set', line, number, 'px', lease)
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local before = redis.call('zscore', workers, worker)
redis.call('zremrangebyscore', workers, '-inf', string.format('%.0f', now))
redis.call('zadd', workers, string.format('%.0f', now + lease), worker)
redis.call('pexpire', workers, lease)
for i = 3, #KEYS do
  local count = ARGV[i + 2]
  if count == '0' then
    redis.call('hdel', KEYS[i], worker)
  else
    redis.call('hset', KEYS[i], worker, count)
    redis.call('pexpire', KEYS[i], ttl)
  end
end
if before and tonumber(before) > now then
  return 0
end
return 1
