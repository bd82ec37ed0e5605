-- The table that recipes call t: recipes, component constructors, units, and the environment.
local activation = require "tycho.maths.activation"
local arguments_of = require "tycho.arguments"
local component = require "tycho.component"
local errors = require "tycho.errors"
local hub_names = require "tycho.hub_names"
local initial = require "tycho.maths.initial"
local losses = require "tycho.maths.loss"
local native = require "tycho.native"
local operations = require "tycho.maths.operations"
local optimizer = require "tycho.maths.optimizer"
local origin = require "tycho.origin"
local own_component = require "tycho.own.component"
local own_fields = require "tycho.own.fields"
local recipe = require "tycho.recipe"
local random = require "tycho.random"
local sandbox = require "tycho.sandbox"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local slurm = require "tycho.slurm"
local sweep = require "tycho.sweep"
local values = require "tycho.values"

local M = {}

-- t.model.qwen3{ preset = "0.6b" }: the fields of a published size. Fields that are given win over those of the preset.
local function with_preset(session, kind, presets, given)
  local name, call = given.preset, ("t.model.%s"):format(kind)
  local known = {}
  for i, one in ipairs(presets) do known[i] = ('"%s"'):format(one) end
  local list = table.concat(known, ", ")
  if type(name) ~= "string" then session:refuse(kind, ("%s expects the name of a preset: one of %s"):format(call, list)) end
  local found
  for _, one in ipairs(presets) do found = found or one == name end
  if not found then
    local near = schema.did_you_mean(name, presets)
    session:refuse(kind, ("%s has no preset %q"):format(call, name),
      near and ('did you mean "%s"? There are %s'):format(near, list) or "there are " .. list)
  end
  local fields = native.preset(kind, name)
  for key, value in pairs(given) do
    if key ~= "preset" then fields[key] = value end
  end
  return fields
end

-- One constructor per kind of every component in the schema, grouped by namespace.
local function constructors(session)
  local groups = {}
  for namespace, field in pairs(schema.components(session.schema)) do
    local group = {}
    groups[namespace] = group
    for kind, spec in pairs(field.kinds) do
      group[kind] = component.constructor(session, namespace, kind, spec.presets and function(given)
        return given.preset ~= nil and with_preset(session, kind, spec.presets, given) or given
      end)
    end
  end
  return groups
end

-- t.sched.fn("wsd", function(s) ... end, { t_warmup = "100ba" }); or one table with all of it, as a resolved recipe has.
local function function_schedule(session, kind, make)
  return function(name, fn, given)
    if type(name) == "table" then return make(name) end
    if type(name) ~= "string" or type(fn) ~= "function" then
      session:refuse(kind, ("t.sched.%s expects a name and a function: t.sched.%s(\"wsd\", function(s) return 1 - s.frac end)")
        :format(kind, kind))
    end
    local all = { name = name, fn = fn }
    for key, value in pairs(given or {}) do all[key] = value end
    return component.make("sched", kind, all, site_of.of_call(session.sites, kind, schema.sorted_keys(all)))
  end
end

