-- Reads a value of an argument as the schema's type says, not by guessing: optimizer.lr=1e-4 is a number,
-- run_name=1e4 is a name.
local native = require "tycho.native"
local other_values = require "tycho.hints.other_values"
local schema = require "tycho.schema"
local values = require "tycho.values"

local M = {}

local function trim(text) return (text:match("^%s*(.-)%s*$")) end

-- Splits "a, {b, c}, d" at the commas outside brackets and quotes.
local function split(text)
  local out, depth, start, quote = {}, 0, 1, nil
  for i = 1, #text do
    local c = text:sub(i, i)
    if quote then
      if c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      quote = c
    elseif c:find("[%[{(]") then
      depth = depth + 1
    elseif c:find("[%]})]") then
      depth = depth - 1
    elseif c == "," and depth == 0 then
      out[#out + 1], start = trim(text:sub(start, i - 1)), i + 1
    end
  end
  local last = trim(text:sub(start))
  if last ~= "" or #out > 0 then out[#out + 1] = last end
  return out
end

M.split = split

local function unquoted(text) return text:match('^"(.*)"$') or text:match("^'(.*)'$") or text end

local function inside(text) return text:match("^%[(.*)%]$") or text:match("^{(.*)}$") end

local read   -- of any type, below

local function read_map(text, field_spec)
  local out = {}
  for _, part in ipairs(split(text)) do
    local key, value_text = part:match("^([%w_]+)%s*=%s*(.*)$")
    if not key then key, value_text = part:match("^[\"']([^\"']+)[\"']%s*=%s*(.*)$") end
    if not key then
      local colon = part:find("^[%w_\"']+%s*:") and "; write = between a key and its value" or ""
      return nil, ("expected key=value between the braces, got \"%s\"%s"):format(part, colon)
    end
    local spec, unknown = field_spec(key)
    if not spec then return nil, unknown end
    local value, message = read(spec, value_text)
    if value == nil then return nil, key .. ": " .. message end
    out[key] = value
  end
  return out
end

local function first_names(fields)
  local names = {}
  for i = 1, math.min(#fields, 6) do names[i] = fields[i].name end
  return table.concat(names, ", ")
end

local function known_field(fields)
  return function(key)
    local near = schema.did_you_mean(key, schema.names(fields))
    local others = other_values.key_among(key, fields)
    local hint = others and ("; write %s"):format(others) or near and ("; did you mean %s?"):format(near)
      or "; its keys begin with " .. first_names(fields)
    return schema.field(fields, key), ("unknown key %s%s"):format(key, hint)
  end
end

local kOtherBooleans = { True = "true", yes = "true", on = "true", ["1"] = "true", False = "false", no = "false",
  off = "false", ["0"] = "false" }

local readers = {}

function readers.boolean(spec, text)
  if text == "true" then return true end
  if text == "false" then return false end
  local meant = kOtherBooleans[text]
  return nil, "expected " .. schema.describe(spec) .. (meant and ("; write %s"):format(meant) or "")
end

local kThousands = { k = 1, K = 1, M = 2, B = 3, G = 3 }

-- "2k" as people mean it: 2000 or 2048, as far as the key takes them.
local function multiple_text(spec, count, word)
  local power, out = kThousands[word], {}
  for _, thousand in ipairs { 1000, 1024 } do
    local number = count * thousand ^ power
    if schema.check(spec, number) ~= nil then out[#out + 1] = ("%d"):format(number) end
  end
  return #out > 0 and "; write " .. table.concat(out, " or ") or ""
end

-- What was probably meant by a text that is not a number: 1_000, 1,000, 3–4e-4 with a typographic dash, "3e-4" in quotes,
-- 1/3.
local function number_hint(spec, text)
  local plain = (other_values.plain(text) or text):gsub("^[\"'](.*)[\"']$", "%1")
  local fraction = plain:gsub("^([%+%-]?%d+),(%d+)$", "%1.%2")   -- 0,001; but 1,000 is a thousand
  if fraction ~= plain and (plain:find "^[%+%-]?0," or not plain:find ",%d%d%d$") then plain = fraction end
  local is_grouped = plain:find "^[%+%-]?%d[%d_]*[%d_%.eE%-]*,?$" or plain:find "^%d%d?%d?,%d%d%d,?[%d,]*$"
  plain = is_grouped and plain:gsub("[_,]", "") or plain
  local fits = tonumber(plain) and schema.check(spec, tonumber(plain)) ~= nil
  if fits and plain ~= text then return ("; write %s"):format(plain) end
  local count, word = plain:match "^(%d+)([kKMBG])$"
  if count and spec.type == "integer" then return multiple_text(spec, tonumber(count), word) end
  local computes = text:find("[%*/%^%(]") and not text:find("[,{}]") and not text:find("^%l+%(")
  return computes and "; write an expression as  key:=expression" or ""
end

function readers.number(spec, text)
  if spec.word and unquoted(text) == spec.word then return spec.word end
  local number = text:find("^[%+%-]?[%d%.]") and tonumber(text)
  if number then return number end
  local percent = schema.is_ratio(spec) and tonumber(text:match("^([%d%.]+)%%$"))
  if percent then return percent / 100 end
  return nil, "expected " .. schema.describe(spec) .. number_hint(spec, text)
end
readers.integer = readers.number

-- "(0.9, 0.95)", "0.9,0.95" and "0.9 0.95" as [0.9,0.95], when that fits.
local function not_a_list(spec, text)
  local words = {}
  for word in text:gsub("^[\"'%(%[{]+", ""):gsub("[\"'%)%]}]+$", ""):gmatch "[^%s,;]+" do words[#words + 1] = word end
  local meant = "[" .. table.concat(words, ",") .. "]"
  local example = text ~= "" and M.read(spec, meant) ~= nil and meant or "[0.9,0.98]"
  return ("expected a list such as %s; in a shell, quote it: '%s'"):format(example, example)
end

function readers.list(spec, text)
  local body = inside(text)
  if not body then return nil, not_a_list(spec, text) end
  local out, parts = {}, split(body)
  for i, part in ipairs(parts) do
    local value, message = read(spec.item, part)
    if value == nil and #parts == 1 and part:find "[%d\"']%s+[%d\"'.-]" then return nil, not_a_list(spec, text) end
    if value == nil then return nil, ("value %d: %s"):format(i, message) end
    out[i] = value
  end
  return out
end

function readers.map(spec, text)
  local body = inside(text)
  if not body then return nil, "expected a table such as {a=1}; in a shell, quote it: '{a=1}'" end
  return read_map(body, function() return spec.item end)
end

-- The field of a group that a single value was probably meant for, with the value: the first that chooses among words, or
-- a first field of numbers. Without a value when none takes it.
local function meant_field(spec, text)
  for _, field in ipairs(spec.fields) do
    if field.type == "enum" and M.read(field, text) ~= nil then return field, text end
  end
  local first = spec.fields[1]
  local takes = (first.type == "number" or first.type == "integer") and M.read(first, text) ~= nil
  return first, takes and text or nil
end

function readers.struct(spec, text)
  local body = inside(text)
  if not body and spec.shorthand then
    local value, message = read(schema.field(spec.fields, spec.shorthand), text)
    if value == nil then return nil, message end
    return { [spec.shorthand] = value }
  end
  if not body then
    local field, value = meant_field(spec, text)
    if value then return nil, ("expected a table; write one key:  %s.%s=%s"):format(spec.name or "key", field.name, value) end
    return nil, ("expected a table such as {%s=...}, or one key: %s.%s=..."):format(field.name, spec.name or "key", field.name)
  end
  return read_map(body, known_field(spec.fields))
end

readers["function"] = function() return nil, "write functions in a recipe, not in an argument" end
local function is_definition(text) return text:find "^t%.%w+%.define%s*[%({]" or text:find "^t%.%w+%.%w+%s*%(%s*function" end

function readers.data(_, text)
  local data = text:find("^[{%[]") and native.json(text)
  if type(data) == "table" then return data end
  return nil, "expected JSON such as '{\"mean\": 1}'"
end

-- cosine · cosine{floor=0.1} · {cosine, floor=0.1} · sched.cosine, as t.sched.cosine in recipes
function readers.component(spec, text)
  local prefix = text:match("^t?%.?(" .. spec.namespace .. "%.)%a")
  if prefix then text = text:gsub("^t?%.?" .. spec.namespace .. "%.", "", 1) end
  local kind, body = text:match("^([%w_]+)%s*{(.*)}$")
  if not kind then kind, body = text:match("^{%s*([%w_]+)%s*,?(.*)}$") end
  if not kind and text:find "^[%w_]*{[^}]*$" then return nil, "the closing } is missing" end
  if not kind then kind, body = text, "" end
  if not spec.kinds[kind] then
    local names = schema.sorted_keys(spec.kinds)
    local near = other_values.kind(kind, spec.kinds) or schema.did_you_mean(kind, names)
    return nil, "one of  " .. table.concat(names, "  ") .. (near and ("  (did you mean %s?)"):format(near) or "")
  end
  local out, message = read_map(body, known_field(spec.kinds[kind].fields))
  if out then out.kind = kind end
  return out, message
end

local kNothing = { null = true, none = true, None = true, ["nil"] = true, ["t.null"] = true }

-- The value that a text stands for, or nil and what was wanted.
function M.read(spec, text)
  text = trim(text)
  if text == "null" and spec.optional then return values.null end
  local reader = readers[spec.type]
  local value, message
  if reader then
    value, message = reader(spec, text)
    if value ~= nil and schema.is_scalar(spec) then value, message = schema.check(spec, value) end
    if value ~= nil and spec.type == "list" and spec.length and #value ~= spec.length then
      value, message = nil, "expected a " .. schema.describe(spec)
    end
  else
    local unfilled = spec.type == "string" and spec.name and other_values.interpolation(text)
    if unfilled then return nil, "Tycho does not expand " .. unfilled end
    local plain = text:find "^\226\128[\152\153\156\157]" and other_values.plain(text)
    if plain then return nil, ("these are typographic quotes; write %s"):format(unquoted(plain)) end
    value, message = schema.check(spec, unquoted(text))
  end
  if value == nil and is_definition(text) then return readers["function"]() end
  if value == nil and kNothing[text] then
    message = message .. (spec.optional and "; for none write  null" or "; this key cannot be none")
  end
  return value, message
end
read = M.read

return M
