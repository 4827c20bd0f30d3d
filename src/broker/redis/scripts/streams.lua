-- The streams of channels. Keys:
--
-- meta    of a channel: '<top offset> <epoch> <batch id of the last publication> <size>[ <version> <version epoch>]'
-- stream  of a channel: entry <offset>-0: d = '<batch id of the previous publication>\n<body>'. It may be a little
--         longer than <size>: an exact trim is slower and frees no memory, since Redis frees whole nodes of entries
-- result  of an idempotency key: '' or '<offset> <epoch>'
--
-- After a failover an offset may belong to another publication than before. Batch ids tell these apart.

--- publish
-- Publishes a batch. For each publication: append to the stream, trim it, extend expiry, store the position, publish.
-- KEYS  for each item, by its flags: h: meta, stream; i: result
-- ARGV  publish command, batch id, epoch for a new stream; then for each item: flags, topic, body;
--       h: size, history ttl, meta ttl (ms); v: version (20 digits), version epoch; i: result ttl (ms)
--         e  an event: the body is the whole message     p  a publication, with h in history
--         v  has a version                               i  published once for each idempotency key
-- The message of a publication is 'p<offset> <epoch> <batch id> <index in the batch>\n<body>'.
-- Returns a line for each item: '<offset> <epoch>' ('' without history); '=' and the same: a known idempotency key or
-- an old version, not published; '!<text>': failed.
local command, batch, newEpoch = ARGV[1], ARGV[2], ARGV[3]

local function append(index, topic, body, meta, stream, result, size, ttl, metaTtl, version, versionEpoch, resultTtl)
  if result then
    local known = redis.call('GET', result)
    if known then return '=' .. known end
  end
  local position, epoch = '0', ''
  if meta then
    local value = redis.call('GET', meta)
    local previous, oldVersion, offset = '0', '', 0
    if value then
      offset, epoch, previous, oldVersion = string.match(value, '^(%d+) (%w+) (%w+) %d+(.*)$')
    else
      epoch = newEpoch
      -- Before DEL, because a full Redis refuses only the first write of a script.
      redis.call('SET', meta, '0 ' .. epoch .. ' 0 0', 'PX', metaTtl)
      redis.call('DEL', stream)
    end
    local newVersion = ''
    if version then
      local last, lastEpoch = string.match(oldVersion, '^ (%d+) (.*)$')
      if last and version <= last and (versionEpoch == '' or versionEpoch == lastEpoch) then
        return '=' .. offset .. ' ' .. epoch
      end
      newVersion = ' ' .. version .. ' ' .. versionEpoch
    end
    position = string.format('%.0f', offset + 1)
    redis.call('XADD', stream, 'MAXLEN', '~', size, position, 'd', previous .. '\n' .. body)
    redis.call('PEXPIRE', stream, ttl)
    redis.call('SET', meta, position .. ' ' .. epoch .. ' ' .. batch .. ' ' .. size .. newVersion, 'PX', metaTtl)
  end
  local answer = meta and (position .. ' ' .. epoch) or ''
  if result then redis.call('SET', result, answer, 'PX', resultTtl) end
  redis.call(command, topic, 'p' .. position .. ' ' .. epoch .. ' ' .. batch .. ' ' .. index .. '\n' .. body)
  return answer
end

-- The last key and the last argument used.
local key, arg, index = 0, 3, 0
local function nextKey()
  key = key + 1
  return KEYS[key]
end
local function nextArg()
  arg = arg + 1
  return ARGV[arg]
end

