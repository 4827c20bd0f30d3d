-- Counts one more connection of a user, unless there are enough.
--
-- KEYS  user: hash, id of a worker -> how many connections of the user it has
--       workers: sorted set, ids of workers by the time in ms at which their leases run out; the others' counts are void
--       line: number of the last connection that the worker has made
-- ARGV  id of the worker
--       number of its connection: what comes late on one that it has given up does nothing
--       how many it has without this one
--       limit
--       ms until the user is forgotten
--
-- Returns 1 if it counts, else 0.
local user, workers = KEYS[1], KEYS[2]
local worker, held, limit, ttl = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
if tonumber(redis.call('get', KEYS[3]) or 0) > tonumber(ARGV[2]) then
  return 0
end
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local total = held
local counts = redis.call('hgetall', user)
for i = 1, #counts, 2 do
  if counts[i] ~= worker then
    local expiry = redis.call('zscore', workers, counts[i])
    if expiry and tonumber(expiry) > now then
      total = total + counts[i + 1]
    else
      redis.call('hdel', user, counts[i])
    end
  end
end
local admitted = 0
if total < limit then
  admitted = 1
end
if held + admitted > 0 then
  redis.call('hset', user, worker, string.format('%.0f', held + admitted))
  redis.call('pexpire', user, ttl)
else
  redis.call('hdel', user, worker)
end
return admitted
