-- Changes of presence.lua, and of the states of tracked channels (states.lua).

--- presenceChange
-- Adds and removes clients of one worker. Ignores changes that are late or follow a loss of data.
-- KEYS  presence, workers; of a tracked channel also those of states.lua
-- ARGV  worker, its lease (ms; 0: unchanged), expected revision and new one (0: no entries of this worker),
--       number of clients to remove, their ids, then id and value of each client to add or change; of a tracked channel
--       also those of `settle`
-- Returns 0 if Redis has another revision; otherwise the change was applied: 1, or the result of `settle`.
local presence, workers = KEYS[1], KEYS[2]
local worker, lease, before, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local field = 'w' .. worker
if (redis.call('hget', presence, field) or '0') ~= before then
  return 0
end
local first = 6 + tonumber(ARGV[5])
local tracked = #KEYS > 2
local last = tracked and #ARGV - 4 or #ARGV
local changes = 0
for i = 6, first - 1 do
  changes = changes + redis.call('hdel', presence, 'c' .. ARGV[i])
end
if after == '0' then
  redis.call('hdel', presence, field)
  redis.call('zrem', workers, worker)
  if tracked and redis.call('zcount', workers, '(' .. digits(now()), '+inf') == 0 then
    -- All others are dead: the last client leaves now, not with their leases.
    redis.call('del', presence, workers)
  end
  return tracked and settle(presence, workers, 3, changes > 0) or 1
end
for i = first, last, 2 do
  changes = changes + redis.call('hset', presence, 'c' .. ARGV[i], ARGV[i + 1])
end
redis.call('hset', presence, field, after)
if lease > 0 then
  redis.call('zadd', workers, digits(now() + lease), worker)
  extend(presence, workers, tracked, lease)
end
return tracked and settle(presence, workers, 3, changes > 0) or 1

--- presenceSweep
-- Removes the entries of workers with expired leases, and publishes the leaves of their clients.
-- KEYS  presence, workers, topic of the channel; of a tracked channel also those of states.lua
-- ARGV  publish command; of a tracked channel also those of `settle`
-- Returns the number of removed clients.
local presence, workers, topic = KEYS[1], KEYS[2], KEYS[3]
local past = digits(now())
local late = {}
local expired = redis.call('zrangebyscore', workers, '-inf', past, 'withscores')
for i = 1, #expired, 2 do
  late[expired[i]] = true
  redis.call('hdel', presence, 'w' .. expired[i])
end
local tracked = #KEYS > 3
if #expired == 0 then
  if tracked then
    settle(presence, workers, 4, false, true)
  end
  return 0
end
redis.call('zremrangebyscore', workers, '-inf', past)
local removed = 0
local all = redis.call('hgetall', presence)
for i = 1, #all, 2 do
  local worker, leave, length, start = string.match(all[i + 1], '^(%w+) (%d) (%d+) ()')
  if worker and late[worker] then
    removed = removed + 1
    redis.call('hdel', presence, all[i])
    if leave == '1' then
      redis.call(ARGV[1], topic, 'l' .. string.sub(all[i + 1], start + length))
    end
  end
end
if tracked then
  settle(presence, workers, 4, removed > 0, true, expired[#expired])
end
return removed
