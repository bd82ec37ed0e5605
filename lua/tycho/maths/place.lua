-- Where an operation of a traced function stands in its recipe.
local lexer = require "tycho.lexer"
local site_of = require "tycho.site"

local M = {}

local kNames = { ["and"] = "both", ["or"] = "either", ["not"] = "negate" }

-- The first of a function's lines that names this, after a return where `returning`; else its first return, or where it begins.
local function line_naming(session, fn, name, returning)
  local info = debug.getinfo(fn, "S")
  local file = info.source:match "^@(.*)$"
  if not file or not session.sources[file] then return nil end
  local index, any = site_of.index(session.sites, file), nil
  for line = info.linedefined, info.lastlinedefined do
    local returns = false
    for _, i in ipairs(index.by_line[line] or {}) do
      returns = returns or index.tokens[i].text == "return"
      any = any or returns and line
      if (returns or not returning) and index.tokens[i].text == name then return file, line end
    end
  end
  return file, any or info.linedefined
end

-- File and line where a function that is not running names something; nil where it is no recipe's.
function M.naming(session, fn, name) return line_naming(session, fn, name, false) end

-- File and line of the running operation of a function; nil where it is no recipe's.
function M.of(session, fn, op)
  local file, line = site_of.caller(session.sites)
  if file then return file, line end
  return line_naming(session, fn, kNames[op] or op, true)   -- Lua forgets the line of  return t.sqrt(x)
end

-- Reports at a name on a line, and ends the recipe.
function M.refuse(session, file, line, op, message, hint)
  local site = { file = file, line = line }
  if file then site.key = lexer.name(site_of.index(session.sites, file), line, kNames[op] or op) end
  session:problem(site_of.problem(site, "key", message, hint))
  session:stop()
end

return M
