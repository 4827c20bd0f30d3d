-- Token buckets of users.

--- rateTake
-- KEYS  hash of a user: name of a limit -> time (ms), then the tokens of each of its buckets
-- ARGV  name of the limit, then the capacity of each bucket and the time to fill it (ms)
-- Takes a token of each bucket and returns 1, or returns 0: a bucket is empty. The hash expires when all are full.
local key, name = KEYS[1], ARGV[1]
local time = now()
local last = {}
for value in string.gmatch(redis.call('hget', key, name) or '', '%S+') do
  last[#last + 1] = tonumber(value)
end
local elapsed = math.max(0, time - (last[1] or time))
local state = { digits(time) }
local expiry = 0
for i = 2, #ARGV, 2 do
  local capacity, interval = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local tokens = math.min(capacity, (last[i / 2 + 1] or capacity) + elapsed * capacity / interval) - 1
  if tokens < -1e-6 then
    return 0
  end
  state[#state + 1] = string.format('%.6f', math.max(0, tokens))
  expiry = math.max(expiry, math.ceil((capacity - tokens) * interval / capacity))
end
redis.call('hset', key, name, table.concat(state, ' '))
if redis.call('pttl', key) < expiry then
  redis.call('pexpire', key, expiry)
end
return 1
