-- Specs of what reports advise: everything that a hint says to type is typed here, against Tycho's own keys.
local native = require "tycho.native"
local other_names = require "tycho.hints.other_names"
local schema = require "tycho.schema"
local session = require "tycho.session"

local kRecipe = [[
local t = require "tycho"
local r = t.recipe "x"
r.model = t.model.mpt { positions = "rope", width = 64, layers = 2, heads = 4, vocab_size = 512 }
r.seq_len, r.global_batch, r.max_duration, r.tokenizer = 64, "64sp", "12ba", "t.json"
r.train_data = t.data.mds { local_dir = "data" }
r.eval_data.val = t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 3e-3 }
r.scheduler, r.ema.half_life = t.sched.cosine {}, "5ba"
%s
return r
]]

-- Loads the recipe with these arguments and a line of its own: what is wrong, or nil.
local function report(arguments, line)
  local numbered = {}
  for i, text in ipairs(arguments) do numbered[i] = { argument = i + 1, text = text } end
  local loaded = session.load { file = "x.lua", files = { ["x.lua"] = kRecipe:format(line or "") }, only_files = true,
    arguments = numbered, quiet = true, check_tree = function() return {} end }
  return loaded.problems > 0 and loaded.report or nil
end

-- KEY=VALUE and KEY:=EXPRESSION of a report's hints, without those whose value is left to the reader.
local function advised(text)
  local out = {}
  for hint in text:gmatch "%^ ([^\n]*)" do
    hint = " " .. hint
    for word in hint:gmatch "%s%s'([^']+)'" do out[#out + 1] = word end
    for word in hint:gmatch "%s%s([%l_][%w_%.]*:?=[^%s;]+)" do out[#out + 1] = word end
    for word in hint:gmatch '%s%s"([%l_][%w_%.]*=[^"$]+)"' do out[#out + 1] = word end
  end
  for path, values in text:gmatch "argument %d+  ([%w_%.]+)=[^\n]-; write ([^\n;]+)" do   -- lr=1_000: wanted a number; write 1000
    for value in values:gsub(" or ", "\0"):gmatch "[^%z]+" do
      local is_value = not value:find "^ " and not value:find "^an? " and not value:find "^key" and not value:find "%s%s"
      if is_value then out[#out + 1] = ("%s=%s"):format(path, value) end
    end
  end
  local kept = {}
  for _, word in ipairs(out) do
    if not word:find "%.%.%." and not word:find "=%u%u+$" and not word:find "^launch" then kept[#kept + 1] = word end
  end
  return kept
end

local kTogether = 40   -- arguments of one load: its report shows up to 50 problems

local accepted = {}   -- what was typed before

-- Whether a report refuses an argument, and not what the rest of the recipe decides.
local function is_refused(said) return said and said:find "argument %d" and not said:find "here; its keys are" end

local function type_one(word, advised_for)
  local said = report { word }
  if is_refused(said) then
    error({ message = ("%s is advised for one of\n%s\nand refused:\n%s"):format(word, table.concat(advised_for, "\n"), said) })
  end
end

-- Loads with these arguments, some at a time, and types what is advised; how many words that were.
local function type_all(arguments)
  local count = 0
  for first = 1, #arguments, kTogether do
    local some, words = { unpack(arguments, first, math.min(#arguments, first + kTogether - 1)) }, {}
    for _, word in ipairs(advised(report(some) or "")) do
      count = count + 1
      if not accepted[word] then words[#words + 1], accepted[word] = word, true end
    end
    if is_refused(report(words)) then
      for _, word in ipairs(words) do type_one(word, some) end
    end
  end
  return count
end

describe("a hint", function()
  it("can be typed, for every name of another system and what people give it", function()
    local arguments = {}
    for _, value in ipairs { "true", "false", "2", "0.001", "x.pt", "runs/a" } do
      for _, name in ipairs(other_names.all()) do arguments[#arguments + 1] = name .. "=" .. value end
    end
    local count = type_all(arguments)
    if count < 200 then error(count .. " hints were typed") end
  end)

  it("can be typed, for every key with a value of another type", function()
    local arguments = {}
    for _, value in ipairs { "True", "gpu", "float32", "1_000", "2k", "100", "3 epochs", "interval(1e-4,1e-2)", "choice(8,16)",
      "1e-4,1e-3", "'1e-3'", "(0.9, 0.95)" } do
      for _, path in ipairs(schema.all_paths(native.schema)) do arguments[#arguments + 1] = path .. "=" .. value end
    end
    local count = type_all(arguments)
    if count < 200 then error(count .. " hints were typed") end
  end)

  it("keeps the value that was typed", function()
    local function hints(argument, text) expect(report { argument }).to_contain(text) end
    hints("warmup_ratio=0.1", "write  scheduler.t_warmup=0.1dur")
    hints("min_lr=6e-5", "'scheduler.alpha_f:=6e-5 / r.optimizer.lr'")
    hints("resume_from_checkpoint=true", "leave it out: a run resumes from its newest checkpoint automatically")
    hints("autoresume=false", "write  resume=none")
    hints("load_path=x.pt", "model.weights=FOLDER")
    hints("load_path=runs/a", "write  resume=runs/a")
    hints("model/llama=8b", "model=llama")
    hints("+optimizer/adam=fused", "optimizer=adamw")
    hints("+callbacks.ema.beta=0.9", "'callbacks.ema=loss_ema{beta=0.9}'")
    hints("callbacks.ema.beta=0.9", "'callbacks.ema=loss_ema{beta=0.9}'")
    expect(report { "callbacks.ema=loss_ema{beta=0.9}" }).to_be_nil()
    hints("gpus=4", "tycho launch -n 4 run RECIPE")
    hints("bf16=false", "write  precision=fp32")
  end)

  it("shows a list as it was written", function()
    expect(report({}, "r.optimizer.betas = { 0.9, nil, 0.95 }")).to_contain "{0.9, nil, 0.95}"
  end)
end)
