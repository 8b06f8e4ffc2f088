-- The exact-id way (protocol.md §4): removes exactly the named entries, each compared with its archived bytes in the same step on the server. For streams that
-- carry no marker of ours (claim: key, claim: off); sent by trim_exact.c alone. All are compared before any is removed.
--
-- KEYS  1 the stream, 2 its claim key (only under claim: key)
-- ARGV  1 what the claim key must say ('': none)    2.. id and SHA-1, in pairs
-- Answers {'OK', removed} or {'STALE', fact, value}: nothing removed. An entry that is gone already is nobody's mistake.
local function digest(entry)
  local t = {entry[1]}
  for _, text in ipairs(entry[2]) do t[#t + 1] = #text .. ':' .. text end
  return redis.sha1hex(table.concat(t, ','))
end

if KEYS[2] then
  local claim = redis.call('GET', KEYS[2])
  if claim ~= ARGV[1] then return {'STALE', 'claim', tostring(claim or '')} end
end
local ids = {}
for i = 2, #ARGV, 2 do
  local entry = redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i])[1]
  if entry then
    if digest(entry) ~= ARGV[i + 1] then return {'STALE', 'bytes', ARGV[i]} end
    ids[#ids + 1] = ARGV[i]
  end
end
if #ids == 0 then return {'OK', 0} end
return {'OK', redis.call('XDEL', KEYS[1], unpack(ids))}