-- The list of keys in t.model.hf{ ignore = ... }.
local function ignored_keys(session, list)
  local names = native.array {}
  for i, name in pairs(type(list) == "table" and list or {}) do
    if type(i) == "number" and type(name) == "string" then names[#names + 1] = name end
  end
  if list ~= nil and (type(list) ~= "table" or #names ~= #schema.sorted_keys(list)) then
    session:refuse("ignore", 't.model.hf expects a list of keys of config.json: ignore = { "some_key" }')
  end
  return names
end

-- t.model.hf{ path = ... }: the family and the fields that a config.json says, and the weights beside it. Fields that
-- are given win over those of the file.
local function hf_model(session)
  return function(given)
    if type(given) ~= "table" or type(given.path) ~= "string" then
      session:refuse("hf", 't.model.hf expects the folder of a model, or its name on the hub: t.model.hf{ path = "models/llama" }')
    end
    local pretrained = given.pretrained ~= false
    local path = hub_names.pinned(session, given.path)
    local fields, kind = native.hf_model(path, pretrained, ignored_keys(session, given.ignore))
    if not fields then session:refuse("hf", kind, nil, true) end
    if pretrained then fields.weights = path end
    for key, value in pairs(given) do
      if key ~= "path" and key ~= "pretrained" and key ~= "ignore" then fields[key] = value end
    end
    return component.make("model", kind, fields, site_of.of_call(session.sites, "hf", schema.sorted_keys(given)))
  end
end

local kMasked = "***"   -- as C++ masks secrets

-- t.env, and t.secret: `what` is which. A secret shows nowhere from here on.
local function read_environment(session, what, name, default)
  if type(name) ~= "string" then session:refuse(what, ('t.%s expects a name: t.%s("DATA", "data")'):format(what, what)) end
  local value = native.env(name)
  local is_secret = what == "secret" or native.is_secret_name(name) or session.environment[name] == kMasked
  local is_masked = value and is_secret and native.register_secret(value)
  if value and what == "secret" and not is_masked then
    local file, line = site_of.caller(session.sites)
    session:warning { file = file, line = line, message = ("%s is too short to be masked: it will show where it is printed")
      :format(name), hint = "secrets of 6 characters or more are masked" }
  end
  session.environment[name] = value and is_secret and kMasked or value or values.null
  if value == nil then value = default end
  if value == nil then
    session:refuse(what, ("the environment variable %s is not set"):format(name),
      ("set it, or give a default:  t.%s(%q, ...)"):format(what, name))
  end
  return value
end

-- t.deprecate("old_name", "new_name", "0.3"): a warning where the function that says so is called from.
local function deprecate(session, what, instead, version)
  if type(what) ~= "string" then
    session:refuse("deprecate", 't.deprecate expects a name: t.deprecate("sizes.small", "sizes.tiny", "0.3")')
  end
  local file, line = site_of.caller(session.sites, 2)
  session:warning { file = file, line = line, message = what .. " is deprecated"
    .. (version and (" and will be removed in version %s"):format(version) or ""), hint = instead and "write  " .. instead }
end

-- t.append{...} and the like: a change to the existing list.
local function list_functions(session)
  local out = {}
  for _, what in ipairs { "append", "prepend", "remove", "replace" } do
    out[what] = function(items)
      if type(items) ~= "table" then session:refuse(what, ("t.%s expects a table: t.%s { ... }"):format(what, what)) end
      return component.make_request(what, items, site_of.of_name(session.sites, what))
    end
  end
  out.insert = function(at, items)
    if type(at) ~= "number" or type(items) ~= "table" then
      session:refuse("insert", "t.insert expects a position and a table: t.insert(1, { ... })")
    end
    return component.make_request("insert", items, site_of.of_name(session.sites, "insert"), at)
  end
  out.lazy = function(fn)
    if type(fn) ~= "function" then
      session:refuse("lazy", "t.lazy expects a function of the finished recipe: t.lazy(function(c) return c.seq_len * 2 end)")
    end
    return component.make_request("lazy", fn, site_of.of_name(session.sites, "lazy"))
  end
  return out
end

local kDurations = { "ba", "ep", "sp", "tok", "dur", "s", "m", "h" }
local kSizes = { "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB" }

-- t.ba(100), t.MiB(64): quantities of a number.
local function unit_functions(session)
  local out = {}
  local function unit(name, make)
    out[name] = function(number)
      if type(number) ~= "number" then session:refuse(name, ("t.%s expects a number: t.%s(100)"):format(name, name)) end
      local quantity, message = make(values.number_text(number) .. name)
      return quantity or session:refuse(name, message)
    end
  end
  for _, name in ipairs(kDurations) do unit(name, values.duration) end
  for _, name in ipairs(kSizes) do unit(name, values.bytes) end
  return out
end

-- t.duration "10ba" and t.bytes "64MiB"; with a table, a field of a kind of one's own.
local function quantity(session, word, given, read, expected)
  if type(given) == "table" and not values.is_quantity(given) then return own_fields.declare(session, word, given) end
  return type(given) == "string" and read(given) or session:refuse(word, expected)
end

-- t.profile { ... } and t.fp8 { ... }: a section's table.
local function section(session, name, example)
  return function(given)
    return type(given) == "table" and given or session:refuse(name, ("t.%s expects a table: t.%s %s"):format(name, name, example))
  end
end

local kHasOwnKinds = { cb = true, sched = true, optim = true }

-- What the public table holds: name -> value.
function M.content(session)
  local function refuse(...) return session:refuse(...) end
  local t = {
    version = native.version,
    required = values.required,
    null = values.null,
    unset = values.unset,
    recipe = function(name)
      if session.kind == "sweep" then
        session:refuse("recipe", "this file is read as a sweep", 'name the recipe:  s.recipe = "recipes/x.lua"')
      end
      return recipe.new(session, name)
    end,
    sweep = function(name) return sweep.new(session, name) end,
    arg = function(name, default) return arguments_of.read(session, name, default) end,
    random = function(name, seed) return random.stream(session, name, seed) end,
    slurm = slurm.view(session),
    env = function(name, default) return read_environment(session, "env", name, default) end,
    secret = function(name, default) return read_environment(session, "secret", name, default) end,
    debug = function()
      if not session.open_prompt then
        refuse("debug", "t.debug opens a prompt in a function that a run calls", "write it into one:  batch_end = function(ctx, st) t.debug() end")
      end
      session.open_prompt()
    end,
    component = function(given) return own_component.define(session, given) end,
    deprecate = function(...) return deprecate(session, ...) end,
    bytes = function(given) return quantity(session, "bytes", given, values.bytes, "t.bytes expects a size such as \"64MiB\"") end,
    profile = section(session, "profile", '{ active = "3ba" }'),
    fp8 = section(session, "fp8", '{ recipe = "rowwise" }'),
    duration = function(given)
      return quantity(session, "duration", given, values.duration, "t.duration expects a number with a unit such as \"100ba\"")
    end,
  }
  for _, group in ipairs { list_functions(session), unit_functions(session), errors.functions(session), operations.functions,
    own_fields.functions(session) } do
    for name, fn in pairs(group) do t[name] = fn end
  end
  local groups = constructors(session)
  session.groups = groups
  if session.kind == "sweep" then sweep.add_constructors(session, groups) end
  if groups.model then groups.model.hf = hf_model(session) end
  if groups.optim then groups.optim.define = function(given) return optimizer.define(session, given) end end
  if groups.cb then   -- the schemas of specs have neither
    t.observe, t.control, t.everywhere = groups.cb.observe, groups.cb.control, groups.cb.everywhere
    for _, kind in ipairs { "fn", "dynamic" } do
      groups.sched[kind] = function_schedule(session, kind, groups.sched[kind])
    end
  end
  if groups.loss then groups.loss.define = function(given) return losses.define(session, given) end end
  if groups.init then
    for name, make in pairs(initial.constructors(session)) do groups.init[name] = make end
  end
  if groups.model then groups.act = { define = function(given) return activation.define(session, given) end } end
  t.origin = function(given) return origin.load(session, given) end
  local function refuse_kind(name, message, hint)
    return refuse(name, message, hint .. (hint:find "^available" and "; one of your own, after  require  of its module" or ""))
  end
  for namespace, group in pairs(groups) do
    t[namespace] = sandbox.view("t." .. namespace, group, kHasOwnKinds[namespace] and refuse_kind or refuse, operations.functions[namespace])   -- t.log(x)
  end
  return t
end

-- The public table for one load of a recipe.
function M.new(session)
  return sandbox.view("t", M.content(session), function(...) return session:refuse(...) end)
end

return M
