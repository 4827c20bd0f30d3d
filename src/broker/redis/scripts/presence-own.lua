-- What one worker has in the presence of a channel, to be compared with what it should have.
--
-- KEYS  presence: see presence-change.lua
-- ARGV  id of the worker
--
-- Returns its revision, then of each of its clients: id, value.
local worker = ARGV[1]
local mine = worker .. ' '
local all = redis.call('hgetall', KEYS[1])
local found = { '0' }
for i = 1, #all, 2 do
  local field, value = all[i], all[i + 1]
  if field == 'w' .. worker then
    found[1] = value
  elseif string.sub(value, 1, #mine) == mine then
    found[#found + 1] = string.sub(field, 2)
    found[#found + 1] = value
  end
end
return found
