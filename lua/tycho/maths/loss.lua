-- t.loss.define: losses that a recipe writes as functions of what the classifier knows of a token.
local component = require "tycho.component"
local functions = require "tycho.functions"
local own_fields = require "tycho.own.fields"
local own_kinds = require "tycho.own.kinds"
local own_value = require "tycho.maths.own_value"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local trace = require "tycho.maths.trace"

local M = {}

local kNames = { "lse", "target", "mean", "max", "px", "weight", "position" }
local kInputs = {}
for i, name in ipairs(kNames) do kInputs[i] = { name = name } end

local kExample = "t.loss.define(function(z) return z.lse - z.target end)"
local kKeys = { name = true, help = true, defaults = true, terms = true }

local kSet = "%s.%s cannot be set: a loss is what its function returns"
local kHint = ": a token has " .. table.concat(kNames, ", ")

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
    local h = {}
    for _, name in ipairs(names) do h[name] = values[name] end
    h = own_value.strict("h", h, #names > 0 and (": the loss has " .. table.concat(names, ", ")) or ": the loss has no defaults", kSet)
    local terms, code = {}, nil
    for _, name in ipairs(schema.sorted_keys(found)) do
      local ref = found[name]
      code = code or { at = ref.at, hash = ref.hash }
      terms[name] = trace { session = made.session, fn = ref.fn, inputs = kInputs, run = function(symbols)
        local value = ref.fn(own_value.strict("z", symbols, kHint, kSet), h)
        if type(value) == "nil" then error("the function returns nothing: a loss is a number for each token", 0) end
        return { [name] = value }
      end }.expression
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
