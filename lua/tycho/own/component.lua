-- t.component: callbacks, schedules and row functions of one's own with fields that are checked as those of built-in ones.
local defines = require "tycho.maths.stubs".defines
local functions = require "tycho.functions"
local native = require "tycho.native"
local own_fields = require "tycho.own.fields"
local own_kinds = require "tycho.own.kinds"
local plain = require "tycho.plain"
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

-- kind = "..." -> where it belongs. without: what users of the component do not set.
local kKinds = {
  observe = { namespace = "cb", base = "observe", without = { "state" }, has_state = true },
  control = { namespace = "cb", base = "control", without = { "state" }, has_state = true },
  everywhere = { namespace = "cb", base = "everywhere", without = { "state" }, has_state = true },
  schedule = { namespace = "sched", base = "fn", without = { "name" }, functions = { "factor" } },
  dynamic_schedule = { namespace = "sched", base = "dynamic", without = { "name", "state" }, functions = { "factor" }, has_state = true },
  rows = { namespace = "map", base = "rows", functions = { "rows" } },
}
local kExamples = { cb = "batch_end = function(ctx, st, cfg) ... end", fn = "factor = function(s, cfg) return 1 - s.frac end",
  dynamic = "factor = function(s, st, cfg) return 1 end", rows = "rows = function(row, cfg) return row end" }

-- Kinds that are functions of numbers, by what people call them -> namespace of their define.
local kDefined = { optimizer = "optim", optim = "optim", loss = "loss", activation = "act", act = "act", init = "init" }

-- Names of the functions that a kind has.
local function function_names(session, choice)
  if choice.functions then return choice.functions end
  local out = {}
  for _, field in ipairs(schema.components(session.schema)[choice.namespace].kinds[choice.base].fields) do
    if field.type == "function" then out[#out + 1] = field.name end
  end
  return out
end

local function choice_of(session, given, site)
  local kind = given.kind == nil and "observe" or given.kind
  local choice = kKinds[kind]
  if choice and not session.groups[choice.namespace] then
    local here = session.groups.map and 'the file of `tycho data map` defines a component of kind = "rows"' or 'kind = "rows" is for the file of `tycho data map`'
    session:refuse_at(site_of.child(site, "kind"), ("kind = %s cannot be used here: %s"):format(schema.brief(kind), here))
  end
  if choice then return choice end
  local names = schema.sorted_keys(kKinds)
  local near = schema.did_you_mean(tostring(kind), names)
  session:refuse_at(site_of.child(site, "kind"), ("kind = %s: expected one of  \"%s\""):format(schema.brief(kind), table.concat(names, '"  "')),
    kDefined[kind] and "write  " .. defines[kDefined[kind]][3] or near and ('did you mean "%s"?'):format(near))
end

local kOptional = { help = true, kind = true, fields = true, state = true }

-- The functions of what was given, by name; everything in it is known.
local function functions_of(session, given, choice, site)
  local names, found = function_names(session, choice), {}
  local known = { name = true }
  for key in pairs(kOptional) do known[key] = true end
  for _, name in ipairs(names) do known[name] = true end
  if not choice.has_state then known.state = nil end
  for _, key in ipairs(schema.sorted_keys(given)) do
    local at = site_of.child(site, key)
    if not known[key] then
      local near = schema.did_you_mean(tostring(key), schema.sorted_keys(known))
      session:refuse_at(at, "unknown key  t.component." .. tostring(key), near and ("did you mean  %s?"):format(near)
        or "keys: " .. table.concat(schema.sorted_keys(known), ", "))
    end
    if not kOptional[key] and key ~= "name" then
      local ref, message = functions.keep(given[key])
      if not ref then session:refuse_at(at, ("%s: %s"):format(key, message)) end
      found[key] = ref
    end
  end
  if next(found) == nil then
    session:refuse_at(site_of.child(site, "name"), ("t.component %s has no function"):format(schema.brief(given.name)),
      "write  " .. (kExamples[choice.base] or kExamples[choice.namespace]))
  end
  return found
end

local function check_rest(session, given, site)
  if given.name == nil then session:refuse_at(site, "t.component needs a name", 'write  name = "plateau"') end
  if given.help ~= nil and type(given.help) ~= "string" then
    session:refuse_at(site_of.child(site, "help"), ("help: expected text in quotes, got %s"):format(schema.brief(given.help)))
  end
  if given.state ~= nil and type(given.state) ~= "function" then
    local kept, message = plain.keep(given.state)
    if not kept then session:refuse_at(site_of.child(site, "state"), "state: " .. message .. ", or a function of cfg that returns one") end
  end
end

-- The state that a component begins with.
local function first_state(session, given, node, site)
  local state = given.state
  if type(state) == "function" then
    local ok, result = pcall(state, node.proxy)
    if not ok then
      if native.exit_of(result) or result == session.stop_mark then error(result, 0) end
      session:refuse_at(site_of.child(site, "state"), "state failed: " .. session.without_place(result))
    end
    state = result
  end
  local kept, message = plain.keep(state or {})
  if not kept then session:refuse_at(site_of.child(site, "state"), "state returned no state: " .. message) end
  return kept.data
end

local function reference(ref) return { at = ref.at, hash = ref.hash } end

-- What the base of a component is told.
local function definition_of(session, given, choice, found, site)
  return function(_, made, node)
    local out = {}
    if choice.has_state then out.state = first_state(made.session or session, given, node, site) end
    if choice.base == "rows" then return out end
    if choice.functions then
      out.name, out.fn = given.name, reference(found.factor)
    else
      for event, ref in pairs(found) do out[event] = reference(ref) end
    end
    return out
  end
end

-- t.component { name, help, kind, fields = { ... }, state, one function per event }: returns the constructor.
function M.define(session, given)
  if type(given) ~= "table" then
    session:refuse("component", 't.component expects a table: t.component { name = "plateau", fields = { ... }, batch_end = function(ctx, st, cfg) ... end }')
  end
  local site = site_of.of_definition(session.sites, "component", schema.sorted_keys(given))
  check_rest(session, given, site)
  local choice = choice_of(session, given, site)
  local found = functions_of(session, given, choice, site)
  return own_kinds.register(session, { namespace = choice.namespace, base = choice.base, name = given.name, help = given.help or "",
    fields = own_fields.read(session, given.fields or {}, "fields", site), table = "fields", without = choice.without, sets_defaults = true, site = site,
    functions = found, definition = definition_of(session, given, choice, found, site) })
end

return M
