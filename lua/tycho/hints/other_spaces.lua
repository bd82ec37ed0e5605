-- Spaces of values as Hydra, Optuna, Ray Tune, hyperopt and Weights & Biases write them, and how an argument of a sweep does it here.
local literal = require "tycho.overrides.literal"
local steps = require "tycho.sweep.steps"
local values = require "tycho.values"

local M = {}

-- Name elsewhere -> ours, with two numbers. `span`: a logarithmic scale where the ends are far apart.
local kCalled = { range = "range", log = "log", int = "int", normal = "normal", interval = "span", uniform = "range",
  quniform = "range", q_uniform = "range", float = "range", suggest_float = "range", suggest_uniform = "range", arange = "range",
  loguniform = "log", log_uniform = "log", log_uniform_values = "log", qloguniform = "log", q_log_uniform_values = "log",
  suggest_loguniform = "log", geomspace = "log", lograndint = "log", int_uniform = "int", suggest_int = "int", randint = "int",
  qrandint = "int", uniformint = "int", randn = "normal", gauss = "normal", qrandn = "normal", q_normal = "normal", linspace = "range",
  logspace = "log", floatdistribution = "range", intdistribution = "int", loguniformdistribution = "log" }
local kLists = { choice = true, grid_search = true, categorical = true, suggest_categorical = true, grid = true, values = true,
  sweep = true, oneof = true, categoricaldistribution = true, shuffle = true, sort = true }
local kAround = { tag = true, int = true, float = true, shuffle = true, sort = true }   -- of Hydra, around another space
local kWithoutEnd = { randint = true, lograndint = true }   -- their last number is not drawn
local kFromZero = { range = true, arange = true, randint = true }   -- of Python, with one number
local kThirdIsCount = { log = true, linspace = true, logspace = true, geomspace = true }
local kThirdIsStep = { range = true, int = true, quniform = true, q_uniform = true, qrandint = true, arange = true, suggest_int = true }
local kExponents = { logspace = 10, log_uniform = math.exp(1), loguniform = math.exp(1), qloguniform = math.exp(1) }
local kFarApart = 20
-- Names of arguments -> which number they are.
local kSlots = { low = 1, min = 1, a = 1, start = 1, lower = 1, mean = 1, mu = 1, loc = 1, high = 2, max = 2, b = 2, stop = 2, upper = 2,
  std = 2, sigma = 2, scale = 2, step = 3, q = 3, num = 3, count = 3 }
local kClosing = { ["("] = ")", ["["] = "]", ["{"] = "}" }

-- The name and what stands in the brackets of "tune.loguniform(1e-4, 1e-2)", without the module; nil for other text.
function M.call(text)
  local path, body = text:match "^~?([%a_][%w_%.]*)%s*%((.*)%)$"
  if path then return path:match("[^%.]*$"):lower(), body end
end

-- The same of a space in other brackets, as choice{1,2}, and of one whose last bracket is missing.
local function known_call(text)
  local path, open, body = text:match "^~?([%a_][%w_%.]*)%s*([%(%[{])(.*)$"
  local name = path and path:match("[^%.]*$"):lower()
  if not (kCalled[name] or kLists[name] or kAround[name]) then return nil end
  return name, body:sub(-1) == kClosing[open] and body:sub(1, -2) or body
end

local function inside(text) return text:match "^%[(.*)%]$" or text:match "^{(.*)}$" or text:match "^%((.*)%)$" end

local function number_text(x) return values.number_text(tonumber(("%.4g"):format(x))) end

-- The text as the key takes it: without quotes that it does not need, true for True; nil when it takes nothing like it.
local function fitted(spec, text)
  local plain = text:match '^"([^,%[%]{}]*)"$' or text:match "^'([^,%[%]{}]*)'$" or text
  if not spec then return plain end
  local value, message = literal.read(spec, plain)
  if value ~= nil then return plain end
  local meant = (message:match "; write (%S+)$" or ""):gsub('^"(.*)"$', "%1")
  return meant ~= "" and literal.read(spec, meant) ~= nil and meant or nil
end

local function fits(spec, text) return not spec or literal.read(spec, text) ~= nil end

