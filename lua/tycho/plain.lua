-- Plain data as a value of a recipe: numbers, text, true and false, and tables of them. Used for a callback's state.
local native = require "tycho.native"

local M = {}

local kArray = debug.getmetatable(native.array {})
local kMaxDepth = 16
local Data = { __metatable = "data" }

-- A deep copy; nil, what was found and where, when it is not plain: when a checkpoint could not hold it.
function M.copy(x, at, depth)
  local kind = type(x)
  if kind == "number" or kind == "string" or kind == "boolean" then
    if x ~= x or x == math.huge or x == -math.huge then return nil, "a number that is not finite", at end
    if kind == "string" and native.utf8_error(x) then return nil, "text that is not UTF-8", at end
    return x
  end
  local meta = debug.getmetatable(x)
  if kind ~= "table" or (meta and meta ~= kArray) then return nil, "a " .. (kind == "table" and "table of Tycho" or kind), at end
  depth = depth or 1
  if depth > kMaxDepth then return nil, ("tables more than %d deep"):format(kMaxDepth), at end
  local out, size = {}, #x
  for key, value in pairs(x) do
    local place = (at and at .. "." or "") .. tostring(key)
    local is_item = type(key) == "number" and key >= 1 and key <= size and key % 1 == 0
    if type(key) ~= "string" and not is_item then return nil, "a key that is not text", place end
    if type(key) == "string" and size > 0 then return nil, "a list with a named entry", place end
    local copied, found, where = M.copy(value, place, depth + 1)
    if copied == nil then return nil, found, where end
    out[key] = copied
  end
  return out
end

local kSmall = 10000   -- values, and 64 bytes of text count as one

local function left_after(x, left, depth)
  if type(x) == "string" then return left - math.floor(#x / 64) end
  if type(x) ~= "table" or depth > kMaxDepth then return left end
  for _, value in next, x do
    left = left_after(value, left - 1, depth + 1)
    if left < 0 then return left end
  end
  return left
end

-- Whether a value is little enough to be copied and shown when memory may be short.
function M.is_small(x) return left_after(x, kSmall, 1) >= 0 end

-- True when x differs from a copy in numbers, texts and booleans alone, and these are plain.
local function alike(copy, x)
  local more = 0
  for key, value in next, x do
    local old = copy[key]
    if old ~= value then
      local kind = type(value)
      if old == nil then return false end
      if kind == "table" then
        if type(old) ~= "table" or debug.getmetatable(value) or not alike(old, value) then return false end
      elseif not (kind == "number" and value - value == 0 or kind == "boolean"
        or kind == "string" and not native.utf8_error(value)) then
        return false
      end
    end
    more = more + 1
  end
  for _ in next, copy do more = more - 1 end
  return more == 0
end

local function write(copy, x)
  for key, value in next, x do
    local old = copy[key]
    if old ~= value then
      if type(old) == "table" and type(value) == "table" then write(old, value) else copy[key] = value end
    end
  end
end

-- Makes a copy equal to the table that it was made of, as that is now; false when that takes a new copy, and nothing is
-- touched. Most calls of a callback change little of its state.
function M.follow(copy, x)
  if not alike(copy, x) then return false end
  write(copy, x)
  return true
end

-- A plain table as a recipe keeps it: opaque, so that nothing looks for keys of the schema inside. Nil and a message.
function M.keep(x)
  local copied, found, at = M.copy(x)
  if copied ~= nil and type(copied) == "table" then return setmetatable({ data = copied }, Data) end
  return nil, ("expected a table of plain data (numbers, text, true and false)%s"):format(
    found and (", found %s%s"):format(found, at and " at " .. at or "") or "")
end

function M.is(x) return debug.getmetatable(x) == Data end

return M
