-- Which field a running line reads that its table does not have: Lua's own message often names no table, and never what it has.
local lexer_index = require "tycho.site".index
local schema = require "tycho.schema"

local M = {}

local kMost = 200        -- variables of a function
local kMostNamed = 12    -- fields of a table

-- The value of a variable of the function at a level of the stack.
local function variable(level, name)
  local found
  for i = 1, kMost do
    local one, value = debug.getlocal(level + 1, i)
    if not one then break end
    if one == name then found = value end   -- the innermost is the last
  end
  if found ~= nil then return found end
  local fn = debug.getinfo(level + 1, "f").func
  for i = 1, kMost do
    local one, value = debug.getupvalue(fn, i)
    if not one then return nil end
    if one == name then return value end
  end
end

-- A plain table of recipe code: others say by themselves what they have.
local function is_plain(x) return type(x) == "table" and debug.getmetatable(x) == nil end

-- The names of `a.b.c` that end with the token at i; nil where another expression stands before them.
local function path_to(tokens, i)
  local names = { tokens[i].text }
  while tokens[i - 1] and tokens[i - 1].text == "." do
    if not tokens[i - 2] or tokens[i - 2].kind ~= "name" then return nil end
    i = i - 2
    table.insert(names, 1, tokens[i].text)
  end
  return #names > 1 and names or nil
end

local function hint_of(owner, name, fields)
  local names = {}
  for key in next, fields do
    if type(key) == "string" then names[#names + 1] = key end
  end
  table.sort(names)
  local near = schema.did_you_mean(name, names)
  if near then return ("%s has no %s; did you mean  %s.%s?"):format(owner, name, owner, near) end
  if #names == 0 or #names > kMostNamed then return ("%s has no %s"):format(owner, name) end
  return ("%s has no %s; it has %s"):format(owner, name, table.concat(names, ", "))
end

local function level_of(file, line)
  local level = 2
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.source == "@" .. file and info.currentline == line then return level - 1 end
    level = level + 1
  end
end

-- What a message of Lua about nil means, while the function that raised it is on the stack: "st has no hist; did you mean  st.hits?"; nil
-- where every field of the line is there.
function M.hint(sites, file, line, message)
  local level = file and sites.sources[file] and message:find("nil", 1, true) and level_of(file, line)
  if not level then return nil end
  local tokens, named = lexer_index(sites, file).tokens, message:match "field '([^']+)'"
  for _, i in ipairs(lexer_index(sites, file).by_line[line] or {}) do
    local following = tokens[i + 1]
    local is_read = tokens[i].kind == "name" and (not named or tokens[i].text == named) and not (following and following.text == "=")
    local path = is_read and path_to(tokens, i)
    local owner = path and variable(level, path[1])
    for k = 2, path and #path - 1 or 0 do owner = is_plain(owner) and owner[path[k]] or nil end
    if path and is_plain(owner) and owner[path[#path]] == nil then
      return hint_of(table.concat(path, ".", 1, #path - 1), path[#path], owner)
    end
  end
end

return M
