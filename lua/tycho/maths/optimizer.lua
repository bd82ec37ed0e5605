-- t.optim.define: a kind of optimizer whose update is a function of the recipe.
local functions = require "tycho.functions"
local native = require "tycho.native"
local node = require "tycho.node"
local own_fields = require "tycho.own.fields"
local own_kinds = require "tycho.own.kinds"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local update = require "tycho.maths.update"

local M = {}

local kExpected = { name = "a text", help = "a text", defaults = "a table of hyperparameters with their defaults",
  state = 'a table such as  { exp_avg = "like" }, or a function of p that returns one', update = "function(p, g, s, h) ... end",
  eval_weights = "function(p, s, h) ... end" }
local kTypes = { name = { string = true }, help = { string = true, ["nil"] = true }, defaults = { table = true, ["nil"] = true },
  state = { table = true, ["function"] = true, ["nil"] = true }, update = { ["function"] = true },
  eval_weights = { ["function"] = true, ["nil"] = true } }
local kExample = 't.optim.define { name = "sign", update = function(p, g, s, h) return p - h.lr * t.sign(g) end }'

local function check_given(session, given, site)
  local names = schema.sorted_keys(kExpected)
  for _, key in ipairs(schema.sorted_keys(given)) do
    if not kExpected[key] then
      local near = schema.did_you_mean(tostring(key), names)
      session:refuse_at(site_of.child(site, key), ("t.optim.define has no key %s"):format(tostring(key)),
        near and ("did you mean  %s?"):format(near) or "its keys are " .. table.concat(names, ", "))
    end
  end
  for _, key in ipairs(names) do
    if not kTypes[key][type(given[key])] then
      session:refuse_at(site_of.child(site, key), ("t.optim.define expects %s = %s"):format(key, kExpected[key]), kExample)
    end
  end
end

-- The hyperparameters, and the names of those that are plain integers.
local function fields_of(session, given, site)
  local fields, integers = own_fields.read(session, given.defaults or {}, "defaults", site), {}
  for _, field in ipairs(fields) do
    if field.name == "step" then
      session:refuse_at(site_of.child(site_of.child(site, "defaults"), "step"), "h.step is the number of the step: a hyperparameter needs another name")
    end
    integers[field.name] = field.type == "integer" or field.type == "list" and field.item.type == "integer" or nil
  end
  return fields, integers
end

local kOfBase = { lr = true, weight_decay = true, decay_mask = true }   -- C++ checks these by itself

-- Limits of the numbers among these values, for commands of a run, which change numbers without Lua.
local function limits_of(fields, values)
  local out = native.array {}
  for _, field in ipairs(fields) do
    local value, spec = values[field.name], field.item or field
    local first = type(value) == "table" and value[1] or value
    if not kOfBase[field.name] and type(first) == "number" and spec.type == "number" and (spec.min or spec.max) then
      out[#out + 1] = { name = field.name, min = spec.min, max = spec.max, min_exclusive = spec.min_exclusive, max_exclusive = spec.max_exclusive }
    end
  end
  return out
end

-- Parameters of the model of a finished recipe; none of a model that checks will refuse.
local function parameters_of(made)
  local model = made.root.values.model
  return model and native.parameters(require("tycho.recipe").text_tree(node.plain(model))) or {}
end

-- t.optim.define { name, help, defaults, state, update, eval_weights }: returns the constructor.
function M.define(session, given)
  if type(given) ~= "table" then session:refuse("define", "t.optim.define expects a table", kExample) end
  local site = site_of.of_definition(session.sites, "define", schema.sorted_keys(given))
  check_given(session, given, site)
  local about = { site = site }
  for key, value in pairs(given) do about[key] = value end
  local fields, integers = fields_of(session, given, site)
  local code, message = functions.keep(given.update)
  if not code then session:refuse_at(site_of.child(site, "update"), "update: " .. message) end
  return own_kinds.register(session, { namespace = "optim", base = "defined", name = given.name, help = given.help or "", fields = fields,
    table = "defaults", sets_defaults = true, without = { "updates", "number_limits" }, site = site, definition = function(values, made)
      local updates = update.updates(made.session, about, values, integers, parameters_of(made))
      return { code = { at = code.at, hash = code.hash }, updates = updates, number_limits = limits_of(fields, values) }
    end })
end

return M
