-- Registry of workers. Keys:
--
-- places  hash: place (node and index of a worker) -> id of the worker
-- leases  sorted set: place -> expiry of its lease (ms)

--- registryJoin
-- Takes a place or extends its lease, and removes workers with expired leases.
-- KEYS  places, leases, head of the orders (orders.lua)
-- ARGV  place, worker, lease (ms), letters, message that announces the worker, topic of all workers, publish command,
--       initial head, its lifetime (ms)
--         f  first time: replaces the worker in that place     l  list all places
--         a  announce the worker even if it had the place      p  remove expired workers
-- Returns the head of the orders, the time (ms), and 0 if another worker has the place, else the number of places;
-- with l the list: place, id, place, id ...
local places, leases, orders = KEYS[1], KEYS[2], KEYS[3]
local place, id, ttl, flags, here, topic, publish, fresh, life = unpack(ARGV)
local now = now()

local function has(flag)
  return string.find(flags, flag, 1, true) ~= nil
end

local function announceGone(worker)
  redis.call(publish, topic, '-' .. worker .. '\n')
end

local head = redis.call('get', orders)
if head then
  redis.call('pexpire', orders, life)
else
  head = fresh
  redis.call('set', orders, head, 'px', life)
end

local before = redis.call('hget', places, place)
if before and before ~= id then
  local lease = redis.call('zscore', leases, place)
  if not has('f') and lease and tonumber(lease) > now then
    return {head, now, 0}
  end
  announceGone(before)
end
redis.call('hset', places, place, id)
redis.call('zadd', leases, digits(now + ttl), place)
if before ~= id or has('a') then
  redis.call(publish, topic, here)
end

if has('p') then
  for _, late in ipairs(redis.call('zrangebyscore', leases, '-inf', digits(now), 'limit', 0, 100)) do
    local worker = redis.call('hget', places, late)
    redis.call('hdel', places, late)
    redis.call('zrem', leases, late)
    if worker then
      announceGone(worker)
    end
  end
end

redis.call('pexpire', places, ttl)
redis.call('pexpire', leases, ttl)
if has('l') then
  return {head, now, redis.call('hgetall', places)}
end
return {head, now, redis.call('hlen', places)}

--- registryRemove
-- KEYS  places, leases
-- ARGV  place, worker, its topic (a subscriber means it is alive; '': it leaves itself), topic of all workers,
--       publish command
-- Returns 1 if the worker was removed, now or before; 0 if alive.
local places, leases = KEYS[1], KEYS[2]
local place, id, own, topic, publish = unpack(ARGV)
if redis.call('hget', places, place) ~= id then
  return 1
end
if own ~= '' and redis.call(publish, own, '') > 0 then
  return 0
end
redis.call('hdel', places, place)
redis.call('zrem', leases, place)
redis.call(publish, topic, '-' .. id .. '\n')
return 1
