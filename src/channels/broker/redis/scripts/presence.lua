-- Presence of a channel. Keys:
--
-- presence  hash: 'c' .. client -> '<worker> <leave 0|1> <bytes of user> <user><info>', 'w' .. worker -> its revision
-- workers   sorted set: id of a worker -> expiry of its lease (ms); its clients are present until then

--- presenceChange
-- Adds and removes clients of one worker. Ignores changes that are late or follow a loss of data.
-- KEYS  presence, workers
-- ARGV  worker, its lease (ms; 0: unchanged), expected revision and new one (0: no entries of this worker),
--       number of clients to remove, their ids, then id and value of each client to add or change
-- Returns 1 if the change was applied, 0 if Redis has another revision.
local presence, workers = KEYS[1], KEYS[2]
local worker, lease, before, after = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local field = 'w' .. worker
if (redis.call('hget', presence, field) or '0') ~= before then
  return 0
end
local first = 6 + tonumber(ARGV[5])
for i = 6, first - 1 do
  redis.call('hdel', presence, 'c' .. ARGV[i])
end
if after == '0' then
  redis.call('hdel', presence, field)
  redis.call('zrem', workers, worker)
  return 1
end
for i = first, #ARGV, 2 do
  redis.call('hset', presence, 'c' .. ARGV[i], ARGV[i + 1])
end
redis.call('hset', presence, field, after)
if lease > 0 then
  redis.call('zadd', workers, digits(now() + lease), worker)
  redis.call('pexpire', presence, lease)
  redis.call('pexpire', workers, lease)
end
return 1

--- presenceBeat
-- Extends the leases of a worker in channels where it has clients, and compares the revisions.
-- KEYS  for each channel: presence, workers
-- ARGV  worker, its lease (ms), then the expected revision of each channel
-- Returns three lists of channel indexes from 0: the worker's entries are missing; another revision; other workers
-- with an expired lease.
local worker, lease = ARGV[1], tonumber(ARGV[2])
local field = 'w' .. worker
local time = now()
local expiry, past = digits(time + lease), digits(time)
local lost, other, late = {}, {}, {}
for i = 1, #ARGV - 2 do
  local presence, workers = KEYS[2 * i - 1], KEYS[2 * i]
  local revision = redis.call('hget', presence, field)
  if revision then
    redis.call('zadd', workers, expiry, worker)
    redis.call('pexpire', presence, lease)
    redis.call('pexpire', workers, lease)
    if revision ~= ARGV[i + 2] then
      other[#other + 1] = i - 1
    end
  elseif ARGV[i + 2] ~= '0' then
    lost[#lost + 1] = i - 1
  end
  if #redis.call('zrangebyscore', workers, '-inf', past, 'limit', 0, 1) > 0 then
    late[#late + 1] = i - 1
  end
end
return { lost, other, late }

--- presenceOwn
-- KEYS  presence
-- ARGV  worker
-- Returns its revision, then for each of its clients: id, value.
local worker = ARGV[1]
local mine = worker .. ' '
local all = redis.call('hgetall', KEYS[1])
local found = { '0' }
for i = 1, #all, 2 do
  local field, value = all[i], all[i + 1]
  if field == 'w' .. worker then
    found[1] = value
  elseif string.sub(value, 1, #mine) == mine then
    found[#found + 1] = string.sub(field, 2)
    found[#found + 1] = value
  end
end
return found

--- presenceSweep
-- Removes the entries of workers with expired leases, and publishes the leaves of their clients.
-- KEYS  presence, workers, topic of the channel
-- ARGV  publish command
-- Returns the number of removed clients.
local presence, workers, topic = KEYS[1], KEYS[2], KEYS[3]
local past = digits(now())
local late, count = {}, 0
for _, worker in ipairs(redis.call('zrangebyscore', workers, '-inf', past)) do
  late[worker] = true
  count = count + 1
  redis.call('hdel', presence, 'w' .. worker)
end
if count == 0 then
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
return removed

--- presenceAlive
-- KEYS  workers
-- Returns the ids of the workers with a valid lease.
return redis.call('zrangebyscore', KEYS[1], '(' .. digits(now()), '+inf')

--- presenceStats
-- KEYS  presence, workers
-- Returns the numbers of clients and of their users.
local alive = {}
for _, worker in ipairs(redis.call('zrangebyscore', KEYS[2], '(' .. digits(now()), '+inf')) do
  alive[worker] = true
end
local clients, users, seen = 0, 0, {}
for _, value in ipairs(redis.call('hvals', KEYS[1])) do
  -- Revisions have no spaces.
  local worker, length, start = string.match(value, '^(%w+) %d (%d+) ()')
  if worker and alive[worker] then
    clients = clients + 1
    local user = string.sub(value, start, start + length - 1)
    if not seen[user] then
      seen[user] = true
      users = users + 1
    end
  end
end
return { clients, users }
