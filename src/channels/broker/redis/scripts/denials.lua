-- Blocked users, revoked and invalid tokens. Members of sorted sets are the kind, '0', '1' or '2', and the key. Keys:
--
-- seq     number of the last change: microseconds of the clock, so numbers that a failover lost are not used again
-- log     sorted set: member -> number of its last change
-- expiry  sorted set: member -> unix s after which it may be removed
-- 0, 1, 2  hash of a kind: key -> `<number> <expire at, unix s, 0 = never> <issued before, unix s>`
--
-- A member of the log that is in no hash was removed; it stays there for a week, so that all nodes read it.

local REMOVED = 7 * 24 * 3600

local function sweep(now, limit)
  local due = redis.call('zrangebyscore', KEYS[3], '-inf', now, 'limit', 0, limit)
  for _, member in ipairs(due) do
    redis.call('zrem', KEYS[3], member)
    redis.call('zrem', KEYS[2], member)
    redis.call('hdel', KEYS[4 + tonumber(string.sub(member, 1, 1))], string.sub(member, 2))
  end
  return #due
end

--- denialWrite
-- KEYS  seq, log, expiry, 0, 1, 2
-- ARGV  kind, key, expire at (unix s, 0 = never), issued before (unix s), 1 to remove it, maximum entries of the kind
-- Returns the number of the change, expire at and issued before, which are the greater ones of an invalidation; or
-- nothing: there are too many entries.
local kind, key = ARGV[1], ARGV[2]
local expire_at, issued_before, removed, limit = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5] == '1', tonumber(ARGV[6])
local member, entries = kind .. key, KEYS[4 + tonumber(kind)]
local time = math.floor(now() / 1000)
sweep(time, 100)
local former = redis.call('hget', entries, key)
if not removed and not former then
  while redis.call('hlen', entries) >= limit do
    if sweep(time, 1000) == 0 then return {} end
  end
end
if former and kind == '2' then
  local former_expiry, before = string.match(former, ' (%d+) ([%d.]+)$')
  former_expiry = tonumber(former_expiry)
  if former_expiry == 0 or former_expiry > time then
    if former_expiry == 0 or expire_at == 0 then expire_at = 0 else expire_at = math.max(expire_at, former_expiry) end
    issued_before = math.max(issued_before, tonumber(before))
  end
end
local clock = redis.call('time')
local seq = math.max(clock[1] * 1e6 + clock[2], tonumber(redis.call('get', KEYS[1]) or '0') + 1)
redis.call('set', KEYS[1], digits(seq))
redis.call('zadd', KEYS[2], digits(seq), member)
if removed then
  redis.call('hdel', entries, key)
  redis.call('zadd', KEYS[3], time + REMOVED, member)
else
  redis.call('hset', entries, key, digits(seq) .. ' ' .. digits(expire_at) .. ' ' .. digits(issued_before))
  if expire_at == 0 then redis.call('zrem', KEYS[3], member) else redis.call('zadd', KEYS[3], expire_at, member) end
end
return {digits(seq), digits(expire_at), digits(issued_before)}

--- denialRead
-- KEYS  seq, log, expiry, 0, 1, 2
-- ARGV  number of a change, maximum number of changes
-- Returns for each later one, in order: member, its number, value ('': removed)
local reply = {}
local later = redis.call('zrangebyscore', KEYS[2], '(' .. ARGV[1], '+inf', 'withscores', 'limit', 0, ARGV[2])
for i = 1, #later, 2 do
  local member = later[i]
  local entries = KEYS[4 + tonumber(string.sub(member, 1, 1))]
  reply[#reply + 1] = {member, later[i + 1], redis.call('hget', entries, string.sub(member, 2)) or ''}
end
return reply
