-- Compare, tell, trim: one step on the server (protocol.md §4). The only thing in the tree that removes entries, and but for adopt.lua the only one that touches a marker; sent by trim.c alone.
-- Everything is compared before anything is changed; a mismatch answers {'STALE', fact, value} and changes nothing. No shebang line: with one, the
-- server refuses the script when its memory is full, exactly when trimming matters.
--
-- KEYS  1 the stream, 2 its seam key (only where the stream has a seam)
-- ARGV  1 master_replid            2 threshold (0-0: trim nothing)   3 entries-added   4 length   5 last-generated-id   6 max-deleted-entry-id
--       7 the marker's name        8 where it stands ('': it is not there, create it at 0-0)    9 where it shall stand
--      10 first entry's id or 0-0  11 its SHA-1 ('': none)            12 hold|ignore: other groups   13 the threshold's predecessor
--      14 off|best-effort|strict   15 the seam's new value            16 branded|wire: what it is     17.. groups that no longer hold
-- Answers {'OK', removed, entries-added, length, last-generated-id, max-deleted-entry-id, first id, its SHA-1, seam trouble}, {'STALE', fact, value},
-- {'SEAM', error} (strict: nothing trimmed) or {'ERR', error} (the server refused; nothing trimmed).
local key, threshold = KEYS[1], ARGV[2]

-- Ids compare as zero-padded pairs: a Lua number holds 53 bits, an id has 128.
local function pad(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  if not ms then return nil end
  return string.rep('0', 20 - #ms) .. ms .. string.rep('0', 20 - #seq) .. seq
end
-- Byte order: Lua's own comparison follows the server's locale, in which letters may sort otherwise (digits do not).
local function before(a, b)
  for i = 1, #a do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x < y end
  end
  return false
end
local function map(flat)
  local t = {}
  for i = 1, #flat, 2 do t[flat[i]] = flat[i + 1] end
  return t
end
-- An entry's bytes under one name: the id, then each name and value with its length before it, so that no two entries read the same.
local function digest(entry)
  local t = {entry[1]}
  for _, text in ipairs(entry[2]) do t[#t + 1] = #text .. ':' .. text end
  return redis.sha1hex(table.concat(t, ','))
end
local function stale(fact, value) return {'STALE', fact, tostring(value or '')} end

local raw = redis.pcall('XINFO', 'STREAM', key)
if raw.err then return stale('key', raw.err) end
local now = map(raw)

-- 1. the object: counters, replication history
local added, last = now['entries-added'], pad(now['last-generated-id'])
if added >= 9007199254740992 then return stale('counter', 'entries-added is 2^53 or more') end
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if replid ~= ARGV[1] then return stale('master_replid', replid) end
local more = added - tonumber(ARGV[3])
if more < 0 then return stale('entries-added', added) end
if last < pad(ARGV[5]) or (more > 0 and last == pad(ARGV[5])) then return stale('last-generated-id', now['last-generated-id']) end
if now['length'] > tonumber(ARGV[4]) + more then return stale('length', now['length']) end
if pad(now['max-deleted-entry-id']) < pad(ARGV[6]) then return stale('max-deleted-entry-id', now['max-deleted-entry-id']) end

-- 2. the first entry: equal, bytes and all
local first = now['first-entry']
if first then
  if first[1] ~= ARGV[10] then return stale('first-entry', first[1]) end
  if digest(first) ~= ARGV[11] then return stale("first entry's bytes", first[1]) end
elseif ARGV[10] ~= '0-0' then
  return stale('first-entry', 'none')
end

-- 3. the groups: our marker, no other archive's, nobody who still wants what would go
local released = {}
for i = 17, #ARGV do released[ARGV[i]] = true end
local at
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = map(flat)
  local name = group['name']
  if name == ARGV[7] then
    at = group['last-delivered-id']
  elseif string.sub(name, 1, 5) == 'silt:' then
    return stale('claim', name)
  elseif threshold ~= '0-0' and ARGV[12] == 'hold' and not released[name] then
    if pad(group['last-delivered-id']) < pad(ARGV[13]) then return stale('group', name) end
    if group['pending'] > 0 then
      local pending = redis.call('XPENDING', key, name)
      if pending[2] and pad(pending[2]) < pad(threshold) then return stale('pending', name) end
    end
  end
end
if (at or '') ~= ARGV[8] then return stale('marker', at) end

-- 4. the seam may only stand where a string stands or nothing; looked at before anything is written
local seam, trouble, old = ARGV[14] ~= 'off', '', false
if seam then
  old = redis.pcall('GET', KEYS[2])
  if type(old) == 'table' then
    seam, trouble = false, old['err']
    if ARGV[14] == 'strict' and threshold ~= '0-0' then return {'SEAM', trouble} end
  end
end

-- 5. the marker. SETID works when memory is full, CREATE does not.
local done
if not at then
  done = redis.pcall('XGROUP', 'CREATE', key, ARGV[7], '0-0')
  if done['err'] then return {'ERR', done['err']} end
  at = '0-0'
end
if at ~= ARGV[9] then
  done = redis.pcall('XGROUP', 'SETID', key, ARGV[7], ARGV[9])
  if done['err'] then return {'ERR', done['err']} end
end

-- 6. the seam, before the trim: after it, a reader without the archive would take the hole for the end. Only forward; what is no seam value is replaced.
if seam then
  local new, forward = ARGV[15], true
  if old and ARGV[16] == 'wire' then
    forward = not (#old <= 41 and string.match(old, '^%d+-%d+$')) or pad(old) < pad(new)
  elseif old and #old == #new and string.match(old, '^%u%u%u%w+$') and string.sub(old, 1, 3) == string.sub(new, 1, 3) then
    forward = before(old, new)
  end
  if forward then
    done = redis.pcall('SET', KEYS[2], new)
    if done['err'] then
      trouble = done['err']
      if ARGV[14] == 'strict' and threshold ~= '0-0' then return {'SEAM', trouble} end
    end
  end
end

-- 7. the trim: exact, by id, never by count (promise 2)
local removed = 0
if threshold ~= '0-0' then
  removed = redis.pcall('XTRIM', key, 'MINID', '=', threshold)
  if type(removed) == 'table' then return {'ERR', removed['err']} end
end
now = map(redis.call('XINFO', 'STREAM', key))
first = now['first-entry']
return {'OK', removed, now['entries-added'], now['length'], now['last-generated-id'], now['max-deleted-entry-id'],
  first and first[1] or '0-0', first and digest(first) or '', trouble}
