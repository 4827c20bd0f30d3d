-- Takes a worker that has ended out of the registry, and tells all others.
--
-- KEYS  places, leases: see registry-join.lua
-- ARGV  place
--       id of the worker
--       its topic: if anybody listens there, it lives. '' = it says so itself
--       topic of all workers
--       the command that publishes
--
-- Returns 1 if it has been taken out, now or before; 0 if it lives.
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
