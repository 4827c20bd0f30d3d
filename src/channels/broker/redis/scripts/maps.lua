-- Maps. Keys besides those of the stream of changes (streams.lua), which has the position:
--
-- map           of a channel, hash: key -> '<offset>[ <worker that owns it>]\n<body>' (body: envelope.js); '' -> '<stream
--               size> <stream ttl> <meta ttl> <key ttl>' (ms) of its last write
-- map-keys      of a channel, sorted set: its keys in byte order
-- map-expiry    of a channel, sorted set: key -> expiry (ms), if keys expire
-- map-versions  of a channel, hash: key -> '<version> <version epoch>'
-- due           of a partition, sorted set: channel -> expiry of its first key, or earlier (ms)
-- sweeper       of a partition: the worker that removes expired keys
-- owned         of a worker, set: '<bytes of channel> <channel><key>' of the keys to remove when it dies
-- owners        of a partition, sorted set: worker with keys to remove -> end of its lease (ms)
-- result        of an idempotency key: '<offset> <epoch>'
--
-- KEYS of a channel: meta, stream, map, map-keys, map-expiry, map-versions, due.

local INFO, TAGS, VERSION, NOT_JSON, KEYED, REMOVED = 1, 2, 4, 8, 32, 1

local function has(flags, flag) return flags % (2 * flag) >= flag end

-- Positions of the fields of a body: flags, tags ('' = none), payload.
local function fields(body)
  local flags, at, tags = string.byte(body), 2, ''
  if has(flags, INFO) then at = at + 4 + struct.unpack('<I4', body, at) end
  if has(flags, TAGS) then
    local size = 4 + struct.unpack('<I4', body, at)
    tags = string.sub(body, at, at + size - 1)
    at = at + size
  end
  if has(flags, VERSION) then at = at + 8 end
  -- Kind of change and time of the write.
  if has(flags, KEYED) then at = at + 13 + struct.unpack('<I4', body, at + 9) end
  return flags, tags, at
end

-- Splits a stored entry: offset, body, owner ('' = none).
local function entry(value)
  local offset, owner, at = string.match(value, '^(%d+) ?(%w*)\n()')
  return offset, string.sub(value, at), owner
end

