-- Streams of channels. Keys:
--
-- branch  of a partition: '<number> <replication id>'
-- meta    of a channel: '<top offset> <epoch> <batch id of the last publication> <size>[+<branch>]
--         [ <version> <version epoch>]'
-- stream  of a channel: entry <offset>-0: d = '<batch id of the previous publication>[ <its offset>]\n<body>'. It may
--         be longer than <size>: an exact trim is slower, and Redis frees only whole nodes of entries
-- result  of an idempotency key: '' or '<offset> <epoch>'
--
-- A promoted or restarted server may lack acknowledged publications. It has a new replication id, which begins a new
-- branch of all streams. The first publication of a stream in a new branch leaps: its offset is above all possibly used
-- offsets, and its entry and message have the previous offset. So no two publications have the same offset.
--
--   server A   1  2  3  4 (5  6  lost)
--   server B            4 -------------> 179586212345678  179586212345679 ...
--
-- A restored backup may have the same id: batch ids distinguish publications with the same offset.

-- The number of a branch, '' for the first one.
local function number(branch) return tonumber(branch) or 0 end

local function suffix(branch) return branch == '' and '' or '+' .. branch end

-- First offset of a stream in this branch: hundredths of a ms since 1970, more than any stream has publications.
local function leap(offset)
  local clock = redis.call('TIME')
  return string.format('%.0f', math.max(clock[1] * 100000 + math.floor(clock[2] / 10), offset + 1000000))
end

-- Returns offset, epoch, previous batch id, branch and version of a stream. Begins a missing one.
local function open(meta, stream, metaTtl, newEpoch, branch)
  local value = redis.call('GET', meta)
  if value then
    local offset, epoch, previous, version = string.match(value, '^(%d+) (%w+) (%w+) %d+(.*)$')
    if version == '' then return offset, epoch, previous, '', '' end
    return offset, epoch, previous, string.match(version, '^%+?(%d*)(.*)$')
  end
  -- Before DEL: a full Redis refuses only the first write of a script.
  redis.call('SET', meta, '0 ' .. newEpoch .. ' 0 0' .. suffix(branch), 'PX', metaTtl)
  redis.call('DEL', stream)
  return 0, newEpoch, '0', branch, ''
end

-- Appends to a stream that was opened. `version`: '' or ' <version> <version epoch>'. Returns its offset, and '' or
-- ' <previous offset>' if it leaps.
local function push(meta, stream, size, ttl, metaTtl, batch, branch, offset, epoch, previous, oldBranch, version, body)
  local position, gap
  if oldBranch ~= branch and number(oldBranch) < number(branch) then
    oldBranch = branch
    gap = ' ' .. offset
    position = leap(offset)
  else
    gap = ''
    position = string.format('%.0f', offset + 1)
  end
  redis.call('XADD', stream, 'MAXLEN', '~', size, position, 'd', previous .. gap .. '\n' .. body)
  redis.call('PEXPIRE', stream, ttl)
  if oldBranch ~= '' then version = '+' .. oldBranch .. version end
  redis.call('SET', meta, position .. ' ' .. epoch .. ' ' .. batch .. ' ' .. size .. version, 'PX', metaTtl)
  return position, gap
end

--- branch
-- Returns the number of the current branch, '' for the first one.
-- KEYS  branch
local info = redis.call('INFO', 'replication')
if string.find(info, 'role:slave', 1, true) then
  return redis.error_reply('READONLY this server is a replica')
end
local id = string.match(info, 'master_replid:(%w+)') or ''
local known, last = string.match(redis.call('GET', KEYS[1]) or '', '^(%d*) (%w*)$')
if last == id then
  return known
end
local current = known and string.format('%.0f', number(known) + 1) or ''
-- A read-only server gets it later: it accepts no publications either.
pcall(redis.call, 'SET', KEYS[1], current .. ' ' .. id)
return current

