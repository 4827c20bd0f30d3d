-- The lifecycle log in Redis. Keys:
--
-- stream    stream: field `event`, a record as JSON
-- batch     string: number of the last batch appended by a node
-- nodes     sorted set: id of a node -> expiry of its lease (ms)
-- journal   hash, one per node: client id -> data of the client as JSON
-- taker     string, one per dead node: id of the node that takes over its journal

--- lifecycleAppend
-- KEYS  stream, batch
-- ARGV  number of the batch, expiry of the number (ms), maximum length (0: none), record ...
-- Returns 1, or 0 for a duplicate batch.
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
-- KEYS  journal
-- ARGV  client, its data ('': disconnected) ...
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
-- KEYS  nodes
-- ARGV  node, lease (ms)
-- Returns 1 if the lease had not expired, else 0; then up to 16 nodes with expired leases.
local nodes = KEYS[1]
local node, lease = unpack(ARGV)
local now = now()
local before = redis.call('zscore', nodes, node)
redis.call('zadd', nodes, digits(now + lease), node)
local reply = redis.call('zrangebyscore', nodes, '-inf', digits(now), 'limit', 0, 16)
table.insert(reply, 1, before and tonumber(before) > now and '1' or '0')
return reply

--- lifecycleTake
-- Reads a part of a dead node's journal, for one taker at a time.
-- KEYS  nodes, journal and taker of the dead node
-- ARGV  dead node, taker, lease of the takeover (ms), number of clients, cursor (initially '0'; a scan from the start
--       would pass the buckets of all removed clients)
-- Returns the next cursor, then client, data ...; at the end only a cursor, and removes the dead node; nil if the node
-- is alive, or another node takes it over.
local nodes, journal, taker = unpack(KEYS)
local dead, id, lease, count, cursor = unpack(ARGV)
local now = now()
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
-- KEYS  nodes, journal
-- ARGV  node
local nodes, journal = unpack(KEYS)
redis.call('zrem', nodes, ARGV[1])
redis.call('del', journal)
return 1