local function removal(key, tags)
  local flags = KEYED + (tags == '' and 0 or TAGS)
  return string.char(flags) .. tags .. struct.pack('<BdI4', REMOVED, now(), #key) .. key
end

local function removalOf(key, stored)
  local _, body = entry(stored)
  local _, tags = fields(body)
  return removal(key, tags)
end

-- Ephemeral maps have an epoch, but no offsets: '0'.
local function change(channel, rules, newEpoch, branch, command, topic, batch, index, body)
  local position, gap, epoch = '0', '', ''
  if rules.size ~= '0' then
    local offset, previous, oldBranch, version
    offset, epoch, previous, oldBranch, version = open(channel[1], channel[2], rules.metaTtl, newEpoch, branch)
    position, gap = push(channel[1], channel[2], rules.size, rules.ttl, rules.metaTtl, batch, branch, offset, epoch,
      previous, oldBranch, version, body)
  end
  return position, epoch,
    function()
      redis.call(command, topic, 'p' .. position .. ' ' .. epoch .. ' ' .. batch .. ' ' .. index .. gap .. '\n' .. body)
    end
end

-- Of the keys of a map. Entries outlive their expiry until they are swept.
local SWEPT_WITHIN = 3600 * 1000
local function lifetime(rules)
  return digits(math.max(tonumber(rules.metaTtl), tonumber(rules.keyTtl) + SWEPT_WITHIN))
end

-- Renews the expiry of a key and of the map. `due` has the name of the channel.
local function renew(channel, rules, key, due)
  local map, keys, expiry, versions = channel[3], channel[4], channel[5], channel[6]
  if rules.keyTtl ~= '0' then
    local at = digits(now() + rules.keyTtl)
    redis.call('ZADD', expiry, at, key)
    redis.call('ZADD', channel[7], 'LT', at, due)
  else
    redis.call('ZREM', expiry, key)
  end
  local life = lifetime(rules)
  for _, name in ipairs({ map, keys, expiry, versions }) do redis.call('PEXPIRE', name, life) end
  if rules.size ~= '0' then redis.call('PEXPIRE', channel[1], rules.metaTtl) end
end

local function expired(channel, key)
  local at = redis.call('ZSCORE', channel[5], key)
  return at and tonumber(at) <= now()
end

local function drop(channel, key)
  redis.call('HDEL', channel[3], key)
  redis.call('ZREM', channel[4], key)
  redis.call('ZREM', channel[5], key)
  redis.call('HDEL', channel[6], key)
end

-- Of a key in the set of its owner.
local function member(name, key) return #name .. ' ' .. name .. key end

local function rulesOf(text)
  local size, ttl, metaTtl, keyTtl = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
  return { size = size, ttl = ttl, metaTtl = metaTtl, keyTtl = keyTtl }
end

-- Its position: offset and epoch.
local function position(channel, rules)
  if rules.size == '0' then return '0 ' end
  local value = redis.call('GET', channel[1])
  return value and string.match(value, '^%d+ %w+') or '0 '
end

-- The answer of a known idempotency key; nil: unknown. Clearing a map renews its epoch.
local function known(result, channel, rules)
  local value = result and redis.call('GET', result)
  local function epochOf(text) return string.match(text, ' (.*)$') end
  if value and (rules.size == '0' or epochOf(value) == epochOf(position(channel, rules))) then
    return { '=idempotency ' .. value }
  end
end

--- mapPublish
-- KEYS  of the channel, then if any: result; owned, owners
-- ARGV  publish command, topic, batch id, epoch for a new stream, branch, channel, rules, key, body of the entry, body
--       for the stream ('': the same), then options: result ttl (ms, '': none), version (20 digits, '': none), version
--       epoch, mode (n: if new, e: if it exists, '': any), refresh (1, ''), expected offset ('': any), expected epoch,
--       append (1, b: also to bytes, ''), maximum bytes of the value (0: any), owner ('': none), its lease (ms)
-- Returns '<offset> <epoch>'; '=<reason> <offset> <epoch>' if suppressed, and then the entry if its position differs;
-- '?' for a value that cannot be appended to, or is too large. All of them follow '+' if an expired entry was removed.
local command, topic, batch, newEpoch, branch, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local rules, key, body, streamBody = rulesOf(ARGV[7]), ARGV[8], ARGV[9], ARGV[10]
local resultTtl, version, versionEpoch, mode, refresh = ARGV[11], ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local expected, expectedEpoch, append, maxBytes, owner = ARGV[16], ARGV[17], ARGV[18], tonumber(ARGV[19]), ARGV[20]
local map, versions = KEYS[3], KEYS[6]
local result = resultTtl ~= '' and KEYS[8]

local repeated = known(result, KEYS, rules)
if repeated then return repeated end
local late = ''
local function suppressed(reason, current)
  return { late .. '=' .. reason .. ' ' .. position(KEYS, rules), current }
end
local stored = redis.call('HGET', map, key)
if stored and expired(KEYS, key) then
  -- The sweeper is late: subscribers get the removal first.
  local _, _, send = change(KEYS, rules, newEpoch, branch, command, topic, batch, 1,
    removalOf(key, stored))
  drop(KEYS, key)
  send()
  stored, late = false, '+'
end
if version ~= '' then
  local last, lastEpoch = string.match(redis.call('HGET', versions, key) or '', '^(%d+) (.*)$')
  if last and version <= last and (versionEpoch == '' or versionEpoch == lastEpoch) then
    return suppressed('version')
  end
end
if mode == 'n' and stored then
  if refresh == '1' then renew(KEYS, rules, key, name) end
  return suppressed('key_exists')
end
if mode == 'e' and not stored then return suppressed('key_not_found') end
if expected ~= '' then
  local offset = stored and entry(stored) or '0'
  local epoch = string.match(position(KEYS, rules), ' (.*)$')
  if offset ~= expected or (offset ~= '0' and expectedEpoch ~= '' and expectedEpoch ~= epoch) then
    return suppressed('position_mismatch', stored or nil)
  end
end
local flags, _, at = fields(body)
if append ~= '' then
  if stored then
    local _, old = entry(stored)
    local oldFlags, _, oldAt = fields(old)
    if append == 'b' and has(oldFlags, NOT_JSON) and not has(flags, NOT_JSON) then
      flags = flags + NOT_JSON
      body = string.char(flags) .. string.sub(body, 2)
    end
    streamBody = body
    local value, part = string.sub(old, oldAt), string.sub(body, at)
    if has(oldFlags, NOT_JSON) ~= has(flags, NOT_JSON) then return { '?' } end
    if not has(flags, NOT_JSON) then
      value, part = string.match(value, '^%s*(".*)"%s*$'), string.match(part, '^%s*"(.*")%s*$')
      if not value or not part then return { '?' } end
    end
    body = string.sub(body, 1, at - 1) .. value .. part
  end
  -- The entry is a whole value.
  local _, _, changeAt = fields(body)
  local keyed = changeAt - 13 - #key
  body = string.sub(body, 1, keyed - 1) .. '\0' .. string.sub(body, keyed + 1)
end
if maxBytes > 0 and #body - at + 1 > maxBytes then return { late .. '?' } end
if streamBody == '' then streamBody = body end
local offset, epoch, send = change(KEYS, rules, newEpoch, branch, command, topic, batch, 0, streamBody)
redis.call('HSET', map, key, offset .. (owner == '' and '' or ' ' .. owner) .. '\n' .. body, '', ARGV[7])
redis.call('ZADD', KEYS[4], 0, key)
if version ~= '' then redis.call('HSET', versions, key, version .. ' ' .. versionEpoch) end
renew(KEYS, rules, key, name)
local answer = offset .. ' ' .. epoch
if result then redis.call('SET', result, answer, 'PX', resultTtl) end
if owner ~= '' then
  local set = KEYS[#KEYS - 1]
  redis.call('ZADD', KEYS[#KEYS], digits(now() + ARGV[21]), owner)
  redis.call('SADD', set, member(name, key))
  -- Not earlier than the other keys in it.
  local life = lifetime(rules)
  if redis.call('PTTL', set) < tonumber(life) then redis.call('PEXPIRE', set, life) end
end
send()
return { late .. answer }

--- mapRemove
-- KEYS  of the channel, then if any: result, owned of this worker
-- ARGV  publish command, topic, batch id, epoch for a new stream, branch, channel, rules ('': those of the last write),
--       key, body ('': with the tags of the entry), result ttl (ms, '': none), owner: only if it owns the key ('': any)
-- Returns as mapPublish.
local command, topic, batch, newEpoch, branch, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local rules = rulesOf(ARGV[7] ~= '' and ARGV[7] or redis.call('HGET', KEYS[3], '') or '0 0 0 0')
local key, body, resultTtl = ARGV[8], ARGV[9], ARGV[10]
local result = resultTtl ~= '' and KEYS[8]
local repeated = known(result, KEYS, rules)
if repeated then return repeated end
-- Also if the key has expired.
if ARGV[11] == '' then redis.call('SREM', KEYS[#KEYS], member(name, key)) end
local stored = redis.call('HGET', KEYS[3], key)
if not stored or key == '' or (ARGV[11] ~= '' and select(3, entry(stored)) ~= ARGV[11]) then
  return { '=key_not_found ' .. position(KEYS, rules) }
end
if body == '' then body = removalOf(key, stored) end
local late = expired(KEYS, key)
local offset, epoch, send = change(KEYS, rules, newEpoch, branch, command, topic, batch, 0, body)
drop(KEYS, key)
local answer = offset .. ' ' .. epoch
if result and not late then redis.call('SET', result, answer, 'PX', resultTtl) end
send()
if late then return { '+=key_not_found ' .. answer } end
return { answer }

--- mapState
-- A page in byte order of the keys.
-- KEYS  of the channel
-- ARGV  epoch for a new stream, branch, meta ttl (ms; 0: ephemeral), maximum meta ttl of a stream without changes (ms),
--       cursor (the last key), limit, key ('': all), epoch ('': any), hide entries after this offset (0: none), maximum
--       bytes (0: no limit)
-- Returns '<offset> <epoch>', cursor, then entries; '!' if the epoch differs.
local newEpoch, branch, metaTtl, emptyTtl, cursor = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local limit, key, wanted, upTo, maxBytes = tonumber(ARGV[6]), ARGV[7], ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local position = '0 '
if metaTtl ~= '0' then
  local empty = digits(math.min(tonumber(metaTtl), tonumber(emptyTtl)))
  local offset, epoch = open(KEYS[1], KEYS[2], empty, newEpoch, branch)
  position = offset .. ' ' .. epoch
  redis.call('PEXPIRE', KEYS[1], tonumber(offset) == 0 and empty or metaTtl)
  if wanted ~= '' and wanted ~= epoch then return { '!' } end
end
local OVERHEAD, STEP = 48, 64
local found, bytes, moment = { position, '' }, 0, now()
local function add(name)
  local stored = redis.call('HGET', KEYS[3], name)
  if not stored then return true end
  local at = redis.call('ZSCORE', KEYS[5], name)
  if at and tonumber(at) <= moment then return true end
  if upTo > 0 and tonumber((entry(stored))) > upTo then return true end
  bytes = bytes + #stored + OVERHEAD
  if maxBytes > 0 and bytes > maxBytes and #found > 2 then return false end
  found[#found + 1] = stored
  return true
end
if key ~= '' then
  add(key)
  return found
end
-- Hidden entries count too: a page visits a bounded number of keys.
local left = limit
while left > 0 do
  local names = redis.call('ZRANGEBYLEX', KEYS[4], cursor == '' and '-' or '(' .. cursor, '+',
    'LIMIT', 0, math.min(left, STEP))
  if #names == 0 then return found end
  for _, name in ipairs(names) do
    if not add(name) then
      found[2] = cursor
      return found
    end
    cursor = name
  end
  left = left - #names
end
if #redis.call('ZRANGEBYLEX', KEYS[4], '(' .. cursor, '+', 'LIMIT', 0, 1) > 0 then found[2] = cursor end
return found

--- mapStats
-- KEYS  of the channel
-- Returns the number of keys.
return redis.call('ZCARD', KEYS[4]) - redis.call('ZCOUNT', KEYS[5], '-inf', digits(now()))

--- mapClear
-- KEYS  of the channel
-- ARGV  new epoch, channel, publish command, topic
-- Removes a map, and sends the message 'c'. Its stream continues in a new epoch, so that subscribers lose their position.
local value = redis.call('GET', KEYS[1])
-- Freed in the background: a map may have a million keys.
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6])
redis.call('ZREM', KEYS[7], ARGV[2])
if value then
  redis.call('SET', KEYS[1], (string.gsub(value, '^(%d+) %w+ (.*)$', '0 ' .. ARGV[1] .. ' %2')), 'KEEPTTL')
end
redis.call(ARGV[3], ARGV[4], 'c')
return 1

--- mapDue
-- KEYS  due, sweeper
-- ARGV  worker, its lease (ms), maximum number of channels
-- Returns the channels with expired keys; the lease of another sweeper (ms).
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return redis.call('PTTL', KEYS[2]) end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now()), 'LIMIT', 0, ARGV[3])

--- mapExpire
-- Removes expired keys.
-- KEYS  of the channel
-- ARGV  publish command, topic, batch id, epoch for a new stream, branch, channel, maximum number of keys
-- Returns the number of removed keys.
local command, topic, batch, newEpoch, branch, name = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local written = redis.call('HGET', KEYS[3], '')
if not written then
  redis.call('ZREM', KEYS[7], name)
  return 0
end
local rules = rulesOf(written)
local late = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', digits(now()), 'LIMIT', 0, ARGV[7])
for index, key in ipairs(late) do
  local stored = redis.call('HGET', KEYS[3], key)
  local send
  if stored then
    local body = removalOf(key, stored)
    local _
    _, _, send = change(KEYS, rules, newEpoch, branch, command, topic, batch, index, body)
  end
  drop(KEYS, key)
  if send then send() end
end
local first = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')
if #first > 0 then
  redis.call('ZADD', KEYS[7], first[2], name)
else
  redis.call('ZREM', KEYS[7], name)
end
return #late

--- mapOwner
-- Extends the lease of a worker with keys.
-- KEYS  owners
-- ARGV  worker, its lease (ms)
return redis.call('ZADD', KEYS[1], 'XX', digits(now() + ARGV[2]), ARGV[1])

--- mapOrphans
-- KEYS  owners
-- ARGV  maximum number
-- Returns workers whose lease has ended.
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now()), 'LIMIT', 0, ARGV[1])

--- mapOwned
-- Takes keys of a dead worker.
-- KEYS  owned
-- ARGV  maximum number
return redis.call('SPOP', KEYS[1], ARGV[1])
