-- Prolongs the leases of a worker in channels where it has clients, and finds out whether Redis knows of them what it should.
--
-- KEYS  of each channel: presence, workers: see presence-change.lua
-- ARGV  id of the worker
--       length of a lease in ms
--       then of each channel: the revision that Redis should have
--
-- Returns three lists of channels, counted from 0: those in which there is nothing of this worker although there should be, those with
-- another revision, those with other workers whose lease has run out.
local worker, lease = ARGV[1], tonumber(ARGV[2])
local mark = 'w' .. worker
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local expiry = string.format('%.0f', now + lease)
local past = string.format('%.0f', now)
local lost, other, late = {}, {}, {}
for i = 1, #ARGV - 2 do
  local presence, workers = KEYS[2 * i - 1], KEYS[2 * i]
  local revision = redis.call('hget', presence, mark)
  if revision then
    redis.call('zadd', workers, expiry, worker)
    redis.call('pexpire', presence, lease)
    redis.call('pexpire', workers, lease)
    if revision ~= ARGV[i + 2] then
      other[#other + 1] = i - 1
    end
  elseif ARGV[i + 2] ~= '0' then
    lost[#lost + 1] = i - 1
  end
  if #redis.call('zrangebyscore', workers, '-inf', past, 'limit', 0, 1) > 0 then
    late[#late + 1] = i - 1
  end
end
return { lost, other, late }
