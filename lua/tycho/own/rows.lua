-- Row functions of `tycho data map` that are components: kind = "rows". The file is read as a recipe with one key, map, so that
-- its arguments are checked as those of a recipe.
local missing = require "tycho.hints.missing"
local native = require "tycho.native"
local node_of = require "tycho.node"
local sandbox = require "tycho.sandbox"
local session_of = require "tycho.session"
local site_of = require "tycho.site"

local M = {}

-- The file may return the component, or what it makes with fields of its own.
local kProgram = [[
local made = require(%q)
local r = require "tycho".recipe "rows"
r.map = type(made) == "function" and made {} or made
return r
]]

local kSchema = { type = "struct", fields = { { name = "map", type = "component", namespace = "map", usual = "rows", required = true,
  help = "The component that the file returns.", kinds = { rows = { type = "struct", help = "A row function.", fields = {} } } } } }

-- The fields of a component, which its function only reads.
local function fields_of(node)
  return sandbox.view("cfg", node_of.plain(node), function(_, message, hint) error(message .. (hint and "; " .. hint or ""), 0) end)
end

-- request: file, arguments = { { argument, text } }. { problems, report } and the function of a row; no function where the file
-- defines no component.
function M.load(request)
  local file = request.file
  local text = native.read_file(file)
  if not text or not text:find "%.component%f[%W]" then return { problems = 0 } end
  local name = "rows of " .. file
  local last = select(2, text:gsub("\n", "")) + (text:sub(-1) == "\n" and 0 or 1)   -- returns the component
  local lines = setmetatable({}, { __index = function() return { line = last } end })
  for _, one in ipairs(request.arguments) do one.text = "map." .. one.text end
  local result = session_of.load { file = name, files = { [name] = kProgram:format(file, file) }, schema = kSchema, kind = "file",
    made_from = { [name] = { file = file, text = text, lines = lines } },
    arguments = request.arguments, check_tree = function() return {} end, facts = function() return {} end, output = native.output }
  if result.problems > 0 then return { problems = result.problems, report = result.report } end
  local node = session_of.finished.root.values.map
  local fn, cfg = node.component.kinds[node.kind].own.functions.rows.fn, fields_of(node)
  return { problems = 0 }, function(row) return fn(row, cfg) end
end

-- A row function of a file, whose errors name fields that a row does not have.
function M.guarded(file, fn)
  local sites = site_of.new({ [file] = native.read_file(file) or "" }, file)
  local function on_error(raised)
    if type(raised) ~= "string" then return raised end
    local at, line = raised:match "^(.-):(%d+): "
    local hint = missing.hint(sites, at, tonumber(line), raised)
    return hint and raised .. "; " .. hint or raised
  end
  return function(row)
    local ok, result = xpcall(fn, on_error, row)
    if not ok then error(result, 0) end
    return result
  end
end

return M
