-- Log of orders to all workers: server API calls on connections. Keys:
--
-- head  "<epoch> <id>": epoch of the log, id of its newest order ("0-0": none)
-- log   stream: entry `<ms>-<n>` with the fields
--         e  epoch   p  id of the previous order   t  applies to connections made before this time (ms)
--         l  1 if `t` is earlier than the order   f  issuing worker   n  number of its survey, 0 = no response expected
--         b  JSON: operation, parameters   s  bytes of all orders so far

local function number(text) return tonumber(text) end

local function field(entry, name)
  for i = 1, #entry[2], 2 do
    if entry[2][i] == name then return entry[2][i + 1] end
  end
end

--- orderAppend
-- KEYS  head, log
-- ARGV  epoch for a new log, worker, survey, JSON, time (ms; '': now), tolerance (ms): an earlier time within it means
--       now, lifetime (ms), entries, bytes of the log, topic of all workers, publish command
-- Returns its id, time, and 1 if the time is earlier than the order.
local head, log = KEYS[1], KEYS[2]
local fresh, worker, survey, body, at, tolerance, life, entries, bytes, topic, publish = unpack(ARGV)
local now = now()
local epoch, before = string.match(redis.call('get', head) or fresh .. ' 0-0', '^(%S+) (%S+)$')
local ms, n = string.match(before, '^(%d+)-(%d+)$')
local id
if now > number(ms) then id = digits(now) .. '-0' else id = ms .. '-' .. digits(number(n) + 1) end
local time, late = at, '1'
if at == '' or now - number(at) <= number(tolerance) then time, late = digits(now), '0' end
local last = redis.call('xrevrange', log, '+', '-', 'count', 1)[1]
local total = (last and number(field(last, 's')) or 0) + #body
redis.call('xadd', log, id, 'e', epoch, 'p', before, 't', time, 'l', late, 'f', worker, 'n', survey, 'b', body,
  's', digits(total))
redis.call('set', head, epoch .. ' ' .. id, 'px', life)
redis.call('pexpire', log, life)
redis.call('xtrim', log, 'minid', digits(now - number(life)))
redis.call('xtrim', log, 'maxlen', entries)
-- Keeps at least the newest order.
local from = '-'
while true do
  local oldest = redis.call('xrange', log, from, '+', 'count', from == '-' and 1 or 100)
  local keep
  for _, entry in ipairs(oldest) do
    if total - number(field(entry, 's')) + #field(entry, 'b') <= number(bytes) or entry[1] == id then
      keep = entry[1]
      break
    end
    from = '(' .. entry[1]
  end
  if keep then
    if from ~= '-' then redis.call('xtrim', log, 'minid', keep) end
    break
  end
end
redis.call(publish, topic, '>' .. table.concat({epoch, before, id, time, late, worker, survey}, ' ') .. '\n' .. body)
return {id, time, late}

--- orderRead
-- KEYS  head, log
-- ARGV  id after which to read, maximum number of orders
-- Returns the head, '' if missing, and for each order: epoch, previous id, id, time, 1 if late, worker,
-- survey, JSON
local reply = {redis.call('get', KEYS[1]) or ''}
for _, entry in ipairs(redis.call('xrange', KEYS[2], '(' .. ARGV[1], '+', 'count', ARGV[2])) do
  local order = {}
  for i = 1, #entry[2], 2 do order[entry[2][i]] = entry[2][i + 1] end
  reply[#reply + 1] = {order.e, order.p, entry[1], order.t, order.l, order.f, order.n, order.b}
end
return reply
