-- t.recipe: the strict root of a run, how recipes extend each other, and the checks of a finished recipe.
local build = require "tycho.build"
local functions = require "tycho.functions"
local history = require "tycho.history"
local lazy = require "tycho.lazy"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local node = require "tycho.node"
local operators = require "tycho.overrides.operators"
local overrides = require "tycho.overrides"
local other_names = require "tycho.hints.other_names"
local own_kinds = require "tycho.own.kinds"
local pins = require "tycho.overrides.pins"
local plain = require "tycho.plain"
local schema = require "tycho.schema"
local schedules = require "tycho.schedules"
local show = require "tycho.show"
local site_of = require "tycho.site"
local values = require "tycho.values"
local write = require "tycho.write"

local M = {}

-- The recipe behind a proxy, or nil.
function M.behind(x)
  local root = node.behind(x)
  return root and root.recipe
end

local function check_name(session, name)
  if type(name) == "string" and name:find("^%w[%w._-]*$") then return end
  session:refuse("recipe", ("t.recipe %s: expected a name of letters, digits, '.', '_' and '-'")
    :format(schema.brief(name)))
end

-- The run is named after its recipe unless it sets another name.
local function name_run(self)
  local root = self.root
  local untouched = root.state.run_name and not self.named and root.state.run_name ~= "pinned"
  if untouched then write.set(root, "run_name", self.name, site_of.of_name(self.sites, "recipe"), "default") end
end

-- Whether a key of the recipe was set, by a line or an argument.
local function was_given(self, key)
  if self.root.state[key] == "pinned" then return true end
  for _, entry in ipairs(self.history[key] or {}) do
    if entry.by ~= "default" then return true end
  end
  return false
end

-- A model that starts from a folder's weights uses the tokenizer next to them, unless the recipe sets one.
local function take_tokenizer(self)
  local model = self.root.values.model
  local weights = type(model) == "table" and model.proxy and model.values.weights
  if type(weights) ~= "string" or weights == "" or was_given(self, "tokenizer") then return end
  local path = native.tokenizer_beside(weights, model.values.vocab_size)
  if path then
    write.set(self.root, "tokenizer", path, history.site(self, "model.weights") or self.site, "recipe")
  end
end

-- What proxies of this recipe call to write: nothing once it is frozen.
local function writer(self)
  return function(at, key, value, site)
    if self.frozen then
      self:problem(site_of.problem(site, "key", ("%s is written here, but %s"):format(node.named(at, key), self.frozen.why),
        self.frozen.hint))
      self:stop()
    end
    return write.set(at, key, value, site)
  end
end

-- From here on the recipe can only be read; `why` and `hint` tell who writes all the same.
function M.freeze(self, why, hint) self.frozen = { why = why, hint = hint } end

-- r:set("optimizer.lr", 3e-4), for paths that are computed.
local function set_path(self, path, value)
  local site = site_of.of_name(self.sites, "set")
  local at, key = self.root, nil
  for part in tostring(path):gmatch("[^%.]+") do
    if key ~= nil then at = node.behind(node.read(at, key)) end
    if not at then self:refuse("set", ("r:set: %s is below a key that has no keys of its own"):format(path)) end
    key = tonumber(part) or part
  end
  if key == nil then self:refuse("set", 'r:set expects a path and a value: r:set("optimizer.lr", 3e-4)') end
  self.write(at, key, value, site)
end

local function attach_methods(self)
  self.root.methods.extend = function(this, name)
    if name == nil and type(this) == "string" then
      self:refuse("extend", "extend is called with a colon", ('write  r:extend "%s"'):format(this))
    end
    return M.extend(self, name)
  end
  self.root.methods.set = function(_, path, value) return set_path(self, path, value) end
  self.root.methods.why = function(_, path)
    local text, message = show.why(self, path)
    return text or self:refuse("why", message)
  end
  self.root.methods.show = function()
    local resolved = { tree = M.tree(self), history = self.history, schema = self.schema }
    return show.text(show.rows(resolved, { changed = true }), resolved)
  end
  self.root.methods.check = function(_, name, fn) M.add_check(self, name, fn) end
  self.root.recipe = self
  return self.root.proxy
end

-- A new recipe with the schema's defaults and the session's pins.
function M.new(session, name)
  check_name(session, name)
  local self = setmetatable({ name = name, history = {}, checks = {} }, { __index = session })
  self.write, self.resolve = writer(self), function(at, key) return lazy.resolve(self, at, key) end
  self.site = site_of.of_name(session.sites, "recipe")
  self.root = build.struct(self, session.schema, "", session.pins)
  name_run(self)
  self.session.newest = self
  return attach_methods(self)
