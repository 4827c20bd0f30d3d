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

local function entriesFrom(stream, first, last, count)
  local found = {}
  local list
  if count then
    list = redis.call('XRANGE', stream, first, last, 'COUNT', count)
  else
    list = redis.call('XRANGE', stream, first, last)
  end
  for i = 1, #list do
    found[2 * i - 1] = list[i][1]
    found[2 * i] = list[i][2][2]
  end
  return found
end

local function entriesBack(stream, first, last, count)
  local found = {}
  local list
  if count then
    list = redis.call('XREVRANGE', stream, first, last, 'COUNT', count)
  else
    list = redis.call('XREVRANGE', stream, first, last)
  end
  for i = 1, #list do
    found[2 * i - 1] = list[i][1]
    found[2 * i] = list[i][2][2]
  end
  return found
end

local function after(stream, top, offset, limit)
  local missed = top - offset
  if missed < 0 or (limit > 0 and missed > limit) then return nil end
  if missed == 0 then return {} end
  if redis.call('XLEN', stream) < missed then return nil end
  return entriesFrom(stream, '(' .. string.format('%.0f', offset) .. '-0', '+')
end

local function read(meta, stream, op, metaTtl, a, b, c, d)
  local value = redis.call('GET', meta)
  local top, epoch, mark, rest
  if value then
    if metaTtl ~= '0' then redis.call('PEXPIRE', meta, metaTtl) end
    top, epoch, mark, rest = string.match(value, '^(%d+) (%w+) (%w+)(.*)$')
  else
    top, epoch, mark, rest = '0', newEpoch, '0', ''
    if metaTtl ~= '0' then redis.call('SET', meta, '0 ' .. newEpoch .. ' 0', 'PX', metaTtl) end
    redis.call('DEL', stream)
  end
  local entries
  if op == 's' then
    if b == '' or b == epoch then entries = after(stream, tonumber(top), tonumber(a), tonumber(c)) end
  elseif op == 'l' then
    entries = entriesBack(stream, '+', '-', a ~= '0' and a or nil)
  elseif op == 'h' then
    if c ~= '' and c ~= epoch then
      entries = nil
    elseif a == '0' or (b ~= '' and tonumber(b) > tonumber(top)) then
      entries = {}
    else
      local count = a ~= '-1' and a or nil
      if d == '+' then
        entries = entriesFrom(stream, b == '' and '-' or ('(' .. b .. '-0'), '+', count)
      else
        entries = entriesBack(stream, b == '' and '+' or ('(' .. b .. '-0'), '-', count)
      end
    end
  elseif op == 'c' and b == epoch then
    local offset = tonumber(a)
    entries = after(stream, tonumber(top), offset, 0)
    local past = offset > tonumber(top)
    if not past and offset > 0 then
      if entries and #entries > 0 then
        past = string.match(entries[2], '^(%w+)\n') ~= c
      elseif entries then
        past = mark ~= c
      end
    end
    if past then
      entries = nil
      epoch = newEpoch
      redis.call('SET', meta, top .. ' ' .. epoch .. ' ' .. mark .. rest, 'KEEPTTL')
    end
  end
  local answer = entries or {}
  table.insert(answer, 1, (entries and '1 ' or '0 ') .. top .. ' ' .. epoch .. ' ' .. mark)
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
