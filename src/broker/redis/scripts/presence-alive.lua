-- KEYS  workers: see presence-change.lua
--
-- Returns the ids of the workers whose leases run.
local clock = redis.call('time')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
return redis.call('zrangebyscore', KEYS[1], '(' .. now, '+inf')
