-- Takes out of the presence of a channel what workers have left behind whose leases have run out, and tells the subscribers.
--
-- KEYS  presence, workers: see presence-change.lua
--       topic of the channel
-- ARGV  the command that publishes
--
-- Returns how many clients it has taken out.
local presence, workers, topic = KEYS[1], KEYS[2], KEYS[3]
local clock = redis.call('time')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
local late, count = {}, 0
for _, worker in ipairs(redis.call('zrangebyscore', workers, '-inf', now)) do
  late[worker] = true
  count = count + 1
  redis.call('hdel', presence, 'w' .. worker)
end
if count == 0 then
  return 0
end
redis.call('zremrangebyscore', workers, '-inf', now)
local gone = 0
local all = redis.call('hgetall', presence)
for i = 1, #all, 2 do
  local worker, leave, length, start = string.match(all[i + 1], '^(%w+) (%d) (%d+) ()')
  if worker and late[worker] then
    gone = gone + 1
    redis.call('hdel', presence, all[i])
    if leave == '1' then
      redis.call(ARGV[1], topic, 'l' .. string.sub(all[i + 1], start + length))
    end
  end
end
return gone
