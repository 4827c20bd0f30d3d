-- Status of users: hashes with active and online (unix s), and state.

--- statusUpdate
-- KEYS  users
-- ARGV  expiry (ms), whether active, online and state are set, state ('': none)
local ttl, state = ARGV[1], ARGV[5]
local time = digits(math.floor(now() / 1000))
for _, key in ipairs(KEYS) do
  if ARGV[2] == '1' then
    redis.call('hset', key, 'active', time)
  end
  if ARGV[3] == '1' then
    redis.call('hset', key, 'online', time)
  end
  if ARGV[4] == '1' then
    if state == '' then
      redis.call('hdel', key, 'state')
    else
      redis.call('hset', key, 'state', state)
    end
  end
  redis.call('pexpire', key, ttl)
end
return 1

--- statusRead
-- KEYS  users
-- Returns active, online and state of each user; 0 and '' if unknown.
local all = {}
for _, key in ipairs(KEYS) do
  local status = redis.call('hmget', key, 'active', 'online', 'state')
  all[#all + 1] = status[1] or '0'
  all[#all + 1] = status[2] or '0'
  all[#all + 1] = status[3] or ''
end
return all
