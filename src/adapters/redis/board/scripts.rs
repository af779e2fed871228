//! What Redis itself does, in Lua: each script is one step that no other client interrupts.
//!
//! Numbers of records are compared as decimal strings, length first: Lua's own are exact to 2^53 only. Stamps are Lua
//! numbers and stay below that. Times to live are counted by Redis; no script asks for the time.

/// What the reading script answers: see [`READ`].
pub type Answer = (Vec<u8>, Vec<usize>, bool, Strings, Strings, Strings);
/// The content of Redis: anyone with access may have written it.
pub type Strings = Vec<Vec<u8>>;

/// Stores one copy, or the end of one, if it is newer than what is there, so that late writes of a paused client change
/// nothing.
///
/// | KEYS | | ARGV | |
/// |---|---|---|---|
/// | 1 | the copy | 1, 2, 3 | member, workload, channel |
/// | 2 | the member's stamp | 4, 5, 6 | origin, seq, revision |
/// | 3 | its index | 7, 8, 9, 10 | version, phase, body, MAC |
/// | 4 | its passing copies | 11 | seconds to live, or 0 |
/// | 5 | the set of members | 12 | the token of the copy that may be replaced unseen, or nothing |
/// | | | 13, 14, 15 | the highest stamp we know, a random one to begin with, and how far to jump ahead |
///
/// Answers `stored stamp lost?`, `kept stamp`, `foreign`, or what is in the way: `newer|other token body MAC`.
///
/// A stamp never repeats what a reader may have counted already, although Redis forgets: after a loss it goes on far above
/// the highest we know (another process of ours may know higher ones), and without any knowledge at a random place. Nor is it
/// ever below what is in the index.
pub const MERGE: &str = r"
local member, workload, channel, origin, seq, rev, version, phase, body, mac, ttl, over = unpack(ARGV, 1, 12)
local floor, base, jump = tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])

