-- Habits of Python, YAML, C and newer Luas: recognises them in a line that Lua rejected, and says what to write instead.
local M = {}

-- Token, its kind, advice. Only used on lines that Lua rejected.
local kTokens = {
  { "!=", "op", 'not equal is "~=" in Lua' },
  { "+=", "op", 'Lua has no "+="; write  x = x + 1' },
  { "-=", "op", 'Lua has no "-="; write  x = x - 1' },
  { "*=", "op", 'Lua has no "*="; write  x = x * 2' },
  { "/=", "op", 'Lua has no "/="; write  x = x / 2' },
  { "++", "op", 'Lua has no "++"; write  x = x + 1' },
  { "**", "op", 'a power is  x ^ 2  in Lua' },
  { "//", "op", 'Lua has no "//": a comment starts with --, a whole quotient is  math.floor(a / b)' },
  { "&&", "op", '"&&" is  and  in Lua' },
  { "||", "op", '"||" is  or  in Lua' },
  { "??", "op", 'Lua has no "??"; write  a == nil and b or a' },
  { "!", "op", '"!" is  not  in Lua' },
  { "?", "op", 'Lua has no "?"; write  a and b or c' },
  { "elif", "name", "elif is  elseif  in Lua" },
  { "except", "name", "try and except are  local ok, err = pcall(function() ... end)  in Lua" },
  { "try", "name", "try and except are  local ok, err = pcall(function() ... end)  in Lua" },
  { "import", "name", 'import x is  local x = require "x"  in Lua; math, string and table are there already' },
  { "def", "name", "def f(x): is  local function f(x) ... end  in Lua" },
  { "lambda", "name", "lambda x: y is  function(x) return y end  in Lua" },
  { "class", "name", "Lua has no classes, and recipes need none: write a function that returns a table" },
  { "continue", "name", "Lua has no continue; put the rest of the loop into an if" },
  { "pass", "name", "Lua needs no pass; an empty block is fine" },
  { "del", "name", "del x is  x = nil  in Lua; of a recipe's key: t.unset" },
  { "let", "name", "let x = 1 is  local x = 1  in Lua" },
  { "var", "name", "var x = 1 is  local x = 1  in Lua" },
  { "const", "name", "const x = 1 is  local x = 1  in Lua" },
  { "None", "name", "None is  t.null  (or nil) in Lua" },
  { "True", "name", "True is  true  in Lua" },
  { "False", "name", "False is  false  in Lua" },
}

local kItem = "write list items in braces in Lua: { a, b }"
local kColon = "Lua uses = between a key and its value, not a colon"

local function text_at(index, i) return index.tokens[i] and index.tokens[i].text end

