-- Presence of a channel; presence-changes.lua changes it. Keys:
--
-- presence  hash: 'c' .. client -> '<worker> <leave 0|1> <bytes of user> <user><info>', 'w' .. worker -> its revision
-- workers   sorted set: id of a worker -> expiry of its lease (ms); its clients are present until then
--
-- Both expire with the last lease. Those of tracked channels do not: their clients leave by a sweep, see states.lua.

local function extend(presence, workers, tracked, lease)
  if tracked then
    redis.call('persist', presence)
    redis.call('persist', workers)
  else
    redis.call('pexpire', presence, lease)
    redis.call('pexpire', workers, lease)
  end
end

--- presenceBeat
-- Extends the leases of a worker in channels where it has clients, and compares the revisions.
-- KEYS  for each channel: presence, workers
-- ARGV  worker, its lease (ms), 1 if the channels are tracked, then the expected revision of each channel
-- Returns three lists of channel indexes from 0: the worker's entries are missing; another revision; other workers
-- with an expired lease.
local worker, lease = ARGV[1], tonumber(ARGV[2])
local field = 'w' .. worker
local time = now()
local expiry, past = digits(time + lease), digits(time)
local lost, other, late = {}, {}, {}
local tracked = ARGV[3] == '1'
for i = 1, #ARGV - 3 do
  local presence, workers = KEYS[2 * i - 1], KEYS[2 * i]
  local revision = redis.call('hget', presence, field)
  if revision then
    redis.call('zadd', workers, expiry, worker)
    extend(presence, workers, tracked, lease)
    if revision ~= ARGV[i + 3] then
      other[#other + 1] = i - 1
    end
  elseif ARGV[i + 3] ~= '0' then
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
