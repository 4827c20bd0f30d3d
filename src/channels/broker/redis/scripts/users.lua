-- Connections of users. Keys:
--
-- user        hash: id of a worker -> number of the user's connections to it
-- workers     sorted set: id of a worker -> expiry of its lease (ms); its counts are then invalid
-- connection  number of the worker's newest connection to Redis: commands of older ones are ignored

--- userClaim
-- KEYS  user, workers, connection
-- ARGV  worker, number of its connection to Redis, its count without this one, limit, expiry of the user (ms)
-- Returns 1 if the connection was counted, else 0.
local user, workers = KEYS[1], KEYS[2]
local worker, held, limit, ttl = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if tonumber(redis.call('get', KEYS[3]) or 0) > tonumber(ARGV[2]) then
  return 0
end
local time = now()
local total = held
local counts = redis.call('hgetall', user)
for i = 1, #counts, 2 do
  if counts[i] ~= worker then
    local expiry = redis.call('zscore', workers, counts[i])
    if expiry and tonumber(expiry) > time then
      total = total + counts[i + 1]
    else
      redis.call('hdel', user, counts[i])
    end
  end
end
local admitted = total < limit and 1 or 0
if held + admitted > 0 then
  redis.call('hset', user, worker, digits(held + admitted))
  redis.call('pexpire', user, ttl)
else
  redis.call('hdel', user, worker)
end
return admitted

--- userWrite
-- Extends the lease of a worker and writes its counts of some users.
-- KEYS  workers, connection, then users
-- ARGV  worker, number of its connection to Redis, its lease (ms), expiry of a user (ms), then a count per user
-- Returns 1 if the lease had expired or was lost, possibly with the counts; else 0.
local workers, connection = KEYS[1], KEYS[2]
local worker, number, lease, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
if tonumber(redis.call('get', connection) or 0) > tonumber(number) then
  return 0
end
redis.call('set', connection, number, 'px', lease)
local time = now()
local before = redis.call('zscore', workers, worker)
redis.call('zremrangebyscore', workers, '-inf', digits(time))
redis.call('zadd', workers, digits(time + lease), worker)
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
if before and tonumber(before) > time then
  return 0
end
return 1