-- Advice that depends on the place of a token: i is its position, first and last are those of its line.
local function by_place(index, i, first, last)
  local token, following = index.tokens[i], index.tokens[i + 1]
  local text, after = token.text, text_at(index, i + 1)
  if token.kind == "string" then
    if after == ":" then return following, ('a key of text is  [%s] = ...  in Lua'):format(text) end
    return nil
  end
  if text == "#" and i == first then return token, "a comment starts with -- in Lua" end
  if text == "#" and i > first and following and following.kind == "name" and text_at(index, i - 1) ~= "="
    and index.tokens[i - 1].kind ~= "op" then
    return token, "a comment starts with -- in Lua"
  end
  if text == "-" and i == first then return token, kItem end
  if text == "[" and (text_at(index, i - 1) == "=" or text_at(index, i - 1) == "(") then
    return token, "a list is { 1, 2 } in Lua, not [1, 2]"
  end
  if text == "for" and text_at(index, i + 2) == "in" and text_at(index, i + 3) == "range" then
    return token, "for i in range(n) is  for i = 1, n do  in Lua"
  end
  if text == "else" and after == "if" then return token, "else if is  elseif  in Lua" end
  if text == "if" and i > first and text_at(index, i - 1) ~= "else" and text_at(index, first) ~= "if" then
    return token, "a if c else b is  c and a or b  in Lua"
  end
  if token.kind == "name" and after == ":" and following.line == token.line then
    if i + 1 == last then return following, "blocks end with  end  in Lua, not with a colon and indentation" end
    local value = index.tokens[i + 2]
    local is_call = value and value.kind == "name" and (i > first or text_at(index, i + 3) == "(")   -- r:check(
    if value and not is_call then return following, kColon end
  end
  if (text == "if" or text == "for" or text == "while") and i == first and text_at(index, last) == ":" then
    return index.tokens[last], ("%s lines end with  %s  in Lua, and the block with  end"):format(text,
      text == "if" and "then" or "do")
  end
  local keyword = text == "(" and following and following.kind == "name" and text_at(index, i + 2) == "="
  if keyword and i > 1 and index.tokens[i - 1].kind == "name" then
    return token, ("keys stand in braces in Lua: %s { %s = ... }"):format(text_at(index, i - 1), after)
  end
  if token.kind == "number" and after and after:find("^_%d") then
    return following, "numbers have no underscores in Lua: 10000 or 1e4"
  end
end

-- On a line that Lua could not parse: the token of a habit and what to write; nil when there is none.
function M.at_load(index, line)
  local row = index.by_line[line] or {}
  local first, last = row[1], row[#row]
  for _, i in ipairs(row) do
    local found, advice = by_place(index, i, first, last)
    if found then return found, advice end
    local token = index.tokens[i]
    for _, habit in ipairs(kTokens) do
      if token.kind == habit[2] and token.text == habit[1] then return token, habit[3] end
    end
  end
end

local function ends_value(token)
  if token.kind == "name" then return token.text ~= "return" and token.text ~= "=" end
  return token.kind == "number" or token.kind == "string" or token.text == "}" or token.text == ")" or token.text == "]"
end

-- A table in which Lua wanted its end: the token that a comma is missing behind, and what to write; nil for another mistake.
function M.missing_comma(index, line, message)
  local near = message:match "'[})]' expected.* near '(.-)'$"
  if not near then return nil end
  for _, i in ipairs(index.by_line[line] or {}) do
    local token, before = index.tokens[i], index.tokens[i - 1]
    local following = index.tokens[i + 1]
    local begins = token.kind == "string" or token.kind == "number" or token.text == "{" or (token.kind == "name"
      and (not following or following.text == "=" or following.text == "." or following.text == "," or following.text == "}"))
    if begins and token.text:sub(1, #near) == near and before and ends_value(before) then
      return before, ("a comma is missing after  %s"):format(before.text)
    end
  end
end

local kRaised = {
  { "attempt to perform arithmetic on .*a string value", 'texts are joined by  ..  in Lua; "+" adds numbers only' },
  { "attempt to perform arithmetic on .*a nil value", "this name has no value yet" },
  { "attempt to concatenate .*a nil value", "this name has no value yet" },
  { "attempt to index .*a nil value", "this name has no value, so it has no keys" },
  { "attempt to call method 'extend'", "what it is called on is not a recipe: the file that require read must end with  return r" },
  { "attempt to call .*a nil value", "there is no function of this name" },
  { "attempt to call .*a table value", "a table is not a function: is a comma or a name missing before ( or { ?" },
  { "attempt to compare number with table", "compare durations and sizes with the same kind: r.max_duration > t.ba(50)" },
  { "attempt to compare table with number", "compare durations and sizes with the same kind: r.max_duration > t.ba(50)" },
  { "attempt to compare number with string", "tonumber(text) converts text to a number" },
  { "attempt to get length of .*a number value", "#x counts a list or the bytes of text" },
}

-- On an error that a recipe raised while running: the token concerned or nil, and what to write or nil.
function M.at_run(index, line, message)
  local token, row = nil, index and index.by_line[line]
  if row and index.tokens[row[1]].text == "-" then return index.tokens[row[1]], kItem end
  local name = index and message:match("'([%w_]+)'")
  for _, i in ipairs(name and index.by_line[line] or {}) do
    if not token and index.tokens[i].text == name then token = index.tokens[i] end
  end
  for _, one in ipairs(kRaised) do
    if message:find(one[1]) then return token, one[2] end
  end
  return token
end

-- Names that other languages have: what to write when a recipe uses them.
M.names = {
  None = "None is  t.null  (or nil) in Lua", null = "null is  t.null  in a recipe", undefined = "undefined is  nil  in Lua",
  True = "True is  true  in Lua", False = "False is  false  in Lua",
  yes = "yes is  true  in Lua", no = "no is  false  in Lua",
  on = "on is  true  in Lua", off = "off is  false  in Lua",
  f = 'there are no f-strings: ("lr%g"):format(lr)  or  "lr" .. lr', len = "len(x) is  #x  in Lua",
  str = "str(x) is  tostring(x)  in Lua", int = "int(x) is  math.floor(tonumber(x))  in Lua",
  float = "float(x) is  tonumber(x)  in Lua", range = "for i in range(n) is  for i = 1, n do  in Lua",
  dict = "dict(a=1) is  { a = 1 }  in Lua", list = "list(x) is  { ... }  in Lua",
  enumerate = "enumerate(x) is  ipairs(x)  in Lua",
  abs = "abs(x) is  math.abs(x)  in Lua", max = "max(a, b) is  math.max(a, b)  in Lua",
  min = "min(a, b) is  math.min(a, b)  in Lua", round = "round(x) is  math.floor(x + 0.5)  in Lua",
  sum = "Lua has no sum; write a loop", sqrt = "sqrt(x) is  math.sqrt(x)  in Lua",
  isinstance = 'isinstance(x, str) is  type(x) == "string"  in Lua', self = "recipes have no self; the recipe is  r",
}

return M
