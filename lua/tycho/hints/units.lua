-- Hints about the units of durations: which a number may have, and which is meant by the word of another system.

local M = {}

local kUnitWords = { ba = "batches", sp = "samples", tok = "tokens", ep = "epochs", dur = "share of the run",
  s = "seconds" }

-- "100ba (batches), 100tok (tokens)": only what may be meant. Shares of a run are at most 1, and nothing else has a fraction.
function M.examples(spec, number)
  local out, value = {}, tonumber(number)
  for _, unit in ipairs(spec.units or { "ba", "ep", "sp", "tok", "dur", "s" }) do
    local may_be = unit == "s" or (unit == "dur" and value <= 1) or (unit ~= "dur" and value % 1 == 0)
    if may_be then out[#out + 1] = ("%s%s (%s)"):format(number, unit, kUnitWords[unit] or unit) end
  end
  return table.concat(out, ", ")
end

function M.words(spec)
  local out = {}
  for i, unit in ipairs(spec.units) do out[i] = ("%s (%s)"):format(unit, kUnitWords[unit] or unit) end
  return table.concat(out, ", ")
end

-- What people write for units elsewhere.
local kOtherUnits = { steps = "ba", step = "ba", it = "ba", iters = "ba", iterations = "ba", batches = "ba", batch = "ba",
  epochs = "ep", epoch = "ep", tokens = "tok", token = "tok", T = "tok", t = "tok", samples = "sp", sample = "sp",
  sequences = "sp", sequence = "sp", seq = "sp", seqs = "sp", sec = "s", seconds = "s", min = "m", minutes = "m", hr = "h", hours = "h" }

local kMultiples = { k = "e3", K = "e3", M = "e6", B = "e9", G = "e9" }

function M.meant(spec, text)
  local function is_unit(unit)
    for _, one in ipairs(spec.units or {}) do
      if one == unit then return true end
    end
    return spec.units == nil
  end
  local number, word = text:match("^([%d%.eE%+%-_,]*%d)%s*([%a%%]+)$")
  if kMultiples[word] and is_unit "tok" and not number:find "[eE_,]" then return ('; write "%s%stok"'):format(number, kMultiples[word]) end
  local multiple = word and word:match "^([kKMBG])tok$"
  if multiple and is_unit "tok" and tonumber(number) then return ('; write "%s%stok"'):format(number, kMultiples[multiple]) end
  local unit = word and (kUnitWords[word] and word or kOtherUnits[word] or kOtherUnits[word:lower()])
  if not unit or not is_unit(unit) or not tonumber((number:gsub("[_,]", ""))) then return "" end
  return ('; write "%s%s"'):format(number:gsub("[_,]", ""), unit)
end

return M
