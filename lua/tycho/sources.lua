-- Files of recipe code: what is accepted as one, running it, and finding what require asks for.
local habits = require "tycho.hints.habits"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local recipe = require "tycho.recipe"
local site_of = require "tycho.site"
local unused = require "tycho.hints.unused"

local M = {}

local function report_syntax(session, file, message)
  local line, text = message:match(":(%d+): (.*)$")
  line = tonumber(line) or 1
  local index = lexer.index(session.sources[file])
  for l = line, math.max(1, line - 1), -1 do
    local token, advice = habits.at_load(index, l)
    if not token then token, advice = habits.missing_comma(index, l, text or message) end
    if token then
      return session:problem { file = file, line = token.line, col = token.col, len = token.len, message = "not Lua",
        hint = advice }
    end
  end
  session:problem { file = file, line = line, message = "not Lua: " .. (text or message) }
end

-- Keeps a text among the sources; false after reporting what is not a text.
function M.takes(session, file, text)
  if text:sub(1, 1) == "\27" then
    session:problem { file = file, message = "this is Lua bytecode; a recipe is Lua text" }
    return false
  end
  local bad = native.utf8_error(text)
  if bad then
    local before = text:sub(1, bad - 1)
    local _, lines = before:gsub("\n", "")
    session.sources[file] = text:gsub("[\128-\255]", "?")
    session:problem { file = file, line = lines + 1, col = #before:match("[^\n]*$") + 1, len = 1,
      message = "this is not UTF-8 text", hint = "save the file as UTF-8" }
    return false
  end
  session.sources[file] = text
  return true
end

-- Lua takes the later of two values without a word.
local function warn_twice(session, file)
  for _, made in ipairs(site_of.index(session.sites, file).constructors) do
    for _, key in ipairs(made.twice) do
      session:warning { file = file, line = key.line, col = key.col, len = key.len,
        message = ("%s appears twice in this table: the later value wins"):format(key.text) }
    end
  end
end

-- Warns of what is written in files that ran and does nothing.
function M.lint(session)
  for _, file in ipairs(session.ran) do
    for _, name in ipairs(session.made_from[file] and {} or unused.locals(session.sources[file])) do
      session:warning { file = file, line = name.line, col = name.col, len = name.len,
        message = ("the local %s is never used"):format(name.text),
        hint = "remove it, or start its name with _" }
    end
  end
end

-- Runs one source file in the sandbox and returns what it returns; a file that does not parse stops the
-- recipe.
function M.run_file(session, file, text)
  local chunk, message = load((text:gsub("^#[^\n]*", "")), "@" .. file, "t")
  if not chunk then
    report_syntax(session, file, message)
    session:stop()
  end
  warn_twice(session, file)
  table.insert(session.ran, file)
  local outer = session.sites.running
  session.sites.running = file
  local result = setfenv(chunk, session.env)()
  session.sites.running = outer
  return result
end

local function folder_of(file) return file:match("^(.*/)[^/]*$") or "" end

-- "recipes/../base.lua" as "base.lua".
local function tidy(path)
  local out = {}
  for part in path:gmatch("[^/]+") do
    if part == ".." and #out > 0 and out[#out] ~= ".." then
      out[#out] = nil
    elseif part ~= "." then
      out[#out + 1] = part
    end
  end
  return (path:sub(1, 1) == "/" and "/" or "") .. table.concat(out, "/")
end

-- The folders where files are looked for last: those of the run that a session reads again, else TYCHO_PATH's.
function M.search_path(session) return session.search_path or native.env("TYCHO_PATH") or "" end

-- Where a file may be: beside the one that asks, under the working folder, in the folders of TYCHO_PATH. A
-- package is a folder with an init.lua.
local function candidates(session, from, name)
  local relative = name:gsub("^%./", "")
  if not relative:find("/", 1, true) then relative = relative:gsub("%.lua$", ""):gsub("%.", "/") end
  relative = relative:gsub("%.lua$", "") .. ".lua"
  if relative:sub(1, 1) == "/" then return { relative } end
  local out = { tidy(folder_of(from) .. relative), tidy(relative) }
  if out[2] == out[1] then out[2] = nil end
  for folder in M.search_path(session):gmatch("[^:]+") do out[#out + 1] = tidy(folder .. "/" .. relative) end
  return out
end

local function run_once(session, file, text, from)
  local id = session.canonical(file)
  local loaded = session.loaded[id]
  if loaded == session then session:refuse("require", ("%s is required by itself, through %s"):format(file, from)) end
  if loaded ~= nil then return loaded end
  session.loaded[id] = session
  if not session:takes(file, text) then session:stop() end
  local result = M.run_file(session, file, text)
  session.loaded[id] = result == nil and true or result
  local made = recipe.behind(result)
  if made then
    recipe.freeze(made, ("%s belongs to every recipe that requires it"):format(file),
      'make your own:  local r = base:extend "name"')
  end
  return session.loaded[id]
end

-- require of recipes: "tycho", or a Lua file. Absent files name the places tried; broken ones report their own line.
function M.make_require(session)
  return function(name)
    if name == "tycho" then return session.t end
    if type(name) ~= "string" then session:refuse("require", 'require expects a name: require "base.small"') end
    local from = site_of.caller(session.sites) or session.file
    local places = candidates(session, from, name)
    for _, place in ipairs(places) do
      for _, file in ipairs { place, (place:gsub("%.lua$", "/init.lua")) } do
        local text, message, absent = session.read_file(file)
        if text then return run_once(session, file, text, from) end
        if absent == false then session:refuse("require", ("%s exists, but: %s"):format(file, message)) end
      end
    end
    session:refuse("require", ("no recipe file \"%s\""):format(name), "looked for " .. table.concat(places, " and ")
      .. ", also as " .. places[1]:match("([^/]*)%.lua$") .. "/init.lua" .. native.near_file(places[1]))
  end
end

return M