--- publish
-- Publishes a batch. For each publication: append to the stream, trim it, extend expiry, store the position, publish.
-- KEYS  for each item, by its flags: h: meta, stream; i: result
-- ARGV  publish command, batch id, epoch for a new stream, branch; then for each item: flags, topic, body;
--       h: size, history ttl, meta ttl (ms); v: version (20 digits), version epoch; i: result ttl (ms)
--         e  an event: the body is the whole message     p  a publication, with h in history
--         v  has a version                               i  published once per idempotency key
-- The message of a publication is 'p<offset> <epoch> <batch id> <index in the batch>[ <previous offset>]\n<body>'.
-- Returns a line for each item: '<offset> <epoch>' ('' without history); '=' and the same: a known idempotency key or
-- an old version, not published; '!<text>': failed.
local command, batch, newEpoch, branch = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function append(index, topic, body, meta, stream, result, size, ttl, metaTtl, version, versionEpoch, resultTtl)
  if result then
    local known = redis.call('GET', result)
    if known then return '=' .. known end
  end
  local position, epoch, gap = '0', '', ''
  if meta then
    local offset, previous, oldBranch, oldVersion
    offset, epoch, previous, oldBranch, oldVersion = open(meta, stream, metaTtl, newEpoch, branch)
    local newVersion = ''
    if version then
      local last, lastEpoch = string.match(oldVersion, '^ (%d+) (.*)$')
      if last and version <= last and (versionEpoch == '' or versionEpoch == lastEpoch) then
        return '=' .. offset .. ' ' .. epoch
      end
      newVersion = ' ' .. version .. ' ' .. versionEpoch
    end
    position, gap = push(meta, stream, size, ttl, metaTtl, batch, branch, offset, epoch, previous, oldBranch,
      newVersion, body)
  end
  local answer = meta and (position .. ' ' .. epoch) or ''
  if result then redis.call('SET', result, answer, 'PX', resultTtl) end
  redis.call(command, topic, 'p' .. position .. ' ' .. epoch .. ' ' .. batch .. ' ' .. index .. gap .. '\n' .. body)
  return answer
end

local key, arg, index = 0, 4, 0
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
  -- Fast path for the most frequent kinds, equivalent to the last branch.
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
-- ARGV  epoch for a new stream; branch; maximum meta ttl of a stream without publications (ms: clients can create many
--       by querying names); maximum total bytes of all items (0: no limit); then for each item: op, meta ttl
--       (ms; 0: meta is neither created nor extended), arguments of the op, the last one a limit of bytes (0: none):
--         p                              only the position
--         s  offset, epoch, limit        all publications after the offset, or none if some are missing, or if two or
--                                        more exceed the limit of bytes
--         l  limit                       the newest ones (0: all); with a limit of 1 all if the newest has a target
--         h  limit, since, epoch, order  a page; since '': from the end; order '+' or '-'
--         c  offset, epoch, batch id     to catch up: as s without a limit, after the publication with this offset and
--                                        batch id. If it is lost, `found` is 0, and the stream gets a new epoch unless
--                                        its next offset leaps. A reply cut by the limit of bytes has the position of
--                                        its last publication instead of the top
-- Returns for each item an array: '<found> <top offset> <epoch> <batch id>', then id and value of each entry. found is
-- 1, 0, or 2 if the limit of bytes cut the list. '>': too many bytes in total, read this item alone;
-- '!<text>': failed.
local newEpoch, branch, emptyTtl = ARGV[1], ARGV[2], tonumber(ARGV[3])
-- Bytes left for this call; nil: no limit.
local left = ARGV[4] ~= '0' and tonumber(ARGV[4]) or nil
local tooMuch = false

local function emptyLife(metaTtl) return math.min(tonumber(metaTtl), emptyTtl) end

-- Bytes of a publication in a reply, excluding payload.
local OVERHEAD = 48
local STEP = 32

local function id(offset) return string.format('%.0f-0', offset) end

-- Id and value of the entries between two offsets, at most `count`, until the first one beyond `maxBytes`, but at
-- least one. Also returns the value of that first one; nil: all were read.
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

local function offsetOf(id) return tonumber(string.match(id, '^%d+')) end

-- The offset before the first one of `entries`.
local function before(found)
  local gap = string.match(found[2], '^%w+ (%d+)\n')
  return gap and tonumber(gap) or offsetOf(found[1]) - 1
end

local function kept(stream, size) return math.min(redis.call('XLEN', stream), size) end