end

-- A copy under a new name; the base is never changed.
function M.extend(base, name)
  check_name(base, name)
  local self = setmetatable({ name = name, history = {}, checks = { unpack(base.checks) } },
    { __index = base.session })
  for path, list in pairs(base.history) do self.history[path] = { unpack(list) } end
  self.write, self.resolve = writer(self), function(at, key) return lazy.resolve(self, at, key) end
  self.site = site_of.of_name(base.sites, "extend")
  self.root = node.copy(base.root, self)
  self.named = (base.root.written.run_name or base.root.values.run_name) ~= base.name
  name_run(self)
  self.session.newest = self
  return attach_methods(self)
end

-- Registers a rule that runs after every override and before anything starts.
function M.add_check(self, name, fn)
  if type(name) ~= "string" or type(fn) ~= "function" then
    self:refuse("check", "r:check expected a name and a function",
      'r:check("length", function(c) return c.seq_len <= 4096 end)')
  end
  table.insert(self.checks, { name = name, fn = fn, site = site_of.of_name(self.sites, "check") })
end

local function report_open(self, at, field, path)
  local site = at.open_sites and at.open_sites[field.name] or history.site(self, at.path) or self.site
  local value = field.type == "component" and schema.example(field) or "..."
  local hint = site.argument and ("add  %s=%s  (%s)"):format(path, value == "..." and "VALUE" or field.usual, schema.describe(field))
    or ("write  %s = %s  (%s)"):format(lexer.path(self.session.kind == "sweep" and "s" or "r", path), value, schema.describe(field))
  local help = (field.help or "") ~= "" and ": " .. field.help or ""
  local problem = site_of.problem(site, "key", ("%s is required and not set%s"):format(path, help), hint)
  problem.open, problem.on_purpose = path, at.state[field.name] == "open"
  self:problem(problem)
end

-- Reports every required key without a value.
local function check_required(self, at)
  for _, field in ipairs(at.spec.fields or {}) do
    local value = at.values[field.name]
    local path = schema.join(at.path, field.name)
    if type(value) == "table" and value.proxy then
      check_required(self, value)
    elseif value == nil and at.state[field.name] ~= "invalid" then
      report_open(self, at, field, path)
    end
  end
  if at.spec.fields then return end
  for _, key in ipairs(schema.sorted_keys(at.state)) do   -- names of open tables, values of lists
    local value = at.values[key]
    if type(value) == "table" and value.proxy then
      check_required(self, value)
    elseif at.state[key] == "open" then
      report_open(self, at, setmetatable({ name = key }, { __index = at.spec.item }), schema.join(at.path, key))
    end
  end
end

-- The node that holds the last of some keys, and that key; nil where the path ends early.
local function holder(root, keys)
  local at, key = root, nil
  for _, part in ipairs(keys) do
    if key ~= nil then at = at.values[key] end
    if type(at) ~= "table" or not at.proxy then return nil, at end
    key = part
  end
  return at, key
end

-- The kind that someone means who writes NAME.key: the one of that name, or the only one that has the key.
local function meant_kind(kinds, name, key)
  if kinds[name] then return name end
  local found
  for _, kind in ipairs(schema.sorted_keys(kinds)) do
    if schema.field(kinds[kind].fields, key) then
      if found then return "KIND" end
      found = kind
    end
  end
  return found or "KIND"
end

-- Whether a component of this kind needs no other key than this one.
local function is_enough(kind, key)
  if not kind or not schema.field(kind.fields, key) then return false end
  for _, field in ipairs(kind.fields) do
    if field.required and field.name ~= key then return false end
  end
  return true
end

-- How to add the name of an open table that a pin acts on.
local function how_to_add(root, keys, value)
  local at = root
  for i, key in ipairs(keys) do
    if type(at) ~= "table" or not at.proxy then return nil end
    local item = at.spec.item
    if item and item.type == "component" and at.values[key] == nil then
      local names = schema.sorted_keys(at.values)
      local kind = meant_kind(item.kinds, key, keys[i + 1])
      local whole = ("%s.%s=%s{%s=%s}"):format(at.path, key, kind, keys[i + 1], is_enough(item.kinds[kind], keys[i + 1]) and value or "...")
      return ("%sadd a complete one with  %s"):format(#names > 0 and ("existing: %s; "):format(table.concat(names, ", ")) or "",
        whole:find "%.%.%." and whole or overrides.shell_word(whole))
    end
    at = at.values[key]
  end
end

local function is_unset(value) return value == nil or value == values.null end

