-- Reads `key=value` arguments. They are known before the recipe runs and win over what it writes: pins, not
-- patches.
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
    elseif c:find("[%[{]") then
      depth = depth + 1
    elseif c:find("[%]}]") then
      depth = depth - 1
    elseif c == "," and depth == 0 then
      out[#out + 1], start = trim(text:sub(start, i - 1)), i + 1
    end
  end
  local last = trim(text:sub(start))
  if last ~= "" or #out > 0 then out[#out + 1] = last end
  return out
end

local function unquoted(text) return text:match('^"(.*)"$') or text:match("^'(.*)'$") or text end

local function inside(text)
  return text:match("^%[(.*)%]$") or text:match("^{(.*)}$")
end

local read   -- of any type, below

local function read_map(text, field_spec)
  local out = {}
  for _, part in ipairs(split(text)) do
    local key, value_text = part:match("^([%w_]+)%s*=%s*(.*)$")
    if not key then return nil, ("wanted key=value between the braces, got \"%s\""):format(part) end
    local spec = field_spec(key)
    if not spec then return nil, "unknown key " .. key end
    local value, message = read(spec, value_text)
    if value == nil then return nil, key .. ": " .. message end
    out[key] = value
  end
  return out
end

local readers = {}

function readers.boolean(spec, text)
  if text == "true" then return true end
  if text == "false" then return false end
  return nil, "wanted " .. schema.describe(spec)
end

function readers.number(spec, text)
  local number = text:find("^[%+%-]?[%d%.]") and tonumber(text)
  if not number then return nil, "wanted " .. schema.describe(spec) end
  return number
end
readers.integer = readers.number

function readers.list(spec, text)
  local body = inside(text)
  if not body then return nil, "wanted a list such as [0.9,0.98]; in a shell, quote it: '[0.9,0.98]'" end
  local out = {}
  for i, part in ipairs(split(body)) do
    local value, message = read(spec.item, part)
    if value == nil then return nil, ("value %d: %s"):format(i, message) end
    out[i] = value
  end
  if spec.length and #out ~= spec.length then return nil, "wanted a " .. schema.describe(spec) end
  return out
end

function readers.map(spec, text)
  local body = inside(text)
  if not body then return nil, "wanted a table such as {a=1}" end
  return read_map(body, function() return spec.item end)
end

function readers.struct(spec, text)
  local body = inside(text)
  if not body then return nil, "wanted a table such as {" .. spec.fields[1].name .. "=...}" end
  return read_map(body, function(key) return schema.field(spec.fields, key) end)
end

-- cosine · cosine{floor=0.1} · {cosine, floor=0.1}
function readers.component(spec, text)
  local kind, body = text:match("^([%w_]+)%s*{(.*)}$")
  if not kind then kind, body = text:match("^{%s*([%w_]+)%s*,?(.*)}$") end
  if not kind then kind, body = text, "" end
  if not spec.kinds[kind] then
    local names = schema.sorted_keys(spec.kinds)
    local near = schema.did_you_mean(kind, names)
    return nil, "one of  " .. table.concat(names, "  ") .. (near and ("  (did you mean %s?)"):format(near) or "")
  end
  local out, message = read_map(body, function(key) return schema.field(spec.kinds[kind].fields, key) end)
  if out then out.kind = kind end
  return out, message
end

-- Reads text as the schema's type says, not by guessing: optimizer.lr=1e-4 is a number, run_name=1e4 is a
-- name.
function M.read(spec, text)
  text = trim(text)
  if text == "null" and spec.optional then return values.null end
  local reader = readers[spec.type]
  if reader then
    local value, message = reader(spec, text)
    if value == nil or not schema.is_scalar(spec) then return value, message end
    return schema.check(spec, value)
  end
  return schema.check(spec, unquoted(text))
end
read = M.read

-- All specs that a dotted path can mean (components have one per kind), or nil and why not.
local function specs_at(root, path)
  local found = { root }
  local walked = {}
  for part in path:gmatch("[^%.]+") do
    local below = {}
    for _, spec in ipairs(found) do
      local choices = spec.type == "component" and {} or { spec }
      if spec.type == "component" then
        for _, kind in ipairs(schema.sorted_keys(spec.kinds)) do choices[#choices + 1] = spec.kinds[kind] end
      end
      for _, choice in ipairs(choices) do
        local index = tonumber(part)
        if choice.fields then below[#below + 1] = schema.field(choice.fields, part) end
        if choice.type == "map" then below[#below + 1] = choice.item end
        if choice.type == "list" and index then
          if index < 1 then
            local list = table.concat(walked, ".")
            return nil, ("Lua indices start at 1; %s.1 is the first value"):format(list:match("[^%.]*$"))
          end
          if index > (choice.length or index) then
            return nil, ("there are only %d values in %s"):format(choice.length, table.concat(walked, "."))
          end
          below[#below + 1] = choice.item
        end
      end
    end
    walked[#walked + 1] = part
    found = below
    if #found == 0 then return nil end
  end
  return found
end

local function unknown(root, path)
  local near = schema.did_you_mean(path, schema.all_paths(root))
  if not near then
    local last = path:match("[^%.]+$")
    for _, known in ipairs(schema.all_paths(root)) do
      if known:match("[^%.]+$") == last then near = near or known end
    end
  end
  return "unknown key" .. (near and ("; did you mean %s?"):format(near) or "; `tycho config` lists every key")
end

local function check_syntax(specs, text)
  local first
  for _, spec in ipairs(specs) do
    local value, message = M.read(spec, text)
    if value ~= nil then return nil end
    first = first or message
  end
  return first
end

local function refused_form(text)
  if text:find("^[~+@]") or text:find("^[%w_%.]+%s*[:%+%-%*/]=") then
    return "this form is not understood; write key=value"
  end
  return "wanted key=value"
end

-- Adds one argument to a tree of pins: children by name, `given` = { argument, text, value } at its path.
-- Returns nil, or what is wrong.
local function add(root, tree, argument, text)
  local path, value = text:match("^([%a_][%w_%.]*)=(.*)$")
  if not path or path:find("..", 1, true) or path:sub(-1) == "." then return refused_form(text) end
  local specs, message = specs_at(root, path)
  if not specs then return message or unknown(root, path) end
  message = check_syntax(specs, value)
  if message then return message end
  local place = tree
  for part in path:gmatch("[^%.]+") do
    local key = tonumber(part) or part
    place.children[key] = place.children[key] or { children = {} }
    place = place.children[key]
  end
  place.given = { argument = argument, text = text, value = value, path = path }
end

-- arguments: { { argument = 3, text = "optimizer.lr=1e-4" }, ... }. Returns the tree and the problems.
function M.parse(root, arguments)
  local tree, problems = { children = {} }, {}
  for _, one in ipairs(arguments) do
    local message = add(root, tree, one.argument, one.text)
    if message then problems[#problems + 1] = { argument = one.argument, message = one.text .. ": " .. message } end
  end
  return tree, problems
end

-- Calls visit(pin) for every pin of a tree.
function M.each(tree, visit)
  if tree.given then visit(tree.given) end
  for _, key in ipairs(schema.sorted_keys(tree.children)) do M.each(tree.children[key], visit) end
end

return M
