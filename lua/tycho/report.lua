-- Collects everything that is wrong with a recipe and prints it once, sorted, with the source line and a
-- caret.
local M = {}

local kMaxShown = 50

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

-- Sources first, by file and place; then arguments by number; then what has no place.
local function before(a, b)
  local rank_a, rank_b = a.file and 1 or a.argument and 2 or 3, b.file and 1 or b.argument and 2 or 3
  if rank_a ~= rank_b then return rank_a < rank_b end
  if a.file ~= b.file then return a.file < b.file end
  for _, key in ipairs { "line", "col", "argument" } do
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

local function excerpt(problem, source)
  local line = source and problem.line and nth_line(source, problem.line)
  if not line then return "" end
  local out = ("%4d | %s\n"):format(problem.line, (line:gsub("\t", " ")))
  if problem.col then
    local carets = ("^"):rep(math.max(1, problem.len or 1))
    local hint = problem.hint and " " .. problem.hint or ""
    out = out .. ("     | %s%s%s\n"):format((" "):rep(problem.col - 1), carets, hint)
  elseif problem.hint then
    out = out .. ("     | %s\n"):format(problem.hint)
  end
  return out
end

local function head(problem)
  if problem.argument then return ("argument %d  %s"):format(problem.argument, problem.message) end
  if not problem.file then return problem.message end
  local place = problem.file
  if problem.line then place = place .. ":" .. problem.line end
  if problem.col then place = place .. ":" .. problem.col end
  return place .. ": " .. problem.message
end

-- The whole report as text. `sources` maps file names to their text; `recipe` is named in the last line.
function M.text(report, sources, recipe)
  table.sort(report.list, before)
  local out = {}
  for i, problem in ipairs(report.list) do
    if i > kMaxShown then
      out[#out + 1] = ("... and %d more\n"):format(#report.list - kMaxShown)
      break
    end
    local shown = excerpt(problem, problem.file and sources[problem.file])
    out[#out + 1] = head(problem) .. (shown == "" and problem.hint and "; " .. problem.hint or "") .. "\n" .. shown
    if problem.trace then out[#out + 1] = problem.trace .. "\n" end
  end
  local count = #report.list
  out[#out + 1] = ("%d %s; nothing was started. `tycho config%s` lists every key.")
    :format(count, count == 1 and "problem" or "problems", recipe and " " .. recipe or "")
  return table.concat(out)
end

return M
