-- KEYS  presence, workers: see presence-change.lua
--
-- Returns the ids of the workers whose leases run, and all of the hash. Whoever asked takes it apart: that costs Redis less.
local clock = redis.call('time')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
return { redis.call('zrangebyscore', KEYS[2], '(' .. now, '+inf'), redis.call('hgetall', KEYS[1]) }
