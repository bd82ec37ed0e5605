-- t.origin: the recipe that a resolved recipe came from, for what no text can say: its functions.
local native = require "tycho.native"
local own_kinds = require "tycho.own.kinds"
local report = require "tycho.report"
local site_of = require "tycho.site"
local sources_of = require "tycho.sources"

local M = {}

local function read_files(session, given)
  local from = site_of.caller(session.sites) or session.file
  local folder, files = from:match("^(.*/)[^/]*$") or "", {}
  for name, place in pairs(given.files) do
    local text, message = session.read_file(folder .. place)
    if not text then session:refuse("origin", ("the run's own %s is missing: %s"):format(name, message)) end
    if not session:takes(folder .. place, text) then session:stop() end
    files[name] = text
  end
  return files
end

-- given: file, arguments, search_path when the run had one, and files: source name -> place beside the file that asks.
-- The recipe can only be read.
function M.load(session, given)
  if type(given) ~= "table" or type(given.file) ~= "string" or type(given.files) ~= "table" then
    session:refuse("origin", "t.origin is written by Tycho into the recipe.lua of a run folder")
  end
  local arguments = {}
  for i, text in ipairs(given.arguments or {}) do arguments[i] = { argument = i + 1, text = text } end
  local made_by, made, text = require("tycho.session").run {
    file = given.file, files = read_files(session, given), only_files = true, arguments = arguments, schema = session.schema,
    search_path = given.search_path,
    facts = session.facts, check_tree = function() return {} end, output = function() end,
  }
  if made_by:problem_count() > 0 or not made then
    session:refuse("origin", "the recipe that this run came from no longer works:\n"
      .. report.text(made_by.report, made_by.sources, made_by.kind, text and made_by.file))
  end
  own_kinds.take(session, made_by)
  return made.root.proxy
end

-- The lines that a resolved recipe begins with so that `from` is its origin.
function M.lines(session, arguments)
  local schema = require "tycho.schema"
  local names = schema.sorted_keys(session.sources)
  local places = native.source_places(native.array(names))
  local out = { "\n-- Functions come from the files that the run was read from.\n",
    ("local from = t.origin {\n  file = %s,\n  arguments = {"):format(schema.literal(session.file)) }
  for i, one in ipairs(arguments) do out[#out + 1] = (i > 1 and ", " or " ") .. schema.literal(one.text) end
  out[#out + 1] = #arguments > 0 and " },\n" or "},\n"
  local search_path = sources_of.search_path(session)
  if search_path ~= "" then out[#out + 1] = ("  search_path = %s,\n"):format(schema.literal(search_path)) end
  out[#out + 1] = "  files = {\n"
  for _, name in ipairs(names) do
    out[#out + 1] = ("    [%s] = %s,\n"):format(schema.literal(name), schema.literal(places[name]))
  end
  out[#out + 1] = "  },\n}\n"
  return table.concat(out)
end

return M
