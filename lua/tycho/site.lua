-- Places in recipes: which line of which file wrote a value, and where on that line.
local lexer = require "tycho.lexer"
local native = require "tycho.native"

local M = {}

local kConfig = "~/.config/"

-- The path of a file whose name begins with the user's folder; that of configurations is XDG_CONFIG_HOME where it is set.
function M.path_of(name)
  local home, config = native.env "HOME", native.env "XDG_CONFIG_HOME"
  if name:sub(1, #kConfig) == kConfig and config and config ~= "" then return config .. name:sub(#kConfig) end
  return name:sub(1, 2) == "~/" and home and home .. name:sub(2) or name
end

-- Keeps one lexer index per source. `sources` maps file names to their text; `main` is blamed where no line
-- is known, as after a tail call. made_from: recipes that were made of files of other systems, by name.
function M.new(sources, main, made_from)
  return { sources = sources, main = main, made_from = made_from or {}, indexes = {} }
end

local function index_of(sites, file)
  if not sites.indexes[file] then sites.indexes[file] = lexer.index(sites.sources[file]) end
  return sites.indexes[file]
end

M.index = index_of

-- Where code runs that stands in no file: an expression of an argument, or a tail call.
local function nowhere(sites)
  local site = {}
  for key, value in pairs(sites.forced or { file = sites.main }) do site[key] = value end
  if sites.forced then site.key = site.value end
  return site
end

-- The nearest caller that is recipe code: its file and line. `count` 2: the one that called it, where there is one.
function M.caller(sites, count)
  if sites.forced then return nil end
  local level, left = 2, count or 1
  local found_file, found_line
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return found_file, found_line end
    local file = info.source:match("^@(.*)$")
    if file and sites.sources[file] and info.currentline > 0 then
      found_file, found_line, left = file, info.currentline, left - 1
      if left == 0 then return file, info.currentline end
    end
    level = level + 1
  end
end

local function mark(site, key, value)
  if key then site.key = { line = key.line, col = key.col, len = key.len } end
  if value then site.value = { line = value.line, col = value.col, len = value.len } end
  return site
end

-- Where the running statement reads or writes `.key`.
function M.of_key(sites, key)
  local file, line = M.caller(sites)
  if not file then return nowhere(sites) end
  local index = index_of(sites, file)
  local key_token, value_token = lexer.assignment(index, line, key)
  local site = mark({ file = file, line = line }, key_token, value_token)
  site.constructor = lexer.constructor(index, line, key, {})
  return site
end

-- Where a name stands on the running line. `return f(x)` leaves no line: then where it first stands in the running file.
function M.of_name(sites, name)
  local file, line = M.caller(sites)
  if not file then
    local site = nowhere(sites)
    for _, token in ipairs(sites.running and not sites.forced and index_of(sites, sites.running).tokens or {}) do
      if token.kind == "name" and token.text == name then
        return mark({ file = sites.running, line = token.line }, token)
      end
    end
    return site
  end
  return mark({ file = file, line = line }, lexer.name(index_of(sites, file), line, name))
end

-- Where the running statement calls `head { ... }`, or a function by another name; `keys` are those of the table.
function M.of_call(sites, head, keys)
  local file, line = M.caller(sites)
  if not file then return nowhere(sites) end
  local index = index_of(sites, file)
  return { file = file, line = line, constructor = lexer.constructor(index, line, head, keys) or lexer.constructor(index, line, nil, keys) }
end

-- Where `head { ... }` stands that is being called. After `return head { ... }` only the file that runs is known: then the last
-- one there.
function M.of_definition(sites, head, keys)
  local file, line = M.caller(sites)
  local made = file and lexer.constructor(index_of(sites, file), line, head, keys)
  if made or not sites.running then return { file = file or sites.main, line = line or 1, constructor = made } end
  local all = index_of(sites, sites.running).by_head[head] or {}
  local last = all[#all]
  return { file = sites.running, line = last and last.first_line or 1, constructor = last }
end

-- The table that a file returns.
function M.of_return(sites, file)
  local index, last = index_of(sites, file), nil
  for _, made in ipairs(index.constructors) do
    if made.head == "return" then last = made end
  end
  return { file = file, line = last and last.first_line or 1, constructor = last }
end

-- The place of one key of the table constructor at a site; the site itself when it is not known.
function M.child(site, key)
  local entry = site.constructor and site.constructor.entries[key]
  if not entry then
    return { file = site.file, line = site.line, key = site.key, value = site.text and site.value, argument = site.argument,
      text = site.text }
  end
  local child = mark({ file = site.file, line = entry.key.line }, entry.key, entry.value)
  child.constructor = entry.constructor
  return child
end

-- The file of another system that a line of a recipe was made of, and the place { line, col, len } or { argument, text } in
-- it; nil for what is in no such recipe, no place for what stands nowhere in the file.
function M.origin(sites, file, line)
  local made = sites.made_from[file]
  local place = made and made.lines[line]
  return made, place and (place.argument or place.line > 0) and place or nil
end

-- "recipes/x.lua:7" or "argument 3"; of a recipe that was made of x.yaml, "x.yaml:12", or "x.yaml" where it has no line.
function M.text(site, sites)
  if site.argument then return "argument " .. site.argument end
  if not site.file then return "schema" end
  local line = site.key and site.key.line or site.line
  local made, place = M.origin(sites, site.file, line)
  if not made then return site.file .. ":" .. line end
  if not place then return made.file end
  return place.argument and "argument " .. place.argument or made.file .. ":" .. place.line
end

-- A problem at a site; `part` says whether the caret goes under the "key" or the "value". Those of arguments begin with
-- the argument.
-- facts: { path, got } of a value that does not fit, for those who read problems as data.
function M.problem(site, part, message, hint, facts)
  local spot = site[part] or site.key or {}
  if site.text then message = site.text .. ": " .. message end
  return { argument = site.argument, text = site.argument and site.text, file = site.file, line = spot.line or site.line,
    col = spot.col, len = spot.len, message = message, hint = hint, path = facts and facts.path, got = facts and facts.got }
end

return M
