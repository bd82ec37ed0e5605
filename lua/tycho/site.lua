-- Places in recipes: which line of which file wrote a value, and where on that line.
local lexer = require "tycho.lexer"

local M = {}

-- Keeps one lexer index per source. `sources` maps file names to their text; `main` is blamed where no line
-- is known, as after a tail call.
function M.new(sources, main) return { sources = sources, main = main, indexes = {} } end

local function index_of(sites, file)
  if not sites.indexes[file] then sites.indexes[file] = lexer.index(sites.sources[file]) end
  return sites.indexes[file]
end

-- The nearest caller that is recipe code: its file and line.
function M.caller(sites)
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    local file = info.source:match("^@(.*)$")
    if file and sites.sources[file] and info.currentline > 0 then return file, info.currentline end
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
  if not file then return { file = sites.main } end
  local index = index_of(sites, file)
  local key_token, value_token = lexer.assignment(index, line, key)
  local site = mark({ file = file, line = line }, key_token, value_token)
  site.constructor = lexer.constructor(index, line, key, {})
  return site
end

-- Where a name stands on the running line.
function M.of_name(sites, name)
  local file, line = M.caller(sites)
  if not file then return { file = sites.main } end
  return mark({ file = file, line = line }, lexer.name(index_of(sites, file), line, name))
end

-- Where the running statement calls `head { ... }`; `keys` are those of the table.
function M.of_call(sites, head, keys)
  local file, line = M.caller(sites)
  if not file then return { file = sites.main } end
  return { file = file, line = line, constructor = lexer.constructor(index_of(sites, file), line, head, keys) }
end

-- The place of one key of the table constructor at a site; the site itself when it is not known.
function M.child(site, key)
  local entry = site.constructor and site.constructor.entries[key]
  if not entry then
    return { file = site.file, line = site.line, key = site.key, argument = site.argument, text = site.text }
  end
  local child = mark({ file = site.file, line = entry.key.line }, entry.key, entry.value)
  child.constructor = entry.constructor
  return child
end

-- "recipes/x.lua:7" or "argument 3".
function M.text(site)
  if site.argument then return "argument " .. site.argument end
  if site.file then return site.file .. ":" .. (site.key and site.key.line or site.line) end
  return "schema"
end

-- A problem at a site; `part` says whether the caret goes under the "key" or the "value".
function M.problem(site, part, message, hint)
  if site.argument then return { argument = site.argument, message = message, hint = hint } end
  local spot = site[part] or site.key or {}
  return { file = site.file, line = spot.line or site.line, col = spot.col, len = spot.len, message = message,
    hint = hint }
end

return M