local function number(text) return text and string.match(text, '^[1-9]%d*$') or '0' end
local function above(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local function newer(seq, rev, than_seq, than_rev)
  if seq ~= than_seq then return above(seq, than_seq) end
  return above(rev, than_rev)
end

local there = redis.pcall('HMGET', KEYS[1], 'org', 'seq', 'rev', 'phase', 'body', 'mac')
if there.err then
  if string.find(there.err, 'WRONGTYPE', 1, true) then return {'foreign'} end
  return there
end
for i = 1, 6 do there[i] = there[i] or '' end
local their_seq, their_rev = number(there[2]), number(there[3])

local stamp = tonumber(redis.call('GET', KEYS[2]) or '')
local function bump()
  local top = redis.call('ZREVRANGEBYSCORE', KEYS[3], 6e15, 0, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if stamp and stamp >= floor then
    stamp = stamp + 1 + jump
  elseif floor > 0 then
    stamp = floor + 2^20
  else
    stamp = base
  end
  if top then stamp = math.max(stamp, tonumber(top) + 1) end
  redis.call('SET', KEYS[2], string.format('%.0f', stamp))
  return string.format('%.0f', stamp)
end

local same = there[1] == origin and there[2] == seq and there[3] == rev and there[5] == body and there[6] == mac
if same then
  local score = tonumber(redis.call('ZSCORE', KEYS[3], workload) or '')
  if score and stamp and score <= stamp and stamp >= floor then
    if ttl ~= '0' then
      redis.call('EXPIRE', KEYS[1], ttl)
      redis.call('ZADD', KEYS[4], bump(), workload)
    end
    return {'kept', string.format('%.0f', stamp)}
  end
elseif there[1] ~= '' then
  local token = redis.sha1hex(table.concat(there, ' '))
  local ended = there[4] == 'gone' and phase ~= 'gone' and their_seq == seq and their_rev == rev
  local obstacle
  if there[1] ~= origin then
    obstacle = 'other'
  elseif ended or newer(their_seq, their_rev, seq, rev) then
    obstacle = 'newer'
  end
  if obstacle == 'other' and phase == 'gone' then
    return {'kept', string.format('%.0f', stamp or 0)}
  end
  if obstacle and token ~= over then
    if #there[5] > 65536 or #there[6] > 64 then there[5], there[6] = '', '' end
    return {obstacle, token, there[5], there[6]}
  end
end

local lost = (not stamp or stamp < floor) and 'lost' or ''
local now = bump()
redis.call('HSET', KEYS[1], 'org', origin, 'seq', seq, 'rev', rev, 'phase', phase, 'body', body)
if phase == 'gone' then redis.call('HDEL', KEYS[1], 'version') else redis.call('HSET', KEYS[1], 'version', version) end
if mac == '' then redis.call('HDEL', KEYS[1], 'mac') else redis.call('HSET', KEYS[1], 'mac', mac) end
redis.call('ZADD', KEYS[3], now, workload)
redis.call('SADD', KEYS[5], member)
if ttl == '0' then
  redis.call('PERSIST', KEYS[1])
  redis.call('ZREM', KEYS[4], workload)
else
  redis.call('EXPIRE', KEYS[1], ttl)
  redis.call('ZADD', KEYS[4], now, workload)
end
-- All live equally long, so the oldest end first. Two for each one that may have come: they never pile up.
local prefix = string.sub(KEYS[1], 1, #KEYS[1] - #workload)
for _, old in ipairs(redis.call('ZRANGE', KEYS[4], 0, 1)) do
  if redis.call('EXISTS', prefix .. old) == 1 then break end
  redis.call('ZREM', KEYS[3], old)
  redis.call('ZREM', KEYS[4], old)
end
redis.call('PUBLISH', channel, member .. ' ' .. workload .. ' ' .. rev)
return {'stored', now, lost}
";

/// Leaves a beat, and answers with the one that was there before, if it is no longer than one of ours can be.
///
/// KEYS: the set of members, the beat. ARGV: the member, its beat, seconds to live, the most bytes.
pub const BEAT: &str = r"
redis.call('SADD', KEYS[1], ARGV[1])
local before = ''
if redis.call('STRLEN', KEYS[2]) <= tonumber(ARGV[4]) + 128 then before = redis.call('GET', KEYS[2]) or '' end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
return before
";

/// What the server is called, from now on by this name if it has none yet. One that is longer than any of ours is replaced.
///
/// KEYS: its name. ARGV: the new name.
pub const SERVER: &str = r"
local length = redis.call('STRLEN', KEYS[1])
if length == 0 or length > 64 then redis.call('SET', KEYS[1], ARGV[1]) end
return redis.call('GET', KEYS[1])
";

/// Removes everything of one member: it was forgotten, and what it left would be read, and perhaps disbelieved, for ever. One
/// that lives posts again.
///
/// KEYS: its index, the set of members. ARGV: the prefix of all keys, its name. Answers how many records there were.
pub const FORGET: &str = r"
local prefix, member = ARGV[1], ARGV[2]
local records = redis.pcall('ZRANGE', KEYS[1], 0, -1)
if records.err then records = {} end
for _, workload in ipairs(records) do redis.call('DEL', prefix .. 'rec:' .. member .. ':' .. workload) end
for _, kind in ipairs({'index', 'passing', 'stamp', 'hb'}) do redis.call('DEL', prefix .. kind .. ':' .. member) end
redis.call('SREM', KEYS[2], member)
return #records
";

/// Reads what changed since the reader's cursor, whose beats are there, and whether our own copies are.
///
/// KEYS: the set of members. ARGV: the prefix of all other keys, our own name, the most records and bytes to answer with,
/// the longest body and beat, where to look among our own copies and how many at, whether only the copies of the members that
/// follow are wanted, how many workloads are to be read again, these, then member and cursor in turn.
///
/// Answers `our stamp, {copies missing, copies looked at, workloads read again}, more?`, then in turn `member, cursor, beat`
/// of each member, `member, workload, origin, body, MAC` of each change, and `member, of what, why not` of what cannot be
/// read. If another program, or a forger, has changed a key, only that key is lost. The script checks lengths before it
/// reads values, and reads the named members first, so made-up names do not block real members.
pub const READ: &str = r"
local prefix, us = ARGV[1], ARGV[2]
local most, bytes_left, longest = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local probe_at, probe_many = tonumber(ARGV[6]), tonumber(ARGV[7])
local only, again_many = ARGV[8] == '1', tonumber(ARGV[9])
local cursors, found = {}, {}
for i = 10 + again_many, #ARGV, 2 do
  cursors[ARGV[i]] = ARGV[i + 1]
  found[#found + 1] = ARGV[i]
end
local members, changes, problems, more, all = {}, {}, {}, 0, most

-- One is always read: beats alone may be more than an answer should have, and the reader must come to the end.
local function is_full() return most <= 0 or (bytes_left <= 0 and most < all) end

local function add(to, ...)
  for _, value in ipairs({...}) do to[#to + 1] = value end
end
local function try(member, what, ...)
  local answer = redis.pcall(...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if not string.find(answer.err, 'WRONGTYPE', 1, true) then error(answer.err) end
  add(problems, member, what, 'foreign')
end

local function read_copy(member, workload)
  if #workload > 400 then return add(problems, member, '', 'name') end
  local key = prefix .. 'rec:' .. member .. ':' .. workload
  local size = 0
  for _, field in ipairs({'org', 'body', 'mac'}) do
    local length = try(member, workload, 'HSTRLEN', key, field)
    if not length then return end
    size = size + length
  end
  if size > longest + 512 then return add(problems, member, workload, 'long') end
  local org, body, mac = unpack(redis.call('HMGET', key, 'org', 'body', 'mac'))
  -- Without a body it has passed away, or was evicted; its owner finds out.
  if body then add(changes, member, workload, org or '', body, mac or '') end
  bytes_left = bytes_left - size - 200
end

local function read_changes(member, stamp)
  local from = cursors[member] or '0'
  if stamp < tonumber(from) then from = '0' end
  if stamp <= tonumber(from) then return from end
  local upto = string.format('%.0f', stamp)
  if is_full() then more = 1 return from end
  local index = prefix .. 'index:' .. member
  local found = try(member, 'index', 'ZRANGEBYSCORE', index, '(' .. from, upto, 'WITHSCORES', 'LIMIT', 0, most + 1)
  if not found then return from end
  for i = 1, #found, 2 do
    if is_full() then more = 1 return from end
    read_copy(member, found[i])
    most, from = most - 1, found[i + 1]
  end
  return upto
end

-- The beats of all come first: they are in every answer, and only what they leave is for records.
local named = #found
local beats, beats_left = {}, 1048576
for _, member in ipairs(redis.call('SRANDMEMBER', KEYS[1], 100)) do
  if not cursors[member] and #found < named + 100 then found[#found + 1] = member end
end
for at, member in ipairs(found) do
  if #member > 63 then
    add(problems, '', 'members', 'name')
  else
    local beat, length = '', try(member, 'beat', 'STRLEN', prefix .. 'hb:' .. member)
    if length and (length > longest + 128 or (at > named and length > beats_left)) then
      add(problems, member, 'beat', 'long')
    elseif length then
      beat = redis.call('GET', prefix .. 'hb:' .. member) or ''
    end
    beats[member] = beat
    bytes_left, beats_left = bytes_left - #beat, beats_left - #beat
  end
end
local again = 0
while again < again_many and not (bytes_left <= 0 and again > 0) do
  again = again + 1
  for at = 1, named do
    if found[at] ~= us and beats[found[at]] then read_copy(found[at], ARGV[9 + again]) end
  end
end
if again > 0 and bytes_left <= 0 then most = most - 1 end
for _, member in ipairs(found) do
  if beats[member] then
    local cursor = '0'
    if member ~= us and (cursors[member] or not only) then
      local stamp = tonumber(try(member, 'stamp', 'GET', prefix .. 'stamp:' .. member) or '') or 0
      cursor = read_changes(member, stamp)
    end
    add(members, member, cursor, beats[member])
  end
end

local missing, looked_at = 0, redis.call('ZRANGE', prefix .. 'index:' .. us, probe_at, probe_at + probe_many - 1)
for _, workload in ipairs(looked_at) do
  local gone = redis.call('EXISTS', prefix .. 'rec:' .. us .. ':' .. workload) == 0
  if gone and not redis.call('ZSCORE', prefix .. 'passing:' .. us, workload) then missing = missing + 1 end
end
local stamp = try(us, 'stamp', 'STRLEN', prefix .. 'stamp:' .. us) or 0
stamp = stamp > 0 and stamp < 32 and redis.call('GET', prefix .. 'stamp:' .. us) or ''
return {stamp, {missing, #looked_at, again}, more, members, changes, problems}
";