-- The oldest offset in history; top + 1: none. Without leaps there are no gaps between offsets.
local function oldest(stream, top, size, leaps)
  local count = kept(stream, size)
  if not leaps or count == 0 then return top + 1 - count end
  local list = redis.call('XRANGE', stream, '-', '+', 'COUNT', redis.call('XLEN', stream) - count + 1)
  return offsetOf(list[#list][1])
end

-- Publications after an offset, as `entries`; nil: some are missing, the stream has no such offset, or more than the
-- limit (0: none).
local function after(stream, top, size, leaps, offset, limit, maxBytes)
  if offset > top then return nil end
  if offset == top then return {} end
  local most = kept(stream, size)
  if limit > 0 then most = math.min(most, limit) end
  if not leaps and top - offset > most then return nil end
  local found, beyond = entries('XRANGE', stream, offset + 1, top, most + 1, maxBytes)
  if tooMuch then return {} end
  if #found == 0 or #found / 2 > most or before(found) ~= offset then return nil end
  return found, beyond
end

-- At most `limit` publications (-1: all) before or after `since`, in this order, as `entries`.
local function page(stream, top, size, leaps, limit, since, order, maxBytes)
  if limit == 0 then return {} end
  local first = oldest(stream, top, size, leaps)
  local from = math.max(first, since and since + 1 or 0)
  local command, to = 'XRANGE', top
  if order == '-' then
    command, from, to = 'XREVRANGE', since and since - 1 or top, first
  end
  if from < first or from > top then return {} end
  return entries(command, stream, from, to, limit > 0 and limit or top - first + 1, maxBytes)
end

-- Whether a publication has a target, by the flags of its body (envelope.js).
local function targeted(value)
  return math.floor(string.byte(value, string.find(value, '\n', 1, true) + 1) / 64) % 2 == 1
end

-- a, b, c, d, e: the arguments of the op.
local function read(meta, stream, op, metaTtl, a, b, c, d, e)
  local value = redis.call('GET', meta)
  local offset, epoch, batch, size, oldBranch, version
  if value then
    offset, epoch, batch, size, oldBranch, version = string.match(value, '^(%d+) (%w+) (%w+) (%d+)%+?(%d*)(.*)$')
    if metaTtl ~= '0' then redis.call('PEXPIRE', meta, offset == '0' and emptyLife(metaTtl) or metaTtl) end
  else
    offset, epoch, batch, size, oldBranch, version = '0', newEpoch, '0', '0', branch, ''
    if metaTtl ~= '0' then
      redis.call('SET', meta, '0 ' .. newEpoch .. ' 0 0' .. suffix(branch), 'PX', emptyLife(metaTtl))
    end
    redis.call('DEL', stream)
  end
  local top, maxSize, leaps = tonumber(offset), tonumber(size), oldBranch ~= ''
  local found, beyond
  if op == 's' then
    local since, sinceEpoch, limit = tonumber(a), b, tonumber(c)
    if sinceEpoch == '' or sinceEpoch == epoch then
      found, beyond = after(stream, top, maxSize, leaps, since, limit, tonumber(d))
    end
    if beyond then found, beyond = nil, nil end
  elseif op == 'l' then
    local limit = a == '0' and -1 or tonumber(a)
    found = page(stream, top, maxSize, leaps, limit, nil, '-', tonumber(b))
    if limit == 1 and found[2] and targeted(found[2]) then
      found = page(stream, top, maxSize, leaps, -1, nil, '-', tonumber(b))
    end
  elseif op == 'h' then
    local limit, since, sinceEpoch, order = tonumber(a), tonumber(b), c, d
    if sinceEpoch == '' or sinceEpoch == epoch then
      found, beyond = page(stream, top, maxSize, leaps, limit, since, order, tonumber(e))
      -- Offsets in a gap are of another branch.
      local checked = leaps and since and sinceEpoch ~= '' and order == '+' and not tooMuch
      if checked and #found > 0 and before(found) ~= since and since >= oldest(stream, top, maxSize, leaps) then
        found, beyond = nil, nil
      end
    end
  elseif op == 'c' and b == epoch then
    local since, sinceBatch = tonumber(a), c
    found, beyond = after(stream, top, maxSize, leaps, since, 0, tonumber(d))
    local lost = since > top
    if found and since > 0 and not tooMuch then
      -- A publication's batch id is in the next entry; that of the last one is in meta.
      local stored = batch
      if #found > 0 then stored = string.match(found[2], '^%w+') end
      lost = stored ~= sinceBatch
    end
    if lost then
      found = nil
      -- Others can recover if a new branch distinguishes the offsets.
      if since <= top or number(oldBranch) >= number(branch) then
        epoch = newEpoch
        redis.call('SET', meta,
          offset .. ' ' .. epoch .. ' ' .. batch .. ' ' .. size .. suffix(oldBranch) .. version, 'KEEPTTL')
      end
    elseif beyond then
      offset = string.match(found[#found - 1], '^%d+')
      batch = string.match(beyond, '^%w+')
    end
  end
  if tooMuch then return { '>' } end
  local answer = found or {}
  table.insert(answer, 1, (beyond and '2 ' or found and '1 ' or '0 ') .. offset .. ' ' .. epoch .. ' ' .. batch)
  return answer
end

local counts = { p = 0, s = 4, l = 2, h = 5, c = 4 }
local answers = {}
local arg = 4
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
