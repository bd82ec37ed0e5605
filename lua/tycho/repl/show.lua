-- Prints values: tables sorted and with limits, recipes as they are written, objects of the engine as they describe
-- themselves.
local component = require "tycho.component"
local history = require "tycho.history"
local lexer = require "tycho.lexer"
local node = require "tycho.node"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local kMaxDepth, kMaxItems, kMaxText, kWide = 4, 40, 400, 88
local kMaxNumbers = 512   -- of a list that stands in rows

local show   -- of any value, below

local function quoted(text)
  if #text > kMaxText then text = text:sub(1, kMaxText) .. "..." end
  local escaped = text:gsub('[%c"\\]', function(c)
    local known = { ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ['"'] = '\\"', ["\\"] = "\\\\" }
    return known[c] or ("\\%03d"):format(c:byte())
  end)
  return '"' .. escaped .. '"'
end

local function key_text(key)
  if type(key) == "string" and lexer.is_name(key) then return key end
  return "[" .. show(key, kMaxDepth, {}) .. "]"
end

-- Keys in order: the list first, then numbers, names, and the rest by how they print.
local function ordered_keys(t)
  local rank = { number = 1, string = 2, boolean = 3 }
  local keys = {}
  for key in pairs(t) do
    if not (type(key) == "number" and key >= 1 and key <= #t and key % 1 == 0) then keys[#keys + 1] = key end
  end
  table.sort(keys, function(a, b)
    local x, y = rank[type(a)] or 4, rank[type(b)] or 4
    if x ~= y then return x < y end
    if type(a) == "number" or type(a) == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  return keys
end

-- A long list of numbers and nothing else, such as tokens, in rows that are aligned; nil for another table.
local function number_rows(t)
  if #t <= kMaxItems / 2 then return nil end
  local parts, width, count = {}, 0, 0
  for key, value in pairs(t) do
    if type(key) ~= "number" or type(value) ~= "number" then return nil end
    count = count + 1
  end
  if count ~= #t then return nil end
  for i = 1, math.min(#t, kMaxNumbers) do
    parts[i] = values.number_text(t[i])
    width = math.max(width, #parts[i])
  end
  local per_row, out = math.max(1, math.floor((kWide - 2) / (width + 2))), {}
  for first = 1, #parts, per_row do
    local row = {}
    for i = first, math.min(first + per_row - 1, #parts) do row[#row + 1] = (" "):rep(width - #parts[i]) .. parts[i] end
    out[#out + 1] = "  " .. table.concat(row, ", ")
  end
  if #t > #parts then out[#out + 1] = ("  ... %d more"):format(#t - #parts) end
  return "{\n" .. table.concat(out, ",\n") .. "\n}"
end

local function table_text(t, depth, inside)
  if inside[t] then return "<the table around it>" end
  if next(t) == nil then return "{}" end
  if depth == 0 then return "{...}" end
  local rows = number_rows(t)
  if rows then return rows end
  inside[t] = true
  local parts, left = {}, kMaxItems
  local function add(text)
    left = left - 1
    if left >= 0 then parts[#parts + 1] = text end
  end
  for i = 1, #t do
    if left <= -1 then left = left - (#t - i) - 1 break end
    add(left > 0 and show(t[i], depth - 1, inside) or "")
  end
  for _, key in ipairs(ordered_keys(t)) do
    add(left > 0 and key_text(key) .. " = " .. show(t[key], depth - 1, inside) or "")
  end
  inside[t] = nil
  if left < 0 then parts[#parts + 1] = ("... %d more"):format(-left) end
  local line = "{ " .. table.concat(parts, ", ") .. " }"
  if #line <= kWide and not line:find("\n") then return line end
  local indented = table.concat(parts, ",\n"):gsub("\n", "\n  ")
  return "{\n  " .. indented .. "\n}"
end

-- A group or a component of a recipe: what it is, and where it was chosen.
local function node_text(behind)
  if behind.recipe then return ("recipe %s: r:show() lists what it sets"):format(behind.recipe.name) end
  local plain, parts = node.plain(behind), {}
  for _, key in ipairs(behind.keys) do
    local value = plain[key]
    if value ~= nil and value ~= values.null then
      local name = behind.spec.type == "list" and "" or lexer.key(tostring(key)) .. " = "
      parts[#parts + 1] = name .. schema.literal(value)
    end
  end
  local text = (behind.kind and behind.kind .. " " or "") .. "{ " .. table.concat(parts, ", ") .. " }"
  local site = history.site(behind.owner, behind.path)
  return site and ("%s     -- %s"):format(text, site_of.text(site, behind.owner.sites)) or text
end

function show(value, depth, inside)
  local kind = type(value)
  if kind == "string" then return quoted(value) end
  if kind == "number" then return values.number_text(value) end
  if kind == "table" and not values.is_quantity(value) then
    local meta = debug.getmetatable(value)
    if not (meta and meta.__tostring) then return table_text(value, depth, inside) end
  end
  if kind == "userdata" then
    local behind = node.behind(value)
    if behind then return node_text(behind) end
    local made = component.behind(value)
    if made then return ("t.%s.%s %s"):format(made.namespace, made.kind, table_text(made.given, depth, inside)) end
    local ok, text = pcall(tostring, value)   -- of an object whose session is over: what that says
    return ok and (text:gsub("\n$", "")) or "<" .. tostring(type(text) == "table" and text.message or text) .. ">"
  end
  if kind == "function" or kind == "thread" then return kind end
  return tostring(value)
end

-- The text of a value; text of several lines stands as it is.
function M.value(value)
  if type(value) == "string" and value:find("\n") then return value end
  local file = type(value) == "function" and debug.getinfo(value, "S").source:match "^@(.*)$"   -- of a recipe or the prompt
  if file then return ("function     -- %s:%d"):format(file, debug.getinfo(value, "S").linedefined) end
  return show(value, kMaxDepth, {})
end

-- A value's text without what clocks say, which differs between ranks: of trainer:step, of trainer:eval.
function M.without_times(text)
  return (text:gsub("seconds = [%w%.%+%-]+", "seconds"):gsub("%S+ s/ba", "s/ba"):gsub("%S+ ?%u? tok/s", "tok/s")
    :gsub("[%d%.]+ ?%% mfu", "mfu"))
end

-- One short line: for lists of variables.
function M.brief(value)
  local text = (type(value) == "function" and "function" or M.value(value)):gsub("\n.*", " ...")
  return #text > 60 and text:sub(1, 57) .. "..." or text
end

return M
