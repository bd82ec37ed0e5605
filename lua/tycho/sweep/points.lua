-- The points of a sweep's space: which trials there are. A function of the file alone, the same for every worker.
local native = require "tycho.native"
local node_of = require "tycho.node"
local pins = require "tycho.overrides.pins"
local random = require "tycho.random"
local schema = require "tycho.schema"
local history = require "tycho.history"
local site_of = require "tycho.site"
local values = require "tycho.values"

local M = {}

-- session.lua needs this file, too.
local function session_of() return require "tycho.session" end

local kMaxRedraws = 1000   -- of one trial that s:skip refuses or that was there already

-- Four digits: readable, and enough for any knob.
local function short(x) return values.number_text(tonumber(("%.4g"):format(x))) end

local function typed(text)
  if text == "true" then return true end
  if text == "false" then return false end
  return tonumber(text) or text
end

local draw = {}
function draw.choice(dim, u) return { [dim.name] = dim.values[1 + math.floor(#dim.values * u)] } end
function draw.range(dim, u) return { [dim.name] = short(dim.low + (dim.high - dim.low) * u) } end
function draw.log(dim, u) return { [dim.name] = short(dim.low * (dim.high / dim.low) ^ u) } end
function draw.int(dim, u) return { [dim.name] = values.number_text(dim.low + math.floor((dim.high - dim.low + 1) * u)) } end
function draw.normal(dim, u, v) return { [dim.name] = short(dim.mean + dim.std * random.normal(u, v)) } end
function draw.zip(dim, u)
  local length = #dim.keys[next(dim.keys)]
  local at, out = 1 + math.floor(length * u), {}
  for key, list in pairs(dim.keys) do out[key] = list[at] end
  return out
end

-- What a grid takes of a dimension: a list of { key = text }.
local function grid_values(session, dim, count, site)
  local out = {}
  if dim.kind == "choice" then
    for i, value in ipairs(dim.values) do out[i] = { [dim.name] = value } end
  elseif dim.kind == "zip" then
    local length = #dim.keys[next(dim.keys)]
    for i = 1, length do out[i] = draw.zip(dim, (i - 0.5) / length) end
  elseif dim.kind == "normal" or not count then
    session:problem(site_of.problem(site, "value", ("a grid needs values for %s"):format(dim.name),
      dim.kind == "normal" and "give a t.space.choice { ... }" or ("write  t.search.grid { [%q] = 5 }"):format(dim.name)))
    session:stop()
  else
    local last
    for i = 1, count do
      local u = count == 1 and 0 or (i - 1) / (count - 1)
      if dim.kind == "int" then u = (dim.low + math.floor((dim.high - dim.low) * u + 0.5) - dim.low + 0.5) / (dim.high - dim.low + 1) end
      local value = draw[dim.kind](dim, u)
      if value[dim.name] ~= last then out[#out + 1], last = value, value[dim.name] end
    end
  end
  return out
end

local function holds(when, point)
  for key, wanted in pairs(when) do
    if point[key] ~= wanted then return false end
  end
  return true
end

-- What a dimension is at a point: of its cases the first whose condition holds, or nil.
local function case_at(dim, point)
  for _, case in ipairs(dim.cases) do
    if holds(case.when, point) then return case end
  end
end

-- The keys that the conditions of a dimension name.
local function conditions(dim)
  local out = {}
  for _, case in ipairs(dim.cases) do
    for key in pairs(case.when) do out[key] = true end
  end
  return out
end

-- Dimensions with those first that others depend on.
local function dimensions(session, made)
  local tree = node_of.plain(made.root)
  local waiting, out, known = {}, {}, {}
  for key, text in pairs(tree.pins) do known[key] = text end
  for _, name in ipairs(schema.sorted_keys(tree.space)) do
    local dim = tree.space[name]
    dim.name, dim.cases = name, dim.cases or { dim }
    for _, case in ipairs(dim.cases) do case.name = name end
    waiting[#waiting + 1] = dim
  end
  while #waiting > 0 do
    local left = {}
    for _, dim in ipairs(waiting) do
      local ready = true
      for key in pairs(conditions(dim)) do ready = ready and known[key] ~= nil end
      if ready then
        out[#out + 1] = dim
        known[dim.name] = true
        for key in pairs(dim.keys or {}) do known[key] = true end
      else
        left[#left + 1] = dim
      end
    end
    if #left == #waiting then
      local site = history.site(made, "space." .. left[1].name) or made.site
      session:problem(site_of.problem(site, "value", ("the condition of %s names a key that is not in the space: %s"):format(
        left[1].name, table.concat(schema.sorted_keys(conditions(left[1])), ", "))))
      session:stop()
    end
    waiting = left
  end
  return out
end

-- Asks about values of keys of the sweep's recipe: nil, or what a schema has against one; and for the schema of a key. The recipe
-- is read for its own kinds only where the value does not fit the built-in ones.
local function checker(session, made)
  local root, is_read = native.schema, false
  local function problem_of(key, text)
    local found
    pins.parse(root, { { argument = 0, text = ("%s=%s"):format(key, text) } }, function(kind, _, said)
      if kind == "problem" then found = said end
    end)
    return found
  end
  local function ask(key, text)
    local found, file = problem_of(key, text), made.root.values.recipe
    if not found or is_read or type(file) ~= "string" or not file:find "%.lua$" then return found end
    is_read = true
    local own, wrong = session_of().schema_of({ file }, session.read_file)
    if wrong then return found end
    root = own
    return problem_of(key, text)
  end
  return ask, function(key) return schema.index(root)[key] end
end

-- How a space stands in the sweep, of the arguments or in a file.
local function written(session, site, name, kind, numbers)
  local list = table.concat(numbers, session.of_recipe and "," or ", ")
  if session.of_recipe then return ("'%s=%s(%s)'"):format(name, kind, list) end
  return site.argument and ("'space.%s=%s(%s)'"):format(name, kind, list:gsub(" ", "")) or ("t.space.%s(%s)"):format(kind, list)
end

local kSampled = { 0.1180, 0.2361, 0.3820, 0.6180, 0.7639, 0.8541 }   -- shares of a space that are no round numbers

-- What a space draws and its key refuses, though it takes both ends: a number between two integers. Returns the value, or nil.
local function drawn_and_refused(case, problem_of)
  for _, u in ipairs(kSampled) do
    local text = case.kind == "normal" and short(case.mean + u * case.std) or case.low and draw[case.kind](case, u)[case.name]
    local said = text and problem_of(case.name, text)
    if said then return text, said end
  end
end

-- What to write for a space that draws between the values of an integer; nil where nothing fits.
local function of_integers(session, site, case, field)
  if not field or field.type ~= "integer" then return nil end
  local step = field.multiple_of or 1
  local low, high = case.low or case.mean - 2 * case.std, case.high or case.mean + 2 * case.std
  low, high = math.max(math.ceil(low / step) * step, step), math.floor(high / step) * step
  if not (low < high) then return nil end   -- luacheck: ignore 581 (a NaN is refused too)
  local numbers = { short(low), short(high), step > 1 and short(step) or nil }
  return "write  " .. written(session, site, case.name, "int", numbers)
end

-- Holds every value against the recipe's schema, as the same text on a command line would be.
local function check_values(session, made, dims)
  local problem_of, field_of = checker(session, made)
  local function check(site, key, text)
    local said = problem_of(key, text)
    if not said then return true end
    local is_key = said.col and said.col <= #key
    session:problem(site_of.problem(site, is_key and "key" or "value",
      is_key and said.message or ("%s=%s: %s"):format(key, text, said.message), said.hint))
    return false
  end
  local function check_case(case)
    local site = history.site(made, "space." .. case.name) or made.site
    local lists = case.keys or { [case.name] = case.values or { short(case.low or case.mean), case.high and short(case.high) } }
    local all_fit = true
    for _, key in ipairs(schema.sorted_keys(lists)) do
      for _, text in ipairs(lists[key]) do
        all_fit = all_fit and check(site, key, text)
      end
    end
    if not all_fit then return end
    local text, said = drawn_and_refused(case, problem_of)
    if text and #made.skips == 0 then   -- s:skip may leave out what does not fit
      session:problem(site_of.problem(site, "value", ("%s draws %s=%s: %s"):format(case.kind, case.name, text, said.message),
        of_integers(session, site, case, field_of(case.name))))
    end
  end
  for _, dim in ipairs(dims) do
    for _, case in ipairs(dim.cases) do check_case(case) end
  end
  local pinned = node_of.plain(made.root).pins
  for _, key in ipairs(schema.sorted_keys(pinned)) do
    check(history.site(made, "pins." .. key) or history.site(made, "space." .. key) or made.site, key, pinned[key])
  end
  if session:problem_count() > 0 then session:stop() end
end

local function is_skipped(session, made, point)
  local seen = {}
  for key, text in pairs(point) do seen[key] = typed(text) end
  local known = made.known_keys
  local view = setmetatable({}, { __index = function(_, key)
    if seen[key] == nil and not known[key] then
      session:refuse("skip", ("s:skip: %s is not in the space"):format(tostring(key)),
        "available: " .. table.concat(schema.sorted_keys(known), ", "))
    end
    return seen[key]
  end })
  for _, skip in ipairs(made.skips) do
    if skip.fn(view) then return true end
  end
  return false
end

local function identity(point)
  local out = {}
  for _, key in ipairs(schema.sorted_keys(point)) do out[#out + 1] = key .. "=" .. point[key] end
  return out
end

local function add(list, seen, point)
  local texts = identity(point)
  local id = table.concat(texts, "\0")
  if seen[id] then return false end
  seen[id] = true
  list[#list + 1] = { pins = native.array(texts), values = point }
  return true
end

local function random_points(session, made, dims, search)
  local list, seen = {}, {}
  for trial = 1, search.trials do
    local placed = false
    for redraw = 0, kMaxRedraws do
      local point = {}
      for _, dim in ipairs(dims) do
        local case = case_at(dim, point)
        if case then
          local at = (trial - 1) * (kMaxRedraws + 1) + redraw
          local u, v = native.uniform(search.seed, dim.name, 2 * at), native.uniform(search.seed, dim.name, 2 * at + 1)
          for key, text in pairs(draw[case.kind](case, u, v)) do point[key] = text end
        end
      end
      if not is_skipped(session, made, point) and add(list, seen, point) then
        placed = true
        break
      end
    end
    if not placed then break end   -- a small space is exhausted
  end
  return list
end

local function grid_points(session, made, dims, search)
  local site = history.site(made, "search") or made.site
  local list, seen = {}, {}
  local function descend(i, point)
    local dim = dims[i]
    if not dim then
      if not is_skipped(session, made, point) then add(list, seen, point) end
      return
    end
    local case = case_at(dim, point)
    if not case then return descend(i + 1, point) end
    for _, value in ipairs(case.grid) do
      local longer = {}
      for key, text in pairs(point) do longer[key] = text end
      for key, text in pairs(value) do longer[key] = text end
      descend(i + 1, longer)
    end
  end
  for _, key in ipairs(schema.sorted_keys(search.points)) do
    if not made.known_keys[key] then
      session:problem(site_of.problem(site, "value", ("t.search.grid: %s is not in the space"):format(key)))
    end
  end
  for _, dim in ipairs(dims) do
    for _, case in ipairs(dim.cases) do case.grid = grid_values(session, case, search.points[dim.name], site) end
  end
  descend(1, {})
  return list
end

-- The trials of a finished sweep: a list of { pins = { "key=text" }, values = { key = text } }.
function M.make(session, made)
  local dims = dimensions(session, made)
  check_values(session, made, dims)
  if #dims == 0 then
    local kEmpty = "there are no trials: no key has several values"
    session:problem(session.of_recipe
      and { message = kEmpty, hint = "give a key several values, as in  'optimizer.lr=log(1e-4,1e-2)'  or  model.width=512,768" }
      or site_of.problem(made.site, "key", kEmpty, 's.space["optimizer.lr"] = t.space.log(1e-4, 1e-2)'))
    session:stop()
  end
  made.known_keys = {}
  for _, dim in ipairs(dims) do
    for key in pairs(dim.keys or { [dim.name] = true }) do made.known_keys[key] = true end
  end
  local search = node_of.plain(made.root).search
  local list = (search.kind == "grid" and grid_points or random_points)(session, made, dims, search)
  if #list == 0 then
    session:problem(site_of.problem(made.skips[1] and made.skips[1].site or made.site, "key", "s:skip excludes every point"))
    session:stop()
  end
  return list
end

return M
