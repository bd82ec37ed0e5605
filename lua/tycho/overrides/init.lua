-- The grammar of arguments: one text in, one override out, with the columns of its parts for carets.
--   path = value   path := expression   path += -= *= /= operand   +path=value   ~path   @file
local other_values = require "tycho.hints.other_values"

local M = {}

-- The operator that begins at `at`, and where it ends.
local function operator(text, at)
  local two = text:match("^[:%+%-%*/]=", at)
  if two then return two, at + 1 end
  if text:sub(at, at) == "=" then return "=", at end
end

local function refuse(message, col, len, hint) return nil, { message = message, col = col, len = len, hint = hint } end

-- One step of a path at `at`: { key, col, len } and the column after it.
local function read_part(text, at)
  local quote = text:match("^[\"']", at)
  if quote then
    local stop = text:find(quote, at + 1, true)
    if not stop then return refuse("this quote is never closed", at, 1) end
    return { key = text:sub(at + 1, stop - 1), col = at, len = stop - at + 1 }, stop + 1
  end
  local word = text:match("^[%a_][%w_]*", at) or text:match("^%d+", at)
  if not word then
    local odd = text:sub(at, at)
    if odd == "" then return refuse("a key is missing here", at, 1) end
    return refuse(("a key cannot begin with %s"):format(odd), at, 1)
  end
  return { key = tonumber(word) or word, col = at, len = #word }, at + #word
end

-- The path that begins at `at`: its parts, and the column after it.
local function read_path(text, at)
  local parts = {}
  while true do
    local part, after = read_part(text, at)
    if not part then return nil, after end
    parts[#parts + 1] = part
    local sign = text:sub(after, after)
    if sign == "[" then
      local index = text:match("^%[[\"']?([%w_]+)", after)
      local hint = index and ("write  %s.%s"):format(text:sub(1, after - 1), index)
      return refuse("write paths with dots, not brackets", after, 1, hint)
    end
    if sign ~= "." then return parts, after end
    at = after + 1
  end
end

local kHabits = {
  { "^%-%-?[%a]", "write keys without dashes" },
  { "^[%w_%.]+%s*:%s", "write = between a key and its value, not a colon" },
  { "^[%w_%.]+:[^=]", "write = between a key and its value, not a colon" },
  { "^[%w_%.]+%s*==", "one = is enough" },
  { "^[%w_%.]+%s*%*%*=", "there is no **= ; write  key:=r.key^2" },
}

-- Typographic dashes, quotes and equals signs before the value.
local function foreign_sign(text)
  local key = text:match "^[^=]*=?"
  local plain, sign = other_values.plain(key)
  if not plain then plain, sign = other_values.plain(text:match "^[%w_%.]*\239\188\157" or "") end
  if not plain then return nil end
  local whole = other_values.plain(text):gsub("^%-+", "")
  return refuse(("%s is a typographic character"):format(sign), text:find(sign, 1, true), #sign,
    "write  " .. M.shell_word(whole))
end

local function without_operator(text)
  for _, habit in ipairs(kHabits) do
    local _, stop = text:find(habit[1])
    if stop then return refuse("expected key=value", stop, 1, habit[2]) end
  end
  if text:find("%.lua$") or text:find("%.txt$") then
    return refuse("expected key=value", 1, #text, "write an override file as  @" .. text)
  end
  return refuse("expected key=value", #text, 1, ("write  %s=VALUE"):format(text:match("^%s*(.-)%s*$")))
end

local function removal(text)
  local parts, after = read_path(text, 2)
  if not parts then return nil, after end
  if after <= #text then return refuse("nothing may follow the key to unset", after, #text - after + 1) end
  return { op = "~", parts = parts, text = text }
end

-- Reads one argument: { op, parts = { { key, col, len } }, value, value_col, text }, or nil and a problem { message, col,
-- len, hint }. op is one of = := += -= *= /= + ~ @; the value of @ is the file's name.
function M.parse(text)
  local first = text:sub(1, 1)
  if first == "@" then
    if text == "@" then return refuse("expected a file name after @", 1, 1) end
    return { op = "@", parts = {}, value = text:sub(2), value_col = 2, text = text }
  end
  if first == "~" then return removal(text) end
  local _, foreign = foreign_sign(text)
  if foreign then return nil, foreign end
  if text:find("^%+%+") then
    return refuse("there is no ++key", 1, 2, ("write  %s: an argument always wins over the recipe"):format(M.shell_word(text:sub(3))))
  end
  local is_habit = text:find("^%-%-?%a") or text:find("^[%w_%.]+%s*==")
  if is_habit or not text:find("=", 1, true) then return without_operator(text) end
  local adding = first == "+"
  local start = text:match("^%+?%s*()")
  local parts, after = read_path(text, start)
  if not parts then return nil, after end
  local sign, stop = operator(text, text:match("^%s*()", after))
  if not sign then return without_operator(text) end
  if adding and sign ~= "=" then
    return refuse(("+key adds with =, not with %s"):format(sign), stop - #sign + 1, #sign)
  end
  local value_col = text:match("^%s*()", stop + 1)
  if value_col > #text and sign ~= "=" then
    return refuse(("expected %s after %s"):format(sign == ":=" and "an expression" or "a value", sign), #text + 1, 1)
  end
  return { op = adding and "+" or sign, parts = parts, value = text:sub(value_col), value_col = value_col, text = text }
end

-- The dotted text of a path's first `count` parts.
function M.path(parts, count)
  local out = {}
  for i = 1, count or #parts do out[i] = tostring(parts[i].key) end
  return table.concat(out, ".")
end

-- How a shell takes a text as one word, for hints.
function M.shell_word(text)
  if text:find("^[%w_%.=/:,+%-@%%]+$") and not text:find("^~") then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

return M
