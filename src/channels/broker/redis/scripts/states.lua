-- Tracked channels of a partition. Keys:
--
-- leases   sorted set: channel with clients -> when to check the leases of its workers (ms)
-- leaving  sorted set: channel whose last client left -> when (ms)
-- events   stream for the backend: channel, type, time (ms)
-- due      sorted set: channel -> time of its next count (ms)
-- counts   set of channels whose number of clients has changed since their last count
-- leader   string: id of the worker that reports and sweeps
--
-- A channel in `leases` is OCCUPIED, one in `leaving` is LEAVING, another one is EMPTY.

-- Moves a channel to the state of its number of clients. `first`: index of its keys; `changed`: so has the number;
-- `sweeps`: after a check of the leases; `left`: when the last client left (ms), default: now.
-- KEYS  from `first` on: leases, leaving, events, due, counts, leader
-- ARGV  the last ones: channel, 1 if it has events, interval of its counts (ms; 0: none), maximum number of events
-- Returns 1; the leader, if it has something to do at once; '-' if there was no room for an event.
local function settle(presence, workers, first, changed, sweeps, left)
  local leases, leaving, events = KEYS[first], KEYS[first + 1], KEYS[first + 2]
  local channel, reports = ARGV[#ARGV - 3], ARGV[#ARGV - 2] == '1'
  local interval, most = ARGV[#ARGV - 1], tonumber(ARGV[#ARGV])
  local time = now()
  local wakes, full = false, false
  local known = redis.call('zscore', leases, channel)
  if redis.call('hlen', presence) > redis.call('zcard', workers) then
    local back = not known and redis.call('zrem', leaving, channel) == 1
    local adds = not known
    if reports and not known and not back then
      full = redis.call('xlen', events) >= most
      adds = not full
      if adds then
        redis.call('xadd', events, '*', 'c', channel, 't', 'occupied', 'm', digits(time))
        wakes = true
      end
    end
    if adds or (known and sweeps) then
      local lease = redis.call('zrange', workers, 0, 0, 'withscores')[2] or digits(time)
      redis.call('zadd', leases, lease, channel)
    end
  elseif known then
    redis.call('zrem', leases, channel)
    if reports then
      redis.call('zadd', leaving, left or digits(time), channel)
    end
  end
  if interval ~= '0' and changed then
    redis.call('sadd', KEYS[first + 4], channel)
    if redis.call('zadd', KEYS[first + 3], 'nx', digits(time), channel) == 1 then
      wakes = true
    end
  end
  if full then
    return '-'
  end
  return wakes and redis.call('get', KEYS[first + 5]) or 1
end

--- stateTick
-- Continues to lead a partition; adds the events of channels that are vacated.
-- KEYS  leases, leaving, events, due, counts, leader
-- ARGV  worker, its lease as leader (ms), delay in LEAVING (ms), maximum number of events, maximum length of the lists,
--       number of events to return
-- Returns the rest of another leader's lease (ms); or four values: channels whose leases are to be checked; events: id,
-- channel, type, time ...; channels whose count is due; time to the next change (ms; -1: none).
local leases, leaving, events, due, _, leader = unpack(KEYS)
local worker, lease, delay, most, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local other = redis.call('get', leader)
if other and other ~= worker then
  return math.max(0, redis.call('pttl', leader))
end
redis.call('set', leader, worker, 'px', lease)
local time = now()
local past = digits(time)
local room = most - redis.call('xlen', events)
local left = redis.call('zrangebyscore', leaving, '-inf', digits(time - delay), 'withscores', 'limit', 0, limit)
for i = 1, math.min(#left, 2 * math.max(0, room)), 2 do
  redis.call('zrem', leaving, left[i])
  redis.call('xadd', events, '*', 'c', left[i], 't', 'vacated', 'm', left[i + 1])
end
local found = {}
if ARGV[6] ~= '0' then
  for _, entry in ipairs(redis.call('xrange', events, '-', '+', 'count', ARGV[6])) do
    found[#found + 1] = entry[1]
    for i = 2, 6, 2 do
      found[#found + 1] = entry[2][i]
    end
  end
end
local after = -1
local function consider(at)
  if at then
    local wait = math.max(0, tonumber(at) - time)
    if after < 0 or wait < after then
      after = wait
    end
  end
end
local first = redis.call('zrange', leaving, 0, 0, 'withscores')[2]
consider(first and tonumber(first) + delay)
consider(redis.call('zrangebyscore', due, '(' .. past, '+inf', 'withscores', 'limit', 0, 1)[2])
return {
  redis.call('zrangebyscore', leases, '-inf', past, 'limit', 0, limit),
  found,
  redis.call('zrangebyscore', due, '-inf', past, 'limit', 0, limit),
  after,
}

--- stateCount
-- Takes the count of a channel, if it has changed, and schedules the next one.
-- KEYS  due, counts, presence, workers
-- ARGV  channel, interval (ms; 0: none)
-- Returns the number of clients; -1: unchanged.
local due, counts, presence, workers = unpack(KEYS)
local channel, interval = ARGV[1], tonumber(ARGV[2])
if redis.call('srem', counts, channel) == 0 or interval == 0 then
  redis.call('zrem', due, channel)
  return -1
end
redis.call('zadd', due, digits(now() + interval), channel)
return redis.call('hlen', presence) - redis.call('zcard', workers)
