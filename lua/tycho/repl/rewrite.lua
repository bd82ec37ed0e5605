-- Makes locals at the top of an entry last: `local x = 1` becomes `x = 1` in the session's table.
local lexer = require "tycho.lexer"

local M = {}

local kOpen = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true, ["("] = true, ["{"] = true,
  ["["] = true }
local kClose = { ["end"] = true, ["until"] = true, [")"] = true, ["}"] = true, ["]"] = true }

-- Where each line of a text begins.
local function line_starts(text)
  local starts = { 1 }
  for at in text:gmatch("\n()") do starts[#starts + 1] = at end
  return starts
end

-- The position behind the names of `local a, b`, and whether a value follows.
local function end_of_names(tokens, i)
  local last = i + 1
  while tokens[last + 1] and tokens[last + 1].text == "," and tokens[last + 2] do last = last + 2 end
  return last, tokens[last + 1] and tokens[last + 1].text == "="
end

-- The text with its top-level locals as assignments. Every other byte stays in its column, but behind names without a
-- value, which get " = nil".
function M.persist(text)
  local tokens, starts, depth = lexer.tokens(text), line_starts(text), 0
  local function offset(token) return starts[token.line] + token.col - 1 end
  local edits = {}
  for i, token in ipairs(tokens) do
    if token.kind ~= "string" then
      if depth == 0 and token.text == "local" and tokens[i + 1] then
        edits[#edits + 1] = { at = offset(token), remove = 5, put = "     " }
        if tokens[i + 1].text ~= "function" then
          local last, has_value = end_of_names(tokens, i)
          if not has_value then
            edits[#edits + 1] = { at = offset(tokens[last]) + tokens[last].len, remove = 0, put = " = nil" }
          end
        end
      end
      if kOpen[token.text] then depth = depth + 1 elseif kClose[token.text] then depth = depth - 1 end
    end
  end
  for i = #edits, 1, -1 do
    local edit = edits[i]
    text = text:sub(1, edit.at - 1) .. edit.put .. text:sub(edit.at + edit.remove)
  end
  return text
end

-- `a = 1; f(a)` as what stands up to its last semicolon at the top and what follows; nil when nothing does.
function M.split_last(text)
  local tokens, starts, depth, at = lexer.tokens(text), line_starts(text), 0, nil
  for i, token in ipairs(tokens) do
    if token.kind ~= "string" then
      if token.text == ";" and depth == 0 and tokens[i + 1] then at = starts[token.line] + token.col - 1 end
      if kOpen[token.text] then depth = depth + 1 elseif kClose[token.text] then depth = depth - 1 end
    end
  end
  if at then return text:sub(1, at), text:sub(at + 1) end
end

return M
