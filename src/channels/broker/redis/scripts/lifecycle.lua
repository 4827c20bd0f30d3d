-- The lifecycle log in Redis. Keys:
--
-- stream    stream: field `event`, a record as JSON
-- batch     string: number of the last batch that a node has appended
-- nodes     sorted set: id of a node -> expiry of its lease (ms)
-- journal   hash, one for each node: client id -> what is known of the client, as JSON
-- taker     string, one for each dead node: id of the node that takes its journal over

--- lifecycleAppend
-- Appends a batch once, however often it is sent.
-- KEYS  stream, batch
-- ARGV  number of the batch, time that the number is kept (ms), maximum length (0: none), record ...
-- Returns 1, or 0 if the batch was there.
local stream, batch = KEYS[1], KEYS[2]
local number, ttl, limit = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local last = tonumber(redis.call('get', batch) or '0')
if number <= last then
  return 0
end
for i = 4, #ARGV do
  if limit == '0' then
    redis.call('xadd', stream, '*', 'event', ARGV[i])
  else
    redis.call('xadd', stream, 'maxlen', '~', limit, '*', 'event', ARGV[i])
  end
end
redis.call('set', batch, number, 'px', ttl)
return 1

--- lifecycleChange
-- Changes the journal of a node.
-- KEYS  journal
-- ARGV  client, what is known of it ('': it has gone) ...
local journal = KEYS[1]
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('hdel', journal, ARGV[i])
  else
    redis.call('hset', journal, ARGV[i], ARGV[i + 1])
  end
end
return 1

--- lifecycleBeat
-- Extends the lease of a node.
-- KEYS  nodes
-- ARGV  node, lease (ms)
-- Returns 1 if the lease had not expired, else 0; then the nodes whose leases have expired, 16 at most.
local nodes = KEYS[1]
local node, lease = unpack(ARGV)
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local before = redis.call('zscore', nodes, node)
redis.call('zadd', nodes, string.format('%.0f', now + lease), node)
local reply = redis.call('zrangebyscore', nodes, '-inf', string.format('%.0f', now), 'limit', 0, 16)
table.insert(reply, 1, before and tonumber(before) > now and '1' or '0')
return reply

--- lifecycleTake
-- Reads some of the journal of a dead node, for one taker at a time.
-- KEYS  nodes, journal and taker of the dead node
-- ARGV  dead node, taker, time for which it takes (ms), number of clients, cursor ('0' at first: what was taken is
--       removed meanwhile, and a scan from the start would pass over the room of all of it)
-- Returns the next cursor, then client, what is known of it ...; only a cursor if there is no more: then the dead node
-- is forgotten; nil if it lives, or another node takes it over.
local nodes, journal, taker = unpack(KEYS)
local dead, id, lease, count, cursor = unpack(ARGV)
local clock = redis.call('time')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local score = redis.call('zscore', nodes, dead)
if not score or tonumber(score) > now then
  return false
end
local other = redis.call('get', taker)
if other and other ~= id then
  return false
end
redis.call('set', taker, id, 'px', lease)
repeat
  local reply = redis.call('hscan', journal, cursor, 'count', count)
  cursor = reply[1]
  local clients = reply[2]
  if #clients > 0 then
    table.insert(clients, 1, cursor)
    return clients
  end
until cursor == '0' and redis.call('exists', journal) == 0
redis.call('zrem', nodes, dead)
redis.call('del', taker)
return { '0' }

--- lifecycleLeave
-- A node has ended and left no client.
-- KEYS  nodes, journal
-- ARGV  node
local nodes, journal = unpack(KEYS)
redis.call('zrem', nodes, ARGV[1])
redis.call('del', journal)
return 1
