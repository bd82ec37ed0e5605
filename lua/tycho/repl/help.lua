-- ?name: keys of the recipe, components, functions of t, objects of the run and their members, commands.
local commands = require "tycho.repl.commands"
local formulas = require "tycho.maths.formulas"
local host = require "tycho.repl.host"
local maths_stubs = require "tycho.maths.stubs"
local own_kinds = require "tycho.own.kinds"
local recipe = require "tycho.recipe"
local schema = require "tycho.schema"
local show = require "tycho.repl.show"
local site_of = require "tycho.site"
local stubs = require "tycho.stubs"

local M = {}

local kOverview = [[
An entry is Lua: an expression prints its value, `local x` stays defined, `;` at the end silences it, _ is the last result.
  r               the recipe: r.optimizer.lr = 1e-3; r:why "optimizer.lr"; r:show()
  build(r)        opens the run: trainer, model, opt, sched, data, ckpt, log, mem, profile, cmd
  plot(x, y)      a curve; plot "loss" what the run recorded; hist(tensor or list) a histogram
First character:  ?name help   ;command shell   :command, one of
]]

-- What a component that the recipe defines computes.
local function formulas_of(repl, path)
  local node = repl.draft and repl.draft.root.values[path]
  if type(node) ~= "table" or not node.proxy or not own_kinds.of_node(node) then return nil end
  return formulas.text(recipe.tree(repl.draft)[path])
end

local function field_text(repl, path, field)
  local _, site = repl:field(path)
  local head = ("%s : %s"):format(path, schema.describe_field(field))
  local text = ("%s.  %s"):format(head, field.help or "")
  if site then text = ("%s       set: %s"):format(text, site_of.text(site, repl.draft.sites)) end
  local out = { text }
  for _, below in ipairs(field.fields or {}) do
    out[#out + 1] = ("  .%s : %s  %s"):format(below.name, schema.describe_field(below), below.help or "")
  end
  for _, kind in ipairs(field.kinds and schema.sorted_keys(field.kinds) or {}) do
    out[#out + 1] = ("  t.%s.%s  %s"):format(field.namespace, kind, field.kinds[kind].help or "")
  end
  out[#out + 1] = formulas_of(repl, path)
  return table.concat(out, "\n")
end

local function kind_text(root, namespace, kind)
  local component = schema.components(root)[namespace]
  local found = component and component.kinds[kind]
  if not found then return nil end
  local out = { ("t.%s.%s { ... }  %s"):format(namespace, kind, found.help or "") }
  if found.presets then
    out[#out + 1] = ('  preset : one of  "%s"  A published size; keys beside it win.'):format(table.concat(found.presets, '"  "'))
  end
  for _, field in ipairs(found.fields) do
    out[#out + 1] = ("  %s : %s  %s"):format(field.name, schema.describe_field(field), field.help or "")
  end
  return table.concat(out, "\n")
end

local function of_t(root, name)
  local namespace, kind = name:match("^([%w_]+)%.([%w_]+)$")
  local define = kind == "define" and maths_stubs.defines[namespace]
  if define then return ("t.%s : %s\n  %s docs/maths.md\n  %s"):format(name, define[1], define[2], define[3]) end
  if namespace then return kind_text(root, namespace, kind) end
  for _, one in ipairs(stubs.functions) do
    if one[1] == name then return ("t.%s : %s\n  %s"):format(one[1], one[2], one[3]) end
  end
  local component = schema.components(root)[name]
  if not component then return nil end
  local out = {}
  for i, choice in ipairs(schema.sorted_keys(component.kinds)) do
    out[i] = ("t.%s.%s  %s"):format(name, choice, component.kinds[choice].help or "")
  end
  return table.concat(out, "\n")
end

local kMostLines = 40   -- of a function's text

-- The lines of a function that was typed or read from a recipe's file.
local function function_text(repl, name, fn)
  local info = debug.getinfo(fn, "S")
  local file = info.source:gsub("^@", "")
  local source = info.what ~= "C" and repl.session.sources[file]
  if not source then return ("%s is a function of Lua's library or of Tycho"):format(name) end
  local out, number = { ("%s is a function of %s:%d"):format(name, file, info.linedefined) }, 0
  for line in (source .. "\n"):gmatch "(.-)\r?\n" do
    number = number + 1
    local inside = number >= info.linedefined and number <= info.lastlinedefined
    if inside and #out <= kMostLines then out[#out + 1] = ("%6d | %s"):format(number, line) end
  end
  return table.concat(out, "\n")
end

-- What a name at the prompt holds: f, or lib.f of a table; nil when it holds nothing.
local function value_text(repl, name)
  local value
  for part in name:gmatch "[^%.]+" do
    local from = value == nil and repl.vars or value
    if type(from) ~= "table" and type(from) ~= "userdata" then return nil end
    local ok, found = pcall(function() return from[part] end)   -- strict tables raise
    value = from == repl.vars and rawget(from, part) or from ~= repl.vars and ok and found or nil
    if value == nil and from == repl.vars then value = debug.getmetatable(repl.session.env).__names[part] end
    if value == nil then return nil end
  end
  if type(value) == "function" then return function_text(repl, name, value) end
  return ("%s is a %s: %s"):format(name, host.class_of(value) or type(value), show.value(value))
end

-- The page of a name; nil when nothing has it.
local function page(repl, name)
  if name == "t" then return "t makes components and values: t.model, t.optim, t.sched, t.lazy, ...  Press tab after t." end
  if name == "r" then
    return "the recipe: assign to its keys; r:why(key), r:show(), r:set(path, value), r:extend(name), r:check(name, fn);\n"
      .. "build(r) opens the run that it makes"
  end
  local below_t = name:match("^t%.(.+)$")
  if below_t then return of_t(repl.session.schema, below_t) end
  if repl.classes[name] then return host.class_help(repl.classes[name], "") end
  local path = name:match("^r%.(.+)$") or name
  local field = repl:field(path)
  if field then return field_text(repl, path, field) end
  local object, member = name:match("^([%w_]+)[%.:]([%w_]+)$")
  if not repl.classes[object or name] then   -- ctx.model, ctx.model:generate
    object, member = name:gsub("^ctx%.", ""):match("^([%w_]+)[%.:]([%w_]+)$")
  end
  local value = rawget(repl.vars, object or name)
  local class = value ~= nil and host.class_of(value) or repl.classes[object or name] or object or name:gsub("^ctx%.", "")
  local text = host.class_help(class, member or "")
  if text ~= "" then return text end
  return commands.help_of(name:gsub("^:", "")) or value_text(repl, name)
end

function M.of_text(repl, text)
  local name = text:match("^[%s%?]*(.-)%s*$")
  if name == "" then return kOverview .. commands.overview() end
  local found = page(repl, name)
  if found then return found end
  local known = schema.all_paths(repl.session.schema)
  for _, class in ipairs(host.classes) do known[#known + 1] = class.name end
  local near = schema.did_you_mean(name:gsub("^r%.", ""), known)
  return ("no help for %s%s"):format(name, near and ("; did you mean %s?"):format(near) or "; ? alone lists everything")
end

-- help(value): the page of what the value is.
function M.of_value(repl, value)
  if value == nil then return M.of_text(repl, "") end
  if type(value) == "string" then return M.of_text(repl, value) end
  local class = host.class_of(value)
  return class and host.class_help(class, "") or "a " .. type(value)
end

return M
