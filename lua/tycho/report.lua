-- Collects everything that is wrong with a recipe and prints it once, sorted, with the source line and a
-- caret.
local native = require "tycho.native"

local M = {}

local kMaxShown = 50
local kMaxLine = 160      -- bytes of a source line that are shown
local kMaxMessage = 2000

-- A list of problems: { message, file, line, col, len, hint } in a source, or { message, argument } on the
-- command line.
function M.new() return { list = {}, seen = {} } end

-- Adds a problem; the same text at the same place counts once.
function M.add(report, problem)
  local id = table.concat({ problem.file or "", problem.line or 0, problem.col or 0, problem.argument or 0,
    problem.message }, "\0")
  if report.seen[id] then return end
  report.seen[id] = true
  problem.order = #report.list
  report.list[#report.list + 1] = problem
end

-- Leaves out what is only worth saying of a recipe without problems, such as files that are not there yet.
function M.drop_of_valid(report)
  local kept = {}
  for _, problem in ipairs(report.list) do
    if not problem.of_valid then kept[#kept + 1] = problem end
  end
  report.list = kept
end

-- Sources first, by file and place; then arguments by number; then what has no place.
local function before(a, b)
  local rank_a, rank_b = a.file and 1 or a.argument and 2 or 3, b.file and 1 or b.argument and 2 or 3
  if rank_a ~= rank_b then return rank_a < rank_b end
  if a.file ~= b.file then return a.file < b.file end
  for _, key in ipairs { "line", "argument", "col" } do
    local x, y = a[key] or 0, b[key] or 0
    if x ~= y then return x < y end
  end
  return a.order < b.order
end

local function nth_line(text, n)
  local i = 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    i = i + 1
    if i == n then return line end
  end
end

-- Bytes of UTF-8 that only continue a character take no place on the screen.
local function width(text) return #text - select(2, text:gsub("[\128-\191]", "")) end

-- Text that is safe to print: no control characters, no bytes that are not UTF-8.
local function printable(text)
  text = text:gsub("\t", " ")
  if native.utf8_error(text) then text = text:gsub("[\128-\255]", "?") end
  return (text:gsub("[%z\1-\8\11-\31\127]", "?"))
end

-- The part of a long line around a column, and the column in it.
local function window(line, col)
  if #line <= kMaxLine then return line, col end
  local start = math.max(1, math.min((col or 1) - kMaxLine / 2, #line - kMaxLine))
  while start > 1 and line:find("^[\128-\191]", start) do start = start - 1 end
  local stop = math.min(#line, start + kMaxLine)
  while stop < #line and line:find("^[\128-\191]", stop + 1) do stop = stop + 1 end
  local shown = line:sub(start, stop) .. (stop < #line and "..." or "")
  if start == 1 then return shown, col end
  return "..." .. shown, col and col - start + 4
end

local function excerpt(problem, source)
  local line = problem.text or (source and problem.line and nth_line(source, problem.line))
  if not line then return "" end
  local shown, col = window(line, problem.col)
  local margin = problem.line and not problem.text and ("%4d |"):format(problem.line) or "     |"
  local under = (" "):rep(#margin - 1) .. "|"
  local out = ("%s %s"):format(margin, printable(shown)):gsub("%s+$", "") .. "\n"
  if col then
    local last = math.min(#shown + 1, col + math.max(1, problem.len or 1) - 1)
    local carets = ("^"):rep(math.max(1, width(shown:sub(col, last))))
    local hint = problem.hint and " " .. problem.hint or ""
    out = out .. ("%s %s%s%s\n"):format(under, (" "):rep(width(shown:sub(1, col - 1))), carets, hint)
  elseif problem.hint then
    out = out .. ("%s %s\n"):format(under, problem.hint)
  end
  return out
end

local function head(problem)
  local message = printable(problem.message)
  if #message > kMaxMessage then message = message:sub(1, kMaxMessage) .. "..." end
  if problem.argument == 0 then return "argument  " .. message end   -- one that is kept from an earlier command
  if problem.argument then return ("argument %d  %s"):format(problem.argument, message) end
  if not problem.file then return message end
  if problem.made_from then return ("%s (line %d of its recipe): %s"):format(problem.made_from, problem.line or 1, message) end
  local place = problem.file
  if problem.line then place = place .. ":" .. problem.line end
  if problem.col then place = place .. ":" .. problem.col end
  return place .. ": " .. message
end

local function entry(problem, sources)
  local shown = excerpt(problem, problem.file and sources[problem.file])
  return head(problem) .. (shown == "" and problem.hint and "; " .. problem.hint or "") .. "\n" .. shown
end

-- "number > 0" of "optimizer.lr = -1: expected number > 0; write 0.1", and "0.1".
local function expected_of(message)
  local text = message:match "expected (.+)$"
  if not text then return nil end
  return text:match "^(.-); write " or text:match "^(.-), got " or text, text:match "; write (.+)$"
end

-- Every problem as { file, line, column or argument, path, message, expected, got, suggestion }, before M.warnings words them.
function M.as_data(report)
  table.sort(report.list, before)
  local out = native.array {}
  for i, one in ipairs(report.list) do
    local expected, meant = expected_of(one.message)
    out[i] = { file = one.file, line = one.line, column = one.col, argument = one.argument, path = one.path, message = one.message,
      expected = expected, got = one.got, suggestion = one.hint or meant }
  end
  return out
end

-- Every problem with its excerpt, as a list of texts. `sources` maps file names to their text.
local function entries(report, sources)
  table.sort(report.list, before)
  local out = {}
  for i, problem in ipairs(report.list) do
    if i > kMaxShown then
      out[#out + 1] = ("... and %d more\n"):format(#report.list - kMaxShown)
      break
    end
    out[#out + 1] = entry(problem, sources)
    if problem.trace then out[#out + 1] = problem.trace .. "\n" end
  end
  return out
end

-- Warnings as text, in the same form; "" for none.
function M.warnings(warnings, sources)
  for _, problem in ipairs(warnings.list) do problem.message = "warning: " .. problem.message end
  return table.concat(entries(warnings, sources))
end

-- The problems alone.
function M.entries(report, sources) return table.concat(entries(report, sources)) end

-- For the host: the entries of { problems, sources }.
function M.of_list(request)
  local report = M.new()
  for _, problem in ipairs(request.problems) do M.add(report, problem) end
  return { text = M.entries(report, request.sources) }
end

-- What lists the keys; `file` is the recipe or the sweep, nil when it could not be read; made_from: the file of another
-- system that it was made of.
local function where_keys_are(kind, file, made_from)
  if kind == "sweep" then return file and "docs/sweeps.md has the keys of a sweep" end
  if kind == "file" then return nil end
  if made_from then
    return ("`tycho import %s` writes its recipe, `tycho config %s` lists every key"):format(made_from, made_from)
  end
  if not file then return nil end
  return ("`tycho config %s` lists every key"):format(file)
end

-- The whole report as text; its last line says where the keys of the "recipe" or the "sweep" are, when it could be read.
function M.text(report, sources, kind, file, made_from)
  local out, count = entries(report, sources), #report.list
  local where = where_keys_are(kind, file, made_from)
  out[#out + 1] = ("%d %s; nothing was started.%s"):format(count, count == 1 and "problem" or "problems",
    where and " " .. where .. "." or "")
  return table.concat(out)
end

return M