local answers = {}
while arg < #ARGV do
  local flags, topic, body = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
  arg = arg + 3
  local ok, answer
  -- The most frequent kinds take a shorter way than the last branch, with the same result.
  if flags == 'p' then
    ok, answer = pcall(append, index, topic, body)
  elseif flags == 'ph' then
    local meta, stream, size, ttl, metaTtl = KEYS[key + 1], KEYS[key + 2], ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3]
    ok, answer = pcall(append, index, topic, body, meta, stream, nil, size, ttl, metaTtl)
    key = key + 2
    arg = arg + 3
  elseif flags == 'e' then
    ok, answer = pcall(redis.call, command, topic, body)
    if ok then answer = '' end
  else
    local meta, stream, size, ttl, metaTtl, version, versionEpoch, result, resultTtl
    if string.find(flags, 'h', 1, true) then
      meta, stream, size, ttl, metaTtl = nextKey(), nextKey(), nextArg(), nextArg(), nextArg()
    end
    if string.find(flags, 'v', 1, true) then
      version, versionEpoch = nextArg(), nextArg()
    end
    if string.find(flags, 'i', 1, true) then
      result, resultTtl = nextKey(), nextArg()
    end
    ok, answer = pcall(append, index, topic, body,
      meta, stream, result, size, ttl, metaTtl, version, versionEpoch, resultTtl)
  end
  if not ok then
    if type(answer) == 'table' then answer = answer.err end
    answer = '!' .. string.gsub(tostring(answer), '%c', ' ')
  end
  index = index + 1
  answers[index] = answer
end
return table.concat(answers, '\n')

--- read
-- Reads positions and histories of a batch of channels. Creates missing streams and extends the expiry of others.
-- KEYS  for each item: meta, stream
-- ARGV  epoch for a new stream; longest meta ttl of a stream without publications (ms: anybody can make many by
--       looking at names); bytes that all items together may return (0: no limit); then for each item: op, meta ttl
--       (ms; 0: meta is neither created nor extended), arguments of the op, the last one a limit of bytes (0: none):
--         p                              the position only
--         s  offset, epoch, limit        all publications after the offset, or none if some are missing, or if two or
--                                        more exceed the limit of bytes
--         l  limit                       the newest ones (0: all)
--         h  limit, since, epoch, order  a page; since '': from the end; order '+' or '-'
--         c  offset, epoch, batch id     to catch up: as s without a limit, after the publication with this offset and
--                                        batch id. If a failover has lost that one, the answer is `found` 0, and the
--                                        stream gets a new epoch. Beyond the limit of bytes the answer ends, and has
--                                        the position of its last publication instead of the top
-- Returns for each item an array: '<found> <top offset> <epoch> <batch id>', then id and value of each entry. found is
-- 1, 0, or 2 if the limit of bytes has ended the list. '>': the items together had too many bytes, ask for this one
-- alone; '!<text>': failed.
local newEpoch, emptyTtl = ARGV[1], tonumber(ARGV[2])
-- Bytes left for this call; nil: no limit.
local left = ARGV[3] ~= '0' and tonumber(ARGV[3]) or nil
-- Set by an item that exceeds them.
local tooMuch = false

local function emptyLife(metaTtl) return math.min(tonumber(metaTtl), emptyTtl) end

-- Bytes of a publication in a reply besides its payload.
local OVERHEAD = 48
-- Entries of one command while bytes are counted.
local STEP = 32

local function id(offset) return string.format('%.0f-0', offset) end

