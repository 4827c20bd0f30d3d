-- Reads positions and histories of a batch of channels. A stream that is not there begins, and its life is prolonged.
--
-- KEYS  for each item: meta, stream
-- ARGV  epoch for a stream that begins; then for each item: op, meta ttl (ms; 0: neither begun nor prolonged), and
--         p  nothing: the position only
--         s  offset, epoch, limit        all after the offset, or nothing if they are not all there
--         l  limit                       the newest ones (0: all)
--         h  limit, since, epoch, order  a page; since '' = from the end; order '+' or '-'
--         c  offset, epoch, mark         as s without a limit, for one who knows the mark of its last publication too: whoever comes
--                                        from a past that this server has lost is told, and the stream gets another epoch
-- Returns for each item an array: '<1 or 0> <offset> <epoch> <mark>', then id and value of each entry; or '!<text>'.
local newEpoch = ARGV[1]

local function entries(command, stream, from, to, count)
  local list
  if count then
    list = redis.call(command, stream, from, to, 'COUNT', count)
  else
    list = redis.call(command, stream, from, to)
  end
  local found = {}
  for i = 1, #list do
    found[2 * i - 1] = list[i][1]
    found[2 * i] = list[i][2][2]
  end
  return found
end

-- offsets as ids
local function id(offset)
  return string.format('%.0f-0', offset)
end

-- the oldest offset that is kept, top + 1 if none is
local function oldest(stream, top, size)
  return top + 1 - math.min(redis.call('XLEN', stream), size)
end

local function after(stream, top, size, offset, limit)
  local missed = top - offset
  if missed < 0 or (limit > 0 and missed > limit) then return nil end
  if missed == 0 then return {} end
  if oldest(stream, top, size) > offset + 1 then return nil end
  return entries('XRANGE', stream, id(offset + 1), '+')
end

local function page(stream, top, size, limit, since, order)
  if limit == 0 then return {} end
  local first = oldest(stream, top, size)
  local count = limit > 0 and limit or nil
  if order == '+' then return entries('XRANGE', stream, id(math.max(first, since and since + 1 or 0)), '+', count) end
  local last = since and since - 1 or top
  if last < first or last > top then return {} end
  return entries('XREVRANGE', stream, id(last), id(first), count)
end

local function read(meta, stream, op, metaTtl, a, b, c, d)
  local value = redis.call('GET', meta)
  local top, epoch, mark, size, rest
  if value then
    if metaTtl ~= '0' then redis.call('PEXPIRE', meta, metaTtl) end
    top, epoch, mark, size, rest = string.match(value, '^(%d+) (%w+) (%w+) (%d+)(.*)$')
  else
    top, epoch, mark, size, rest = '0', newEpoch, '0', '0', ''
    if metaTtl ~= '0' then redis.call('SET', meta, '0 ' .. newEpoch .. ' 0 0', 'PX', metaTtl) end
    redis.call('DEL', stream)
  end
  local position, kept = tonumber(top), tonumber(size)
  local found
  if op == 's' then
    if b == '' or b == epoch then found = after(stream, position, kept, tonumber(a), tonumber(c)) end
  elseif op == 'l' then
    found = page(stream, position, kept, a == '0' and -1 or tonumber(a), nil, '-')
  elseif op == 'h' then
    if c == '' or c == epoch then found = page(stream, position, kept, tonumber(a), tonumber(b), d) end
  elseif op == 'c' and b == epoch then
    local offset = tonumber(a)
    found = after(stream, position, kept, offset, 0)
    local past = offset > position
    if found and offset > 0 then
      if #found > 0 then
        past = string.match(found[2], '^(%w+)\n') ~= c
      else
        past = mark ~= c
      end
    end
    if past then
      found = nil
      epoch = newEpoch
      redis.call('SET', meta, top .. ' ' .. epoch .. ' ' .. mark .. ' ' .. size .. rest, 'KEEPTTL')
    end
  end
  local answer = found or {}
  table.insert(answer, 1, (found and '1 ' or '0 ') .. top .. ' ' .. epoch .. ' ' .. mark)
  return answer
end

local counts = { p = 0, s = 3, l = 1, h = 4, c = 3 }
local answers = {}
local arg = 1
for item = 1, #KEYS / 2 do
  local op, metaTtl = ARGV[arg + 1], ARGV[arg + 2]
  arg = arg + 2
  local ok, answer = pcall(read, KEYS[2 * item - 1], KEYS[2 * item], op, metaTtl, ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4])
  arg = arg + counts[op]
  if not ok then
    if type(answer) == 'table' then answer = answer.err end
    answer = { '!' .. tostring(answer) }
  end
  answers[item] = answer
end
return answers
