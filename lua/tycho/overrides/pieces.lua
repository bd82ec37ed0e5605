-- Arguments that blanks took apart: `optimizer.lr = 3e-4` is three words to a shell.
local overrides = require "tycho.overrides"

local M = {}

local function is_value(text) return text and text ~= "" and not text:find "=" and not text:find "^[~+@]" end
local function is_key(text) return text:find "^[%a_][%w_]*[%w_%.]*$" and not text:find "%.lua$" and not text:find "%.txt$" end

-- What the words from i on were meant as, and how many they are: "optimizer.lr", "=", "3e-4".
local function in_pieces(words, i)
  local first, second, third = words[i], words[i + 1], words[i + 2]
  if not second then return nil end
  local key = is_key(first)
  if key and second:find "^[:%+%-%*/]?=$" and third then return first .. second .. third, 3 end
  if key and second == ":" and third then return ("%s=%s"):format(first, third), 3 end
  if key and second:find "^[:%+%-%*/]?=." then return first .. second, 2 end
  if first:find "^[%a_][%w_%.]*=$" and is_value(second) then return first .. second, 2 end
  if first:find "^[%a_][%w_%.]*:$" and is_value(second) then return ("%s=%s"):format(first:sub(1, -2), second), 2 end
  if key and is_value(second) and not second:find "%.%l+$" then return ("%s=%s"):format(first, second), 2 end
end

-- The arguments without those that blanks took apart, which are told as problems.
function M.joined(arguments, tell)
  local words, out, i = {}, {}, 1
  for k, one in ipairs(arguments) do words[k] = one.argument and one.argument > 0 and one.text or "" end
  while i <= #arguments do
    local whole, count = in_pieces(words, i)
    if whole then
      local shown = table.concat(words, " ", i, i + count - 1)
      tell("problem", { argument = arguments[i].argument, text = shown }, { message = "expected key=value in one word, without blanks",
        col = #words[i] + 1, len = 1, hint = "write  " .. overrides.shell_word(whole) })
    else
      out[#out + 1] = arguments[i]
      count = 1
    end
    i = i + count
  end
  return out
end

return M
