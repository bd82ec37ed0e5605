-- Files of recipe code: what is accepted as one, running it, and finding what require asks for.
local habits = require "tycho.hints.habits"
local lexer = require "tycho.lexer"
local native = require "tycho.native"
local recipe = require "tycho.recipe"
local schema = require "tycho.schema"
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

-- Folders of modules, in this order. That of the user keeps its name where XDG_CONFIG_HOME puts it elsewhere (site.path_of), so that
-- the files of a run have the same names on every machine.
local kVendored, kOfUser = "lua_modules/", "~/.config/tycho/lua/"

-- Where a file may be: { file, root = the folder of modules that it would be in, or nil }. Beside the one that asks, under the
-- working folder, in lua_modules, beside the recipe, in the user's folder, in the folders of TYCHO_PATH. A package is a folder with an init.lua.
-- A dot leads into a folder, as in Lua, or is one of the file's own name: require "gpt2-1.5b".
local function candidates(session, from, name)
  local relative = name:gsub("^%./", ""):gsub("%.lua$", "")
  if relative:sub(1, 1) == "/" then return { { file = relative .. ".lua" } } end
  local as_folders = relative:find("/", 1, true) and relative or relative:gsub("%.", "/")
  local out, seen = {}, {}
  local function add(folder, root)
    for _, path in ipairs { as_folders, relative } do
      local file = tidy(folder .. path .. ".lua")
      if not seen[file] then out[#out + 1], seen[file] = { file = file, root = root }, true end
    end
  end
  add(folder_of(from))
  add ""
  add(kVendored, kVendored)
  add(folder_of(session.file))
  add(kOfUser, kOfUser)
  for folder in M.search_path(session):gmatch("[^:]+") do add(folder .. "/", tidy(folder) .. "/") end
  return out
end

-- Keeps all Lua files of the folder below `root` that a file is in: a module is recorded as a whole.
local function take_module(session, root, file)
  local name = root and file:sub(1, #root) == root and file:sub(#root + 1):match "^([^/]+)/"
  if not name or session.modules[root .. name] then return end
  local folder = root .. name
  session.modules[folder] = true
  local files, message = session.list_files(folder)
  if not files then session:refuse("require", message) end
  for _, one in ipairs(files) do
    local text, why = session.read_file(one)
    if not text then session:refuse("require", why) end
    if not session.sources[one] and not session:takes(one, text) then session:stop() end
  end
end

-- Folder of a module -> hash of the names and texts of its files.
function M.module_hashes(session)
  local out = {}
  for folder in pairs(session.modules) do
    local lines = {}
    for _, file in ipairs(schema.sorted_keys(session.sources)) do
      if file:sub(1, #folder + 1) == folder .. "/" then
        lines[#lines + 1] = ("%s  %s\n"):format(native.hash(session.sources[file]), file:sub(#folder + 2))
      end
    end
    out[folder] = native.hash(table.concat(lines))
  end
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
      for _, file in ipairs { place.file, (place.file:gsub("%.lua$", "/init.lua")) } do
        local text, message, absent = session.read_file(file)
        if text then
          take_module(session, place.root, file)
          return run_once(session, file, text, from)
        end
        if absent == false then session:refuse("require", ("%s exists, but: %s"):format(file, message)) end
      end
    end
    local tried, near = {}, ""
    for i, place in ipairs(places) do
      tried[i] = place.file
      if near == "" then near = native.near_file(place.file) end
    end
    session:refuse("require", ("no module or recipe \"%s\""):format(name), "looked for " .. table.concat(tried, " and ")
      .. ", also as " .. tried[1]:match("([^/]*)%.lua$") .. "/init.lua" .. near)
  end
end

return M
