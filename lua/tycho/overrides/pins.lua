-- Arguments as a tree of pins. They are known before the recipe runs and override what it writes. A place of the tree:
-- children by key; absolute: the override that chooses the value (= := + ~), or nil; relative: the operators that act on
-- it, or on whatever the recipe writes.
local literal = require "tycho.overrides.literal"
local operators = require "tycho.overrides.operators"
local other_names = require "tycho.hints.other_names"
local overrides = require "tycho.overrides"
local schema = require "tycho.schema"
local suggest = require "tycho.hints.suggest"
local values = require "tycho.values"

local M = {}

-- The specs directly below `specs` under a key: components have one per kind.
local function below(specs, key)
  local found, beside = {}, {}
  for _, spec in ipairs(specs) do
    local choices = { spec }
    if spec.type == "component" then
      choices = {}
      for _, kind in ipairs(schema.sorted_keys(spec.kinds)) do choices[#choices + 1] = spec.kinds[kind] end
    end
    for _, choice in ipairs(choices) do
      for _, field in ipairs(choice.fields or {}) do
        if not beside[field.name] then beside[#beside + 1], beside[field.name] = field.name, true end
        if field.name == key then found[#found + 1] = field end
      end
      if choice.type == "map" then found[#found + 1] = choice.item end
      if choice.type == "list" and type(key) == "number" then found[#found + 1] = choice.item end
    end
  end
  return found, beside
end

local function bad_index(specs, key, name)
  for _, spec in ipairs(specs) do
    if spec.type == "list" and type(key) == "number" then
      if key < 1 then
        return ("Lua indices start at 1; %s.1 is the first value"):format(name:match("[^%.]*$"))
      elseif key > (spec.length or key) then
        return ("there are only %d values in %s"):format(spec.length, name)
      end
    end
  end
end

-- All specs that the path can mean and those of its parent; nil and a problem when there is none.
local function specs_at(root, override)
  local parts = override.parts
  local specs, parent = { root }, nil
  for i, part in ipairs(parts) do
    local at = overrides.path(parts, i - 1)
    local message = bad_index(specs, part.key, at)
    if message then return nil, { message = message, col = part.col, len = part.len } end
    local found, beside = below(specs, part.key)
    if #found == 0 then
      local near = suggest.paths(root, at, tostring(part.key), beside)
      return nil, { message = "unknown key  " .. overrides.path(parts, i), path = overrides.path(parts, i), col = part.col, len = part.len,
        hint = other_names.argument_hint(root, override) or suggest.hint(root, near, "") or "`tycho config` lists every key" }
    end
    specs, parent = found, specs
  end
  return specs, parent
end

-- The place of a key below another, made when it is not there; `anew` forgets what was there.
local function child_of(place, key, anew)
  local child = not anew and place.children[key]
  if not child then
    local keys = { unpack(place.keys) }
    keys[#keys + 1] = key
    child = { children = {}, keys = keys, path = schema.join(place.path, key) }
    place.children[key] = child
  end
  return child
end

local function place_of(tree, parts)
  local place = tree
  for _, part in ipairs(parts) do place = child_of(place, part.key) end
  return place
end

-- Takes away what the value of another kind brought below a place: its keys are not those of the new kind. Keys that arguments of
-- their own gave stay.
local function forget_keys(place, order)
  for _, child in pairs(place.children) do
    if child.absolute and child.absolute.order == order then child.absolute = nil end
    forget_keys(child, order)
  end
end

-- Gives a place its value. Groups, maps and the keys of components become pins of their own, so that later arguments can
-- change parts of them.
local function choose(place, spec, override)
  local given = override.given
  if given ~= values.null and (spec.type == "struct" or spec.type == "map" or spec.type == "component") then
    local fields = spec.type == "component" and spec.kinds[given.kind].fields or spec.fields
    local before = spec.type == "component" and place.absolute and place.absolute.given
    if type(before) == "table" and before.kind ~= given.kind then forget_keys(place, place.absolute.order) end
    for _, key in ipairs(schema.sorted_keys(given)) do
      if key ~= "kind" or spec.type ~= "component" then
        choose(child_of(place, key), fields and schema.field(fields, key) or spec.item,
          { op = "=", given = given[key], site = override.site, order = override.order })
      end
    end
    if spec.type ~= "component" then return end
    override = { op = "=", given = { kind = given.kind }, site = override.site, order = override.order }
  elseif spec.type == "list" then
    place.children = {}
  end
  place.absolute, place.relative = override, nil
end

-- The first spec whose type takes the text, with the value; nil and the first refusal. Kinds differ in what a key takes: where they
-- refuse differently, the text is left to the kind that the recipe chooses, which reads it again: the last value is true.
local function first_reading(specs, read)
  local first, differ
  for _, spec in ipairs(specs) do
    local value, message = read(spec)
    if value ~= nil then return spec, value end
    first, differ = first or message, differ or first ~= nil and message ~= first
  end
  return nil, first, differ
end

local function said_at(site) return site.argument and "argument " .. site.argument or "a line above" end

-- A change below a place that no value of the place itself brought, or nil.
local function change_below(place)
  local found
  local own = place.absolute and place.absolute.order
  M.each(place, function(one)
    local change = one ~= place and (one.relative and one.relative[1] or one.absolute)
    if change and change.order ~= own then found = found or change end
  end)
  return found
end

-- What takes a name out of an open table above these parts, or nil.
local function removed_above(tree, parts)
  local place = tree
  for i = 1, #parts - 1 do
    place = place.children[parts[i].key]
    if not place then return nil end
    if place.is_name and place.absolute and place.absolute.op == "~" then return place end
  end
end

local function unset(place, specs, parent, override)
  local spec, last = specs[1], override.parts[#override.parts]
  place.is_name = parent[1].type == "map"
  local change = place.is_name and change_below(place)
  if change then
    return nil, { message = ("%s changes what this removes"):format(said_at(change.site)), col = last.col, len = last.len,
      hint = "remove one of the two" }
  end
  if parent[1].type == "list" then
    local list = overrides.path(override.parts, #override.parts - 1)
    return nil, { message = ("one value of a list cannot be unset; remove it:  %s-=[...]"):format(list), col = last.col,
      len = last.len }
  end
  if spec.required and parent[1].type ~= "map" then
    return nil, { message = "this key is required: it can be changed, not unset", col = last.col, len = last.len }
  end
  if spec.type == "struct" then
    for _, field in ipairs(spec.fields) do
      local child = child_of(place, field.name, true)
      if not field.required then unset(child, { field }, { spec }, override) end
    end
    return true
  end
  place.children, place.absolute, place.relative = {}, override, nil
  return true
end

local function value_problem(override, message, hint)
  return { message = message, hint = hint, col = override.value_col, len = math.max(1, #override.value),
    path = overrides.path(override.parts), got = override.value }
end

-- Puts one override into its place. Nil and a problem when its value does not fit.
local function put(place, specs, parent, override)
  local op = override.op
  if override.given ~= nil then   -- of a file with values, not text
    if specs[1].type == "list" then place.children = {} end
    place.absolute, place.relative = override, nil
    return true
  end
  if op == "~" then return unset(place, specs, parent, override) end
  if op == "+" and parent[1].type ~= "map" then
    return nil, { message = "+ adds names to open tables, but this key already exists", col = 1, len = 1,
      hint = "write  " .. override.text:sub(2) }
  end
  if op == ":=" then
    place.absolute, place.relative = override, nil
    return true
  end
  if op == "=" or op == "+" or (op == "+=" and specs[1].type == "map") then
    local spec, given, by_kind = first_reading(specs, function(spec) return literal.read(spec, override.value) end)
    if by_kind then
      place.children, place.absolute, place.relative = {}, override, nil
      return true
    end
    if not spec then return nil, value_problem(override, given, other_names.value_hint(place.path, override.value, specs[1])) end
    if schema.is_scalar(spec) or spec.type == "list" then   -- read again where its spec is known: kinds differ
      choose(place, spec, override)
    else
      choose(place, spec, { op = "=", given = given, site = override.site, order = override.order })
    end
    return true
  end
  local spec, message, by_kind = first_reading(specs, function(spec) return operators.operand(spec, op, override.value) end)
  if not spec and not by_kind then return nil, value_problem(override, message) end
  place.relative = place.relative or {}
  table.insert(place.relative, { op = op, text = override.value, site = override.site, order = override.order })
  return true
end

-- Whether these parts lead through a name of an open table: what is there is known when the recipe has run.
local function is_below_a_name(root, parts)
  for count = 1, #parts - 2 do
    local field = schema.index(root)[overrides.path(parts, count)]
    if field and field.type == "map" then return true end
  end
  return false
end

-- The place of an override's parts for carets: of an argument, or of a line in a file of overrides.
local function site_for(one, override)
  local key, last = override.parts[1], override.parts[#override.parts]
  local site = { argument = one.argument, file = one.file, line = one.line, text = override.text }
  local shift = (one.col or 1) - 1
  site.key = { line = one.line, col = key.col + shift, len = last.col + last.len - key.col }
  if override.value_col then
    site.value = { line = one.line, col = override.value_col + shift, len = math.max(1, #override.value) }
  end
  return site
end

-- arguments: { { argument, text } or { file, line, col, text }, ... } in order; those of files may have parts and given
-- instead of text. tell(kind, one, problem) takes each "problem" and "warning", and says them at the place of `one`.
-- Returns the tree, and the places with expressions.
function M.parse(root, arguments, tell)
  local tree, expressions = { children = {}, keys = {}, path = "" }, {}
  for order, one in ipairs(arguments) do
    local override, problem = one.override, nil
    if not override then override, problem = overrides.parse(one.text) end
    if problem then problem.hint = other_names.group_hint(root, one.text) or problem.hint end
    if override then
      local specs, parent = specs_at(root, override)
      local removed = specs and removed_above(tree, override.parts)
      problem = not specs and parent or removed and { message = ("%s removes %s"):format(said_at(removed.absolute.site),
        removed.path), col = override.parts[1].col, len = #removed.path, hint = "remove one of the two" } or nil
      if specs and not removed then
        if override.op == "+" and is_below_a_name(root, override.parts) then override.op = "=" end
        override.site, override.order = override.site or site_for(one, override), order
        local place = place_of(tree, override.parts)
        local earlier = place.absolute
        problem = select(2, put(place, specs, parent, override))
        if not problem and override.op == ":=" then expressions[#expressions + 1] = place end
        if not problem and earlier and place.absolute == override then
          tell("warning", one, { message = ("replaces what %s said: %s"):format(said_at(earlier.site),
            earlier.site.text or place.path) })
        end
      end
    end
    if problem then tell("problem", one, problem) end
  end
  return tree, expressions
end

-- Calls visit(place) for every place of a tree that has an override.
function M.each(tree, visit)
  if tree.absolute or tree.relative then visit(tree) end
  for _, key in ipairs(schema.sorted_keys(tree.children)) do M.each(tree.children[key], visit) end
end

return M
