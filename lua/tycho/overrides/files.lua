-- @file: overrides from a file. Lines of text as on the command line, a Lua file that returns a table, or JSON such as a
-- run's recipe.json.
local component = require "tycho.component"
local native = require "tycho.native"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

local function from_lines(session, file, text, add)
  local number = 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    local start, content = line:match("^%s*()(.-)%s*$")
    if content:find("^@") then
      session:problem { file = file, line = number, col = start, len = #content,
        message = "an override file cannot include another: give both as arguments" }
    elseif content ~= "" and not content:find("^#") and not content:find("^%-%-") then
      add { file = file, line = number, col = start, text = content }
    end
  end
end

local function parts_of(path)
  local out = {}
  for word in path:gmatch("[^%.]+") do out[#out + 1] = { key = tonumber(word) or word, col = 1, len = 1 } end
  return out
end

local function is_group(value)
  return type(value) == "table" and not values.is_quantity(value) and #value == 0 and next(value) ~= nil
end

-- One override for every leaf of a table; `kind` chooses a component before its keys are set.
local function from_table(root, path, given, site, add)
  local function leaf(value, at)
    if value == values.unset then
      add { file = site.file, line = at.line, override = { op = "~", parts = parts_of(path), site = at } }
    else
      add { file = site.file, line = at.line, override = { op = "=", parts = parts_of(path), given = value, site = at } }
    end
  end
  if not is_group(given) then return leaf(given, site) end
  local field = schema.index(root)[path]
  local is_component = field and field.type == "component"
  if is_component and given.kind then leaf({ kind = given.kind }, site_of.child(site, "kind")) end
  for _, key in ipairs(schema.sorted_keys(given)) do
    if not (is_component and key == "kind") then
      from_table(root, schema.join(path, key), given[key], site_of.child(site, key), add)
    end
  end
end

local function from_lua(session, file, text, add)
  local result = session.run_file(session, file, text)
  if type(result) ~= "table" or component.behind(result) then
    local returned = result == nil and "nothing" or schema.describe_value(result)
    return session:problem { file = file, line = 1, hint = "as in  return { seed = 3, optimizer = { lr = 1e-3 } }",
      message = "an override file must return a table, this one returned " .. returned }
  end
  from_table(session.schema, "", result, site_of.of_return(session.sites, file), add)
end

local function from_json(session, file, text, add)
  local json, message = native.json(text)
  if not is_group(json) then
    return session:problem { file = file, message = message or "expected an object of keys and values" }
  end
  from_table(session.schema, "", json, { file = file, line = 1 }, add)
end

-- The arguments with every @file replaced by what is in it.
function M.expand(session, arguments)
  local out = {}
  local function add(one) out[#out + 1] = one end
  for _, one in ipairs(arguments) do
    local override = one.text:sub(1, 1) == "@" and overrides.parse(one.text)
    if not override then
      add(one)
    else
      local file = override.value
      local text, message = session.read_file(file)
      local site = { argument = one.argument, text = one.text, value = { col = 2, len = #file } }
      if not text then
        session:problem(site_of.problem(site, "value", message))
      elseif session:takes(file, text) then
        if file:find("%.lua$") then
          from_lua(session, file, text, add)
        elseif file:find("%.json$") then
          from_json(session, file, text, add)
        else
          from_lines(session, file, text, add)
        end
      end
    end
  end
  return out
end

return M