local function list_of(spec, parts)
  local out = {}
  for _, part in ipairs(parts) do
    if part ~= "" then out[#out + 1] = fitted(spec, part) or false end
    if out[#out] == false then return nil end
  end
  return #out > 0 and table.concat(out, ",") or nil
end

-- The numbers of a call in their order, as texts, and whether it asks for a logarithmic scale; nil where one is no number.
local function numbers_of(parts)
  local texts, is_log, at = {}, false, 0
  for _, part in ipairs(parts) do
    local name, text = part:match "^[\"']?(%a[%w_]*)[\"']?%s*[=:]%s*(.*)$"
    if name == "log" then
      is_log = text:lower() == "true"
    elseif not name or kSlots[name] then
      at = name and kSlots[name] or at + 1
      texts[at] = text or part
      if not tonumber(texts[at]) then return nil end
    end
  end
  return texts, is_log
end

local function to_numbers(texts)
  local out = {}
  for at, text in pairs(texts) do out[at] = tonumber(text) end
  return out
end

-- Takes what a system counts otherwise into account: exponents, an end that is left out, counts of a linear scale.
local function as_ours(name, texts)
  local number = to_numbers(texts)
  if kFromZero[name] and number[1] and not number[2] then
    texts[1], texts[2] = "0", number_text(number[1] - 1)
    return true
  end
  if not number[1] or not number[2] then return false end
  if kExponents[name] and (number[1] < 0 or name == "logspace") then
    for at = 1, 2 do texts[at] = number_text(kExponents[name] ^ number[at]) end
  end
  if kWithoutEnd[name] then texts[2] = ("%d"):format(number[2] - 1) end
  if name == "arange" and number[3] and number[3] > 0 then
    texts[2] = number_text(number[1] + number[3] * (math.ceil((number[2] - number[1]) / number[3] - 1e-9) - 1))
  end
  if name == "linspace" and number[3] and number[3] > 1 then texts[3] = number_text((number[2] - number[1]) / (number[3] - 1)) end
  if not kThirdIsCount[name] and not kThirdIsStep[name] then texts[3] = nil end
  return true
end

-- Our kind of a space between two numbers: of integers for a key that is one, where no count says otherwise.
local function scale(kind, low, high, spec, is_counted)
  local is_integer = spec and spec.type == "integer"
  if kind == "span" then kind = low > 0 and high > kFarApart * low and "log" or "range" end
  return is_integer and kind ~= "normal" and not (kind == "log" and is_counted) and "int" or kind
end

-- Whether a space has only values that the key takes.
local function all_fit(spec, kind, texts)
  local number = to_numbers(texts)
  if not texts[3] then return fits(spec, texts[1]) and (kind == "normal" or fits(spec, texts[2])) end
  local list = steps.values(kind, number[1], number[2], number[3])
  for _, value in ipairs(list or {}) do
    if not fits(spec, values.number_text(value)) then return false end
  end
  return list ~= nil
end

-- kind(LOW,HIGH) or kind(LOW,HIGH,THIRD) for the key; nil where its values do not fit.
local function space_of(spec, kind, texts)
  local low, high = tonumber(texts[1]), tonumber(texts[2])
  local is_normal = kind == "normal"
  if not is_normal and low > high then low, high, texts[1], texts[2] = high, low, texts[2], texts[1] end
  kind = scale(kind, low, high, spec, texts[3])
  if is_normal then texts[3] = nil end
  if kind == "int" and not texts[3] and spec and spec.multiple_of then texts[3] = number_text(spec.multiple_of) end
  local is_right = is_normal and high > 0 or not is_normal and low < high and (kind ~= "log" or low > 0)
  if not is_right or not all_fit(spec, kind, texts) then return nil end
  return ("%s(%s)"):format(kind, table.concat(texts, ",", 1, texts[3] and 3 or 2))
end

local function is_quoted(text) return text:find "^[\"'].*[\"']$" ~= nil end

-- How an argument writes the call `name` with what stands in its brackets, for a key of this spec (nil: it is not known); nil
-- where that does not say what is meant, or does not fit the key.
function M.spelling(spec, name, body, is_log)
  body = body:gsub("^values%s*=%s*", "")
  local parts = literal.split(inside(body) or body)
  local inner, inner_body = known_call(parts[#parts] or "")
  if kAround[name] and inner then
    local within = M.spelling(spec, inner, inner_body, parts[1] == "log")
    local numbers = name == "int" and within and within:match "^%l+%((.*)%)$"
    return numbers and inner ~= "choice" and space_of(spec, "int", literal.split(numbers)) or within
  end
  if #parts > 1 and is_quoted(parts[1]) and (parts[2]:find "^[%[{(]" or not kLists[name]) then table.remove(parts, 1) end   -- a label
  if kLists[name] then
    local list = list_of(spec, #parts == 1 and inside(parts[1]) and not fits(spec, parts[1]) and literal.split(inside(parts[1])) or parts)
    return list and ("choice(%s)"):format(list) or nil
  end
  local texts, asks_log = numbers_of(parts)
  if not kCalled[name] or not texts or not as_ours(name, texts) then return nil end
  return space_of(spec, (is_log or asks_log) and "log" or kCalled[name], texts)
end

local kExamples = { range = "range(0, 0.3)", log = "log(1e-4, 1e-2)", int = "int(2, 8)", normal = "normal(0, 0.02)",
  span = "log(1e-4, 1e-2)" }

-- What a file of a sweep has instead of t.space.NAME, or nil.
function M.in_file(name)
  local ours = kLists[name] and "choice { 1, 2, 3 }" or kExamples[kCalled[name]]
  return ours and ("write  t.space.%s"):format(ours) or nil
end

-- "1e-4..1e-2", "1:8", "1 to 8" and "1-8", for keys that are numbers.
local function between(spec, text)
  if spec.type ~= "number" and spec.type ~= "integer" then return nil end
  for _, sign in ipairs { "%.%.+", ":", "%s+to%s+", "%-" } do
    local from = 2
    while true do
      local first, last = text:find(sign, from)
      if not first then break end
      local low, high = text:sub(1, first - 1):match "^%s*(.-)%s*$", text:sub(last + 1):match "^%s*(.-)%s*$"
      local is_span = tonumber(low) and tonumber(high) and tonumber(low) < tonumber(high)
      if is_span then return space_of(spec, "span", { low, high }) end
      from = last + 1
    end
  end
end

-- The parts of several values: a list in brackets, or what commas, semicolons, bars or blanks divide.
local function several(text)
  local body = (inside(text) or text):gsub("[%s,]+$", "")
  local parts = literal.split(body)
  if #parts > 1 or body:find "[%[{(\"']" then return parts end
  local out = {}
  for word in body:gmatch(body:find "[;|]" and "[^;|]+" or "%S+") do out[#out + 1] = word:match "^%s*(.-)%s*$" end
  return out[2] and out[2]:find "^%d%d%d$" and {} or out   -- 10 000 is one number
end

-- How a sweep writes several values, or a space as other systems call it, for a key of this spec; nil for other text.
function M.of_value(spec, value)
  local name, body = known_call(value)
  if name and (spec.type ~= "string" or kLists[name] and M.call(value)) then return M.spelling(spec, name, body) end
  if spec.type == "string" then return nil end
  local parts = several(value)
  return #parts > 1 and list_of(spec, parts) or between(spec, value)
end

-- Two values and a space that the key takes, as a sweep writes them.
local kNumbers = { { "1e-4", "1e-2" }, { "0.1", "0.3" }, { "2", "8" }, { "64", "128" } }

function M.examples(spec)
  local out = {}
  local pairs_of = { boolean = { "true", "false" }, enum = spec.values, string = { "a", "b" }, duration = { "10", "20" } }
  for _, pair in ipairs(pairs_of[spec.type] and { pairs_of[spec.type] } or kNumbers) do
    local unit = spec.type == "duration" and (spec.units or { "ba" })[1] or ""
    if #out == 0 and pair[2] and fits(spec, pair[1] .. unit) and fits(spec, pair[2] .. unit) then
      out[1] = pair[1] .. unit .. "," .. pair[2] .. unit
      out[2] = (spec.type == "number" or spec.type == "integer") and space_of(spec, "span", { pair[1], pair[2] }) or nil
    end
  end
  return out
end

return M
