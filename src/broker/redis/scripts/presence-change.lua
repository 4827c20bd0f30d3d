-- Changes what one worker has in the presence of a channel. The revision says which changes have been made: Redis does
-- only what follows on the one that it has, so a change that came too late or after a loss of data does nothing.
--
-- KEYS  presence: hash, 'c' .. client -> '<worker> <leave 0|1> <bytes of user> <user><info>', 'w' .. worker -> its revision
--       workers: sorted set, ids of workers by the time in ms at which their leases run out. What a worker has in
--         the channel counts while its lease runs
-- ARGV  id of the worker
--       length of its lease in ms, 0: goes on as it is
--       revision that Redis should have, 0: nothing of this worker is there
--       revision from now on, 0: nothing of this worker is left
--       how many clients go, then their ids
--       then of each that comes or changes: id, value
--
-- Returns 1, or 0 if it has done nothing.
local presence, workers = KEYS[1], KEYS[2]
local worker, lease, before, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local mark = 'w' .. worker
if (redis.call('hget', presence, mark) or '0') ~= before then
  return 0
end
local first = 6 + tonumber(ARGV[5])
for i = 6, first - 1 do
  redis.call('hdel', presence, 'c' .. ARGV[i])
end
if after == '0' then
  redis.call('hdel', presence, mark)
  redis.call('zrem', workers, worker)
  return 1
end
for i = first, #ARGV, 2 do
  redis.call('hset', presence, 'c' .. ARGV[i], ARGV[i + 1])
end
redis.call('hset', presence, mark, after)
if lease > 0 then
  local clock = redis.call('time')
  local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
  redis.call('zadd', workers, string.format('%.0f', now + lease), worker)
  redis.call('pexpire', presence, lease)
  redis.call('pexpire', workers, lease)
end
return 1
