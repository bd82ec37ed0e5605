-- t.append, t.prepend, t.insert, t.remove, t.replace: a list or an open table made from the one that is there.
local schema = require "tycho.schema"
local values = require "tycho.values"

local M = {}

local function same(a, b)
  if values.is_quantity(a) and values.is_quantity(b) then return a == b end
  return schema.literal(a) == schema.literal(b)
end

-- The items of `list` that are not among `gone`, and how many were taken out.
function M.without(list, gone)
  local out = {}
  for _, item in ipairs(list) do
    local keep = true
    for _, one in ipairs(gone) do keep = keep and not same(item, one) end
    if keep then out[#out + 1] = item end
  end
  return out, #list - #out
end

-- `list` with `items` before its position `at`.
function M.inserted(list, items, at)
  local out = {}
  for i = 1, at - 1 do out[#out + 1] = list[i] end
  for _, item in ipairs(items) do out[#out + 1] = item end
  for i = at, #list do out[#out + 1] = list[i] end
  return out
end

-- What a request makes of a list; nil and why not. Items of text are read by `read` first, so that "10ba" can be removed.
function M.apply(request, list, read)
  local given = request.given
  if request.what == "replace" then return given end
  if request.what == "append" then return M.inserted(list, given, #list + 1) end
  if request.what == "prepend" then return M.inserted(list, given, 1) end
  if request.what == "remove" then
    local gone = {}
    for i, item in ipairs(given) do gone[i] = read(item) or item end
    local out, count = M.without(list, gone)
    if count == 0 then return nil, "the list does not contain " .. schema.brief(given) end
    return out
  end
  if request.at < 1 or request.at > #list + 1 or request.at % 1 ~= 0 then
    return nil, ("t.insert expects a position from 1 to %d"):format(#list + 1)
  end
  return M.inserted(list, given, request.at)
end

return M
