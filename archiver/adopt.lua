-- Whose stream it is: one step on the server (protocol.md §1). Creates the new archive's marker at 0-0 and destroys the markers that the look showed, or
-- destroys alone (silt release). Sent by adopt.c alone. Everything is compared before anything is changed: a marker that moved was moved by an archiver at work.
--
-- KEYS  1 the stream
-- ARGV  1 master_replid   2 the new marker's name ('': none)   3, 4 name and position of a marker that goes, 5, 6 of the next ..
-- Answers {'OK', how many were destroyed}, {'STALE', fact, value} or {'ERR', error}; after these two nothing was changed.
local key = KEYS[1]
local function stale(fact, value) return {'STALE', fact, tostring(value or '')} end

local raw = redis.pcall('XINFO', 'STREAM', key)
if raw.err then return stale('key', raw.err) end
local replid = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
if replid ~= ARGV[1] then return stale('master_replid', replid) end

local due = {}
for i = 3, #ARGV, 2 do due[ARGV[i]] = ARGV[i + 1] end
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local group = {}
  for i = 1, #flat, 2 do group[flat[i]] = flat[i + 1] end
  local name = group['name']
  if string.sub(name, 1, 5) == 'silt:' then
    if due[name] ~= group['last-delivered-id'] then return stale('marker', name .. ' at ' .. group['last-delivered-id']) end
    due[name] = false
  end
end
for name, at in pairs(due) do
  if at then return stale('marker', name .. ' is gone') end
end

-- One that is not there: says whether destroying is allowed at all, before anything is made.
local done = redis.pcall('XGROUP', 'DESTROY', key, ARGV[2] ~= '' and ARGV[2] or 'silt:none')
if type(done) == 'table' and done['err'] then return {'ERR', done['err']} end
-- The new one first: where the server's memory is full it cannot be made, and the old one stays.
if ARGV[2] ~= '' then
  done = redis.pcall('XGROUP', 'CREATE', key, ARGV[2], '0-0')
  if type(done) == 'table' and done['err'] then return {'ERR', done['err']} end
end
local destroyed = 0
for i = 3, #ARGV, 2 do destroyed = destroyed + redis.call('XGROUP', 'DESTROY', key, ARGV[i]) end
return {'OK', destroyed}
