-- KEYS  presence, workers: see presence-change.lua
--
-- Returns how many clients there are, and how many users they are of.
local clock = redis.call('time')
local now = string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000))
local alive = {}
for _, worker in ipairs(redis.call('zrangebyscore', KEYS[2], '(' .. now, '+inf')) do
  alive[worker] = true
end
local clients, users, seen = 0, 0, {}
for _, value in ipairs(redis.call('hvals', KEYS[1])) do
  -- A revision has no spaces.
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
