-- Publishes a batch, each publication in one atomic step: append to the stream, new position, trim, expiry, publish.
--
-- KEYS  for each item, as its flags say: h: meta, stream; i: result
-- ARGV  publish command, mark of the batch, epoch for a stream that begins; then for each item
--       flags, topic, body; h: size, history ttl, meta ttl (ms); v: version (20 digits), version epoch; i: result ttl (ms)
--         e  an event: the body is the whole message     p  a publication, with h in history
--         v  carries a version                           i  goes out once for each result key
-- Returns a line for each item: '' not in history, '<offset> <epoch>' published, the same behind '=' already known,
-- '!<text>' failed.
--
-- meta    '<offset> <epoch> <mark of the last batch> <size>[ <version> <version epoch>]'
-- stream  entry <offset>-0: d = '<mark before it>\n<body>'. There may be some more than its size: to trim exactly, Redis would go
--         through the deleted entries of a node each time, and free nothing
-- message 'p<offset> <epoch> <mark> <index in the batch>\n<body>'
local command, mark, newEpoch = ARGV[1], ARGV[2], ARGV[3]

local function append(index, topic, body, meta, stream, result, size, ttl, metaTtl, version, versionEpoch, resultTtl)
  if result then
    local known = redis.call('GET', result)
    if known then return '=' .. known end
  end
  local position, epoch = '0', ''
  if meta then
    local before = redis.call('GET', meta)
    local previous, rest, offset = '0', '', 0
    if before then
      offset, epoch, previous, rest = string.match(before, '^(%d+) (%w+) (%w+) %d+(.*)$')
    else
      epoch = newEpoch
      -- First what a full Redis refuses: once a script has written something, it refuses nothing more.
      redis.call('SET', meta, '0 ' .. epoch .. ' 0 0', 'PX', metaTtl)
      redis.call('DEL', stream)
    end
    local kept = ''
    if version then
      local last, lastEpoch = string.match(rest, '^ (%d+) (.*)$')
      if last and version <= last and (versionEpoch == '' or versionEpoch == lastEpoch) then
        return '=' .. offset .. ' ' .. epoch
      end
      kept = ' ' .. version .. ' ' .. versionEpoch
    end
    position = string.format('%.0f', offset + 1)
    redis.call('XADD', stream, 'MAXLEN', '~', size, position, 'd', previous .. '\n' .. body)
    redis.call('PEXPIRE', stream, ttl)
    redis.call('SET', meta, position .. ' ' .. epoch .. ' ' .. mark .. ' ' .. size .. kept, 'PX', metaTtl)
  end
  local answer = meta and (position .. ' ' .. epoch) or ''
  if result then redis.call('SET', result, answer, 'PX', resultTtl) end
  redis.call(command, topic, 'p' .. position .. ' ' .. epoch .. ' ' .. mark .. ' ' .. index .. '\n' .. body)
  return answer
end

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
  if flags == 'p' then
    ok, answer = pcall(append, index, topic, body)
  elseif flags == 'ph' then
    ok, answer = pcall(append, index, topic, body, KEYS[key + 1], KEYS[key + 2], nil, ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3])
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
    ok, answer = pcall(append, index, topic, body, meta, stream, result, size, ttl, metaTtl, version, versionEpoch, resultTtl)
  end
  if not ok then
    if type(answer) == 'table' then answer = answer.err end
    answer = '!' .. string.gsub(tostring(answer), '%c', ' ')
  end
  index = index + 1
  answers[index] = answer
end
return table.concat(answers, '\n')