-- Id and value of the entries from one offset to another, at most `count`, until the first one beyond `maxBytes`, but
-- at least one. Also returns the value of that first one; nil: all were read.
local function entries(command, stream, from, to, count, maxBytes)
  local found, bytes, step = {}, 0, command == 'XRANGE' and 1 or -1
  while count > 0 do
    local list = redis.call(command, stream, id(from), id(to), 'COUNT', math.min(count, STEP))
    if #list == 0 then break end
    for i = 1, #list do
      local value = list[i][2][2]
      bytes = bytes + #value + OVERHEAD
      if left and bytes > left then
        tooMuch = true
        return {}
      end
      if maxBytes > 0 and bytes > maxBytes and #found > 0 then return found, value end
      found[#found + 1] = list[i][1]
      found[#found + 1] = value
    end
    count = count - #list
    from = tonumber(string.match(list[#list][1], '^%d+')) + step
    if (to - from) * step < 0 then break end
  end
  if left then left = left - bytes end
  return found
end

-- The oldest offset in history; top + 1: none.
local function oldest(stream, top, size)
  return top + 1 - math.min(redis.call('XLEN', stream), size)
end

-- The publications after an offset, as `entries`; nil: some are missing, or they are more than the limit (0: none).
local function after(stream, top, size, offset, limit, maxBytes)
  local missed = top - offset
  if missed < 0 or (limit > 0 and missed > limit) then return nil end
  if missed == 0 then return {} end
  if oldest(stream, top, size) > offset + 1 then return nil end
  return entries('XRANGE', stream, offset + 1, top, missed, maxBytes)
end

-- At most `limit` publications (-1: all) before or after `since`, in this order, as `entries`.
local function page(stream, top, size, limit, since, order, maxBytes)
  if limit == 0 then return {} end
  local first = oldest(stream, top, size)
  local from = math.max(first, since and since + 1 or 0)
  local command, to = 'XRANGE', top
  if order == '-' then
    command, from, to = 'XREVRANGE', since and since - 1 or top, first
  end
  if from < first or from > top then return {} end
  return entries(command, stream, from, to, limit > 0 and limit or top - first + 1, maxBytes)
end

-- a, b, c, d, e: the arguments of the op.
local function read(meta, stream, op, metaTtl, a, b, c, d, e)
  local value = redis.call('GET', meta)
  local offset, epoch, batch, size, version
  if value then
    offset, epoch, batch, size, version = string.match(value, '^(%d+) (%w+) (%w+) (%d+)(.*)$')
    if metaTtl ~= '0' then redis.call('PEXPIRE', meta, offset == '0' and emptyLife(metaTtl) or metaTtl) end
  else
    offset, epoch, batch, size, version = '0', newEpoch, '0', '0', ''
    if metaTtl ~= '0' then redis.call('SET', meta, '0 ' .. newEpoch .. ' 0 0', 'PX', emptyLife(metaTtl)) end
    redis.call('DEL', stream)
  end
  local top, maxSize = tonumber(offset), tonumber(size)
  local found, beyond
  if op == 's' then
    local since, sinceEpoch, limit = tonumber(a), b, tonumber(c)
    if sinceEpoch == '' or sinceEpoch == epoch then
      found, beyond = after(stream, top, maxSize, since, limit, tonumber(d))
    end
    if beyond then found, beyond = nil, nil end
  elseif op == 'l' then
    local limit = a == '0' and -1 or tonumber(a)
    found = page(stream, top, maxSize, limit, nil, '-', tonumber(b))
  elseif op == 'h' then
    local limit, since, sinceEpoch, order = tonumber(a), tonumber(b), c, d
    if sinceEpoch == '' or sinceEpoch == epoch then
      found, beyond = page(stream, top, maxSize, limit, since, order, tonumber(e))
    end
  elseif op == 'c' and b == epoch then
    local since, sinceBatch = tonumber(a), c
    found, beyond = after(stream, top, maxSize, since, 0, tonumber(d))
    local lost = since > top
    if found and since > 0 and not tooMuch then
      -- The batch id of a publication is in the entry after it; that of the last one is in meta.
      local stored = batch
      if #found > 0 then stored = string.match(found[2], '^(%w+)\n') end
      lost = stored ~= sinceBatch
    end
    if lost then
      found = nil
      epoch = newEpoch
      redis.call('SET', meta, offset .. ' ' .. epoch .. ' ' .. batch .. ' ' .. size .. version, 'KEEPTTL')
    elseif beyond then
      offset = string.match(found[#found - 1], '^%d+')
      batch = string.match(beyond, '^(%w+)\n')
    end
  end
  if tooMuch then return { '>' } end
  local answer = found or {}
  table.insert(answer, 1, (beyond and '2 ' or found and '1 ' or '0 ') .. offset .. ' ' .. epoch .. ' ' .. batch)
  return answer
end

-- Number of arguments of each op.
local counts = { p = 0, s = 4, l = 2, h = 5, c = 4 }
local answers = {}
local arg = 3
for item = 1, #KEYS / 2 do
  local op, metaTtl = ARGV[arg + 1], ARGV[arg + 2]
  arg = arg + 2
  tooMuch = false
  local ok, answer = pcall(read, KEYS[2 * item - 1], KEYS[2 * item], op, metaTtl,
    ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4], ARGV[arg + 5])
  arg = arg + counts[op]
  if not ok then
    if type(answer) == 'table' then answer = answer.err end
    answer = { '!' .. tostring(answer) }
  end
  answers[item] = answer
end
return answers
