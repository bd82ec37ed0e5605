-- Plain data as a value of a recipe: numbers, text, true and false, and tables of them. What a callback remembers.
local native = require "tycho.native"

local M = {}

local kArray = debug.getmetatable(native.array {})
local kMaxDepth = 16
local Data = { __metatable = "data" }

-- A deep copy; nil, what was found and where, when it is not plain.
function M.copy(x, at, depth)
  local kind = type(x)
  if kind == "number" or kind == "string" or kind == "boolean" then
    if x ~= x or x == math.huge or x == -math.huge then return nil, "a number that is not finite", at end
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
    if type(key) == "string" and size > 0 then return nil, "a list with a name in it", place end
    local copied, found, where = M.copy(value, place, depth + 1)
    if copied == nil then return nil, found, where end
    out[key] = copied
  end
  return out
end

-- A plain table as a recipe keeps it: opaque, so that nothing looks for keys of the schema inside. Nil and a message.
function M.keep(x)
  local copied, found, at = M.copy(x)
  if copied ~= nil and type(copied) == "table" then return setmetatable({ data = copied }, Data) end
  return nil, ("wanted a table of plain data (numbers, text, true and false)%s"):format(
    found and (", found %s%s"):format(found, at and " at " .. at or "") or "")
end

function M.is(x) return debug.getmetatable(x) == Data end

return M
