-- Finds where things stand in a Lua source: keys inside table constructors, targets and values of
-- assignments. Lua itself reports one line per statement; error messages want the column of the key.
local M = {}

-- Words that Lua does not take for names; goto is one in later versions.
M.keywords = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil",
  "not", "or", "repeat", "return", "then", "true", "until", "while" }

local is_keyword = {}
for _, word in ipairs(M.keywords) do is_keyword[word] = true end

-- Whether a text can stand in Lua as a name.
function M.is_name(text) return text:find("^[%a_][%w_]*$") ~= nil and not is_keyword[text] end

-- A text as a key of a table: lr, ["repeat"], ["a-b"].
function M.key(text)
  if M.is_name(text) then return text end
  return "[" .. ("%q"):format(text):gsub("\\\n", "\\n") .. "]"
end

-- A dotted path behind a variable: r.streams[1]["repeat"] for "r" and "streams[1].repeat".
function M.path(variable, path)
  local out = { variable }
  for part in path:gmatch("[^%.]+") do
    local name, index = part:match("^([^%[]*)(.*)$")
    out[#out + 1] = (M.is_name(name) and "." .. name or M.key(name)) .. index
  end
  return table.concat(out)
end

local function read_long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  if not level then return nil end
  local _, stop = text:find("]" .. level .. "]", at + #level + 2, true)
  return stop or #text
end

local function read_quoted(text, at)
  local quote, i = text:sub(at, at), at + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == "\\" then i = i + 1 elseif c == quote or c == "\n" then return i end
    i = i + 1
  end
  return #text
end

local kOperators = { ["..."] = true, [".."] = true, ["=="] = true, ["~="] = true, ["<="] = true, [">="] = true, ["!="] = true,
  ["+="] = true, ["-="] = true, ["*="] = true, ["/="] = true, ["++"] = true, ["**"] = true, ["//"] = true, ["&&"] = true,
  ["||"] = true, ["??"] = true }   -- longer than one character

-- Where the token that starts at `at` ends, and its kind; comments and blanks have the kind "blank".
local function next_token(text, at)
  local _, stop = text:find("^%s+", at)
  if stop then return stop, "blank" end
  if text:find("^%-%-", at) then
    return read_long_bracket(text, at + 2) or (text:find("\n", at, true) or #text + 1) - 1, "blank"
  end
  _, stop = text:find("^[%a_][%w_]*", at)
  if stop then return stop, "name" end
  _, stop = text:find("^0[xX]%x+", at)
  if stop then return stop, "number" end
  _, stop = text:find("^%.?%d[%d%.]*[eE]?[%+%-]?%d*", at)
  if stop then
    -- "3-4" is three tokens: a sign belongs to a number only after an exponent.
    local plain = select(2, text:find("^%.?%d[%d%.]*", at))
    local exponent = select(2, text:find("^[eE][%+%-]?%d+", plain + 1))
    return exponent or plain, "number"
  end
  if text:find("^[\"']", at) then return read_quoted(text, at), "string" end
  stop = read_long_bracket(text, at)
  if stop then return stop, "string" end
  for more = 2, 1, -1 do
    local piece = text:sub(at, at + more)
    if kOperators[piece] then return at + #piece - 1, "op" end
  end
  return at, "op"
end

local kMaxTokens = 100000   -- of a file; what stands behind them is known by its line only

-- Tokens in order: { kind, text, line, col, len }.
function M.tokens(text)
  local out, at, line, line_start = {}, 1, 1, 1
  while at <= #text and #out < kMaxTokens do
    local stop, kind = next_token(text, at)
    local piece = text:sub(at, stop)
    if kind ~= "blank" then
      out[#out + 1] = { kind = kind, text = piece, line = line, col = at - line_start + 1, len = #piece }
    end
    for newline in piece:gmatch("()\n") do
      line, line_start = line + 1, at + newline
    end
    at = stop + 1
  end
  return out
end

local function unquoted(token) return (token.text:match("^[\"'](.*)[\"']$")) end

-- Which name a "{" at position i belongs to: f{, f({, key = {, ["key"] = {.
local function head_of(tokens, i)
  local before = tokens[i - 1]
  if before and (before.text == "(" or before.text == "=") then
    before = tokens[i - 2]
    if before and before.text == "]" then before = tokens[i - 3] end
  end
  if not before then return nil end
  if before.kind == "name" then return before.text, before end
  if before.kind == "string" then return unquoted(before), before end
end

-- The key that starts at position i inside a constructor, and the position of its value.
local function key_at(tokens, i)
  local a, b, c, d = tokens[i], tokens[i + 1], tokens[i + 2], tokens[i + 3]
  if a.kind == "name" and b and b.text == "=" then return a.text, a, i + 2 end
  if a.text == "[" and b and b.kind == "string" and c and c.text == "]" and d and d.text == "=" then
    return unquoted(b), b, i + 4
  end
end

local kOpeners = { ["("] = true, ["["] = true, ["function"] = true, ["if"] = true, ["do"] = true,
  ["repeat"] = true }
local kClosers = { [")"] = true, ["]"] = true, ["end"] = true, ["until"] = true }

local kMaxValue = 100   -- tokens of a value that is shown as one

-- The position of the last token of the value that begins at i, as far as it can be told and on the same line: a number
-- with its sign, a name with the names behind its dots, braces with what is in them. A longer value ends where it begins.
local function value_end(tokens, i)
  local token, following = tokens[i], tokens[i + 1]
  if token.text == "-" and following and following.kind == "number" then return i + 1 end
  local at = i
  if token.kind == "name" then
    local function is_field(k) return tokens[k + 1] and tokens[k].text == "." and tokens[k + 1].kind == "name" end
    while is_field(at + 1) and at - i < kMaxValue do at = at + 2 end
  elseif token.text == "{" then
    local depth = 0
    for k = i, math.min(#tokens, i + kMaxValue) do
      if tokens[k].line ~= token.line then return i end
      depth = depth + (tokens[k].text == "{" and 1 or tokens[k].text == "}" and -1 or 0)
      if depth == 0 then return k end
    end
    return i
  end
  return at
end

-- The value at position i as one token.
local function value_token(tokens, i)
  local token = tokens[i]
  if not token then return nil end
  local stop = value_end(tokens, i)
  if stop == i or tokens[stop].line ~= token.line then return token end
  local text = {}
  for k = i, stop do text[#text + 1] = tokens[k].text end
  return { kind = tokens[stop].kind, text = table.concat(text), line = token.line, col = token.col,
    len = tokens[stop].col + tokens[stop].len - token.col }
end

local function begin_entry(tokens, i, table_node)
  local token = tokens[i]
  if token.text == "}" then return end
  local key, key_token, value_at = key_at(tokens, i)
  if not key then
    table_node.count = table_node.count + 1
    key, key_token, value_at = table_node.count, token, i
  end
  if table_node.entries[key] then table.insert(table_node.twice, key_token) end
  table_node.entry = { key = key_token, value = value_token(tokens, value_at) }
  table_node.entries[key] = table_node.entry
end

-- All table constructors: { head, head_token, first_line, last_line, entries = { key -> { key, value,
-- constructor } }, twice = tokens of keys that stand there again }.
local function constructors(tokens)
  local found, stack = {}, {}
  for i, token in ipairs(tokens) do
    local top = stack[#stack]
    if token.text == "{" and token.kind == "op" then
      local head, head_token = head_of(tokens, i)
      local made = { head = head, first_line = (head_token or token).line, last_line = math.huge, entries = {},
        twice = {}, count = 0, is_table = true }
      if top and top.is_table and top.entry and not top.entry.constructor then top.entry.constructor = made end
      found[#found + 1], stack[#stack + 1] = made, made
      if tokens[i + 1] then begin_entry(tokens, i + 1, made) end
    elseif token.text == "}" and token.kind == "op" then
      if top and top.is_table then top.last_line = token.line end
      stack[#stack] = nil
    elseif token.kind ~= "string" and kOpeners[token.text] then
      stack[#stack + 1] = {}
    elseif token.kind ~= "string" and kClosers[token.text] then
      stack[#stack] = nil
    elseif top and top.is_table and (token.text == "," or token.text == ";") and tokens[i + 1] then
      begin_entry(tokens, i + 1, top)
    end
  end
  return found
end

-- What is known about one source text; built once per file.
function M.index(text)
  local tokens = M.tokens(text)
  local by_line = {}
  for i, token in ipairs(tokens) do
    by_line[token.line] = by_line[token.line] or {}
    table.insert(by_line[token.line], i)
  end
  local found, by_head = constructors(tokens), {}
  for _, one in ipairs(found) do
    if one.head then
      by_head[one.head] = by_head[one.head] or {}
      table.insert(by_head[one.head], one)
    end
  end
  return { tokens = tokens, by_line = by_line, constructors = found, by_head = by_head }
end

local function has_all(entries, keys)
  for _, key in ipairs(keys) do
    if not entries[key] then return false end
  end
  return true
end

-- The constructor of `head { ... }` or `head = { ... }` around a line that has all these keys; of any head without one.
function M.constructor(index, line, head, keys)
  local made, best = head and (index.by_head[head] or {}) or index.constructors, nil
  local low, high = 0, #made   -- first lines only grow: the last that begins at the line or before it
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if made[middle].first_line <= line then low = middle else high = middle - 1 end
  end
  for i = low, 1, -1 do
    local c = made[i]
    if best and c.first_line < best.first_line then break end
    if line <= c.last_line and has_all(c.entries, keys) then best = c end
  end
  return best
end

local function is_key(tokens, i, key)
  local token, before = tokens[i], tokens[i - 1]
  if token.kind == "name" then return token.text == key and before and before.text == "." end
  if token.kind == "string" then return unquoted(token) == key and before and before.text == "[" end
  return token.kind == "number" and tonumber(token.text) == key and before and before.text == "["
end

-- The tokens of `x.key = value`: key and, when it is a single assignment, value. Statements may end lines
-- below.
function M.assignment(index, line, key)
  for l = line, math.max(1, line - 60), -1 do
    for _, i in ipairs(index.by_line[l] or {}) do
      if is_key(index.tokens, i, key) then
        local after = i + 1
        if index.tokens[after] and index.tokens[after].text == "]" then after = after + 1 end
        local sign = index.tokens[after]
        if sign and sign.text == "=" then return index.tokens[i], value_token(index.tokens, after + 1) end
        if l == line then return index.tokens[i], nil end
      end
    end
  end
end

-- The token of a line that is this name, or nil: the first that is not the target of an assignment.
function M.name(index, line, name)
  local target
  for _, i in ipairs(index.by_line[line] or {}) do
    if index.tokens[i].kind == "name" and index.tokens[i].text == name then
      local following = index.tokens[i + 1]
      if not following or following.text ~= "=" then return index.tokens[i] end
      target = target or index.tokens[i]
    end
  end
  return target
end

return M
