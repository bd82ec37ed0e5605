-- t.loss.define: losses that a recipe writes as functions of what the classifier knows of a token.
local component = require "tycho.component"
local functions = require "tycho.functions"
local own_fields = require "tycho.own.fields"
local own_kinds = require "tycho.own.kinds"
local own_value = require "tycho.maths.own_value"
local place_of = require "tycho.maths.place"
local recording = require "tycho.maths.recording"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local trace = require "tycho.maths.trace"

local M = {}

local kNames = { "lse", "target", "mean", "max", "px", "weight", "position" }
local kInputs = {}
for i, name in ipairs(kNames) do kInputs[i] = { name = name } end

local kExample = "t.loss.define(function(z) return z.lse - z.target end)"
local kKeys = { name = true, help = true, defaults = true, terms = true }

local kFixed = { fixed = "a loss is what its function returns", none = "the loss has no defaults" }
local kExpected = "write it with what a token has, such as  z.lse - z.target"

-- The functions of terms by name; what is given is one function, or a table of them.
local function terms_of(session, given, name, site)
  if type(given) == "function" then given = { [name] = given } end
  if type(given) ~= "table" or next(given) == nil then
    session:refuse_at(site, "terms: expected a function, or a table of functions, got " .. schema.brief(given), "write  " .. kExample)
  end
  local found = {}
  for _, key in ipairs(schema.sorted_keys(given)) do
    local at = site_of.child(site, key)
    if type(key) ~= "string" or not key:find "^[%a_][%w_]*$" then
      session:refuse_at(at, ("%s: a term needs a name of letters, digits and '_': it is recorded under it"):format(schema.brief(key)))
    end
    local ref, message = functions.keep(given[key])
    if not ref then session:refuse_at(at, ("%s: %s"):format(key, message)) end
    found[key] = ref
  end
  return found
end

-- What C++ is told of a loss with these values: its terms as expressions.
local function definition_of(found, names)
  return function(values, made)
    local own, terms, code, is_constant = {}, {}, nil, true
    for _, name in ipairs(names) do own[name] = values[name] end
    for _, name in ipairs(schema.sorted_keys(found)) do
      local ref = found[name]
      code = code or { at = ref.at, hash = ref.hash }
      local traced = trace { session = made.session, fn = ref.fn, inputs = kInputs, result = name,
        nothing = "the function returns nothing: a loss is a number for each token", run = function(symbols)
          local h, check_lists = own_value.hyperparameters(made.session, ref.fn, own, {}, kFixed)
          local value = recording.single(ref.fn(own_value.strict(made.session, "z", symbols, kFixed), h))
          check_lists()
          return { [name] = value }
        end }
      terms[name], is_constant = traced.expression, is_constant and traced.recorded.outputs[name].number ~= nil
    end
    if is_constant then
      local fn = found[schema.sorted_keys(found)[1]].fn
      local file, line = place_of.of(made.session, fn, "return")
      place_of.refuse(made.session, file, line, "return", "the loss is the same number for every token: nothing is learnt", kExpected)
    end
    return { terms = terms, code = code }
  end
end

local function register(session, name, help, fields, found, site)
  local names = {}
  for i, field in ipairs(fields) do names[i] = field.name end
  return own_kinds.register(session, { namespace = "loss", base = "defined", name = name, help = help, fields = fields, table = "defaults",
    without = { "terms", "code" }, site = site, functions = found, definition = definition_of(found, names) })
end

-- A loss without a name is a value, not a constructor.
local function define_value(session, given)
  local site = own_value.site(session, given)
  local name = own_value.kind(session, "loss", site)
  register(session, name, "A loss of the recipe.", {}, terms_of(session, given, name, site), site)
  return component.make("loss", name, {}, site)
end

local function check_keys(session, given, site)
  for _, key in ipairs(schema.sorted_keys(given)) do
    if not kKeys[key] then
      local near = schema.did_you_mean(tostring(key), schema.sorted_keys(kKeys))
      session:refuse_at(site_of.child(site, key), "unknown key  t.loss.define." .. tostring(key),
        near and ("did you mean  %s?"):format(near) or "keys: " .. table.concat(schema.sorted_keys(kKeys), ", "))
    end
  end
  if given.name == nil then session:refuse_at(site, "t.loss.define with terms needs a name", 'write  name = "smoothed"') end
  if given.help ~= nil and type(given.help) ~= "string" then
    session:refuse_at(site_of.child(site, "help"), ("help: expected text in quotes, got %s"):format(schema.brief(given.help)))
  end
end

-- t.loss.define(function(z) ... end) or of a table of such functions by name: a loss. t.loss.define { name, help, defaults,
-- terms = function(z, h) ... end, or a table of them }: the constructor of a loss with keys of its own.
function M.define(session, given)
  if type(given) == "function" then return define_value(session, given) end
  if type(given) ~= "table" then
    session:refuse("define", "t.loss.define expects a function or a table of functions, such as  " .. kExample)
  end
  if given.terms == nil and given.defaults == nil and type(given.name) ~= "string" then return define_value(session, given) end
  local site = site_of.of_definition(session.sites, "define", schema.sorted_keys(given))
  check_keys(session, given, site)
  local fields = own_fields.read(session, given.defaults or {}, "defaults", site)
  local found = terms_of(session, given.terms, tostring(given.name), site_of.child(site, "terms"))
  return register(session, given.name, given.help or "", fields, found, site)
end

return M