-- Reports pins that had nothing to act on.
local function check_pins(self)
  pins.each(self.pins, function(place)
    local at, key = holder(self.root, place.keys)
    local pin = place.absolute or place.relative[1]
    local refused = at and at.refused and at.refused[key]
    if refused then return self:problem(refused) end
    local reported = at and (at.state[key] == "invalid" or at.state[key] == "open")
    if at and not place.absolute and is_unset(at.values[key]) and not reported then
      return self:problem(site_of.problem(pin.site, "value", ("%s has no value to %s"):format(place.path,
        operators.verb(pin.op))))
    end
    if pin.op == "~" or at and at.values[key] ~= nil or at and at.state[key] then return end
    local message = ("%s is not set in this %s"):format(place.path:match("^(.*)%.[^.]*$"), self.session.kind)
    if at and at.kind then
      message = ("%s is %s here; its keys are %s"):format(at.path, at.kind, table.concat(at.keys, ", "))
    end
    local hint = not at and how_to_add(self.root, place.keys, pin.op == "=" and pin.value) or other_names.names_a_kind(self.session.schema, place.path, pin.value)
    self:problem(site_of.problem(pin.site, "key", message, hint))
  end)
end

-- Plain data of nodes with quantities as text and functions as what identifies them.
function M.text_tree(tree)
  local function text(value)
    if values.is_quantity(value) then return values.text(value) end
    if functions.is(value) then return functions.data(value) end
    if plain.is(value) then return value.data end
    if type(value) ~= "table" then return value end
    local out = setmetatable({}, debug.getmetatable(value))
    for key, item in pairs(value) do out[key] = text(item) end
    return out
  end
  return text(tree)
end

-- The recipe as checks and the engine read it.
function M.tree(self)
  local tree = M.text_tree(node.plain(self.root))
  own_kinds.complete(self, self.root, tree)
  return tree
end

-- Raised by a check that needs the data set before it exists: the run itself checks it.
local kUndecided = setmetatable({}, { __tostring = function() return "the data set does not exist yet" end })

-- Lets checks read what follows from the recipe beside its keys: steps, total_tokens, tokens_per_step, num_params.
local function add_facts(self)
  local facts = self.known
  setmetatable(self.root.methods, { __index = function(_, key)
    if facts[key] == values.null then error(kUndecided, 0) end
    return facts[key]
  end })
end

local function run_checks(self)
  if #self.checks > 0 then add_facts(self) end
  for _, check in ipairs(self.checks) do
    local ok, held, message = pcall(check.fn, self.root.proxy)
    if not ok and held ~= kUndecided then
      if native.exit_of(held) then error(held, 0) end
      if held ~= self.stop_mark then
        self:problem(site_of.problem(check.site, "key", ('check "%s" failed: %s'):format(check.name,
          self.without_place(held))))
      end
    elseif ok and not held then
      self:problem(site_of.problem(check.site, "key", ('check "%s" does not hold%s'):format(check.name,
        message and ": " .. tostring(message) or "")))
    end
  end
end

-- Where the value of a path was written; where a rule names another key beside it ("not a multiple of kv_heads = 3") that
-- an argument set, that argument: it is what is new.
local function site_to_blame(self, path, message)
  local site = history.site(self, path) or self.site
  local above = path:match "^(.*%.)[^.]*$" or ""
  for name in message:gmatch "([%a_][%w_]*) = " do
    local other = not site.argument and history.site(self, above .. name)
    if other and other.argument then return other end
  end
  return site
end

-- Runs every rule of a finished recipe; problems go to the report. check_tree(tree) gives the rules between keys, as a list
-- of { path, message, warning = true when the run may still be started }.
function M.finish(self, check_tree)
  self.finished = true
  M.freeze(self, "the recipe is finished", "write it before the recipe returns, or use t.lazy")
  lazy.resolve_all(self, self.root)
  check_required(self, self.root)
  check_pins(self)
  if self:problem_count() > 0 then return end
  take_tokenizer(self)
  for _, one in ipairs(check_tree(M.tree(self))) do
    local path = one.path:gsub("%[(%d+)%]", ".%1")
    local site = site_to_blame(self, path, one.message)
    local says_key = site.argument and site.text and site.text:sub(1, #path + 1) == path .. "="
    local say = one.warning and self.warning or self.problem
    local said = site_of.problem(site, "value", says_key and one.message or path .. ": " .. one.message)
    said.of_valid = one.warning
    say(self, said)
  end
  if self:problem_count() > 0 then return end
  self.known = self.facts(M.tree(self))
  self.schedule = schedules.factors(self, self.known)
  run_checks(self)
end

return M
