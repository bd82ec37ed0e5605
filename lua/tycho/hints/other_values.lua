-- Values as written elsewhere: names of devices and precisions, Hydra's ${...}, typographic characters.
local M = {}

-- Value of another system -> ours.
local kCalled = {
  cuda = "gpu nvidia cuda:0 0",
  bf16 = "bfloat16 amp_bf16 bf16-mixed bf16-true mixed_bf16 torch.bfloat16",
  fp32 = "float32 float 32 32-true no torch.float32",
  full = "block whole",
}
-- Unsupported values, and what to write instead.
local kAbsent = {
  fp16 = { "fp16 float16 half amp amp_fp16 16 16-mixed torch.float16", "there is no fp16; write \"bf16\"" },
  fp8 = { "fp8 float8 amp_fp8", "write \"bf16\", and fp8.recipe = \"rowwise_with_gw_hp\" for products in fp8" },
  int8 = { "int8 int4 nf4", "only fp32 and bf16 are supported" },
  other = { "mps tpu xla xpu hpu rocm npu", "only the CPU and NVIDIA GPUs are supported" },
}

local meant, absent = {}, {}
for ours, others in pairs(kCalled) do
  for other in others:gmatch "%S+" do meant[other] = ours end
end
for _, one in pairs(kAbsent) do
  for other in one[1]:gmatch "%S+" do absent[other] = one[2] end
end

local function holds(list, value)
  for _, one in ipairs(list) do
    if one == value then return true end
  end
  return false
end

-- What to write for a value that is none of `allowed`: 'write "cuda"', or that there is no such thing; nil for a name that says nothing.
function M.of_enum(value, allowed)
  local word = tostring(value):lower()
  for _, one in ipairs(allowed) do
    if one:lower() == word then return ('write "%s"'):format(one) end
  end
  local card = word:match "^cuda:(%d+)$"
  if card and holds(allowed, "cuda") then return ('write "cuda"; CUDA_VISIBLE_DEVICES=%s chooses the GPU'):format(card) end
  if meant[word] and holds(allowed, meant[word]) then return ('write "%s"'):format(meant[word]) end
  local knows = holds(allowed, "cuda") or holds(allowed, "bf16")
  return knows and absent[word] or nil
end

-- Kind of another system -> ours.
local kKinds = { adam = "adamw", fusedadam = "adamw", adamw_torch = "adamw", adamw_torch_fused = "adamw",
  cosine_with_warmup = "cosine", cosine_annealing = "cosine", cosineannealinglr = "cosine", linear_decay_with_warmup = "linear",
  linear_with_warmup = "linear", constant_with_warmup = "constant", inv_sqrt_with_warmup = "inv_sqrt", decoupled_lion = "decoupled_lionw",
  mpt_causal_lm = "mpt", llama2 = "llama", llama3 = "llama", nanogpt = "gpt2", gpt = "gpt2", mds = "mds", streaming = "mds",
  finetuning = "chat", jsonl = "chat" }

-- The kind that `word` means among `kinds`, a table by kind; nil for a word that says nothing.
function M.kind(word, kinds)
  word = word:lower():match "[^%.]*$"
  local ours = kinds[word] and word or kKinds[word]
  return ours and kinds[ours] and ours or nil
end

-- Keys of data elsewhere -> those that ours may have, the likeliest first.
local kFolder = { "local_dir", "path" }
local kKeys = { path = kFolder, paths = kFolder, dir = kFolder, folder = kFolder, root = kFolder, data_path = kFolder,
  data_dir = kFolder, local_path = kFolder, file = { "path", "local_dir" }, url = { "remote" }, data_files = { "remote_files", "path" },
  max_seq_len = { "seq_len" } }

-- The key among `fields` that a key of another system means; nil for one that says nothing.
function M.key_among(key, fields)
  for _, ours in ipairs(kKeys[key] or {}) do
    for _, field in ipairs(fields) do
      if field.name == ours then return ours end
    end
  end
end

-- The first ${...} of a text that another system would fill in, or nil.
function M.interpolation(text) return text:match "%${[%a_][%w_%.]*}" or text:match "%${[%a_][%w_%.]*:[^}]*}" end

-- The first that can only be meant so: ${now:%Y}, ${model.width}. ${x} alone may be text.
function M.certain_interpolation(text) return text:match "%${[%a_][%w_]*[%.:][^}]*}" end

-- The text as a shell would fill it in: ${now:%Y} is $(date +%Y), ${oc.env:HOME} is $HOME; nil when something else is left.
local function for_shell(text)
  text = text:gsub("%${now:([^}]*)}", function(format) return ("$(date +%s)"):format(format) end)
  text = text:gsub("%${oc%.env:([%w_]+)}", "$%1"):gsub("%${env[:%.]([%w_]+)}", "$%1")
  text = text:gsub("%${oc%.env:([%w_]+),%s*([^}]*)}", "${%1:-%2}")
  local left = text:gsub("%${[%w_]+:%-[^}]*}", "")
  return not M.interpolation(left) and text or nil
end

-- "x-${model.width}" as an expression of Lua: "x-" .. r.model.width
local function expression(text)
  local out, rest = {}, text
  while rest ~= "" do
    local before, path, after = rest:match "^(.-)%${([%a_][%w_%.]*)}(.*)$"
    if not path then before, after = rest, "" end
    if before ~= "" then out[#out + 1] = ('"%s"'):format(before) end
    if path then out[#out + 1] = "r." .. path end
    rest = after
  end
  return table.concat(out, " .. ")
end

-- What to write for a key instead of a value with ${...}; nil for a value without.
function M.instead_of_interpolation(path, text, in_recipe)
  local found = M.interpolation(text)
  if not found then return nil end
  if in_recipe and found:find "^%${now:" then
    return ('a recipe has no clock; as an argument the shell fills it in:  "%s=%s"'):format(path, for_shell(text) or text)
  end
  if in_recipe and found:find "^%${oc%.env:" then return 'write  t.env("NAME", "default")' end
  if in_recipe and not found:find(":", 1, true) then return "write  " .. expression(text) end
  if path == "run_dir" then text = text:gsub("%${run_name}", "{run_name}") end   -- which run_dir does fill in
  if not M.interpolation(text) then return ("write  %s=%s"):format(path, text) end
  local shell = for_shell(text)
  if shell then return ('the shell fills it in, in double quotes:  "%s=%s"'):format(path, shell) end
  if found:find("^%${hydra:") then return "there is no hydra here; run_name and run_dir choose the run folder" end
  if found:find("^%${%u[%u%d_]*}$") then return ('the shell fills it in, in double quotes:  "%s=%s"'):format(path, text) end
  if found:find(":", 1, true) then return "write the value itself; a recipe computes values in Lua" end
  return ("write  '%s:=%s'"):format(path, expression(text))
end

-- Typographic dashes, quotes and blanks, as word processors and web pages insert them.
local kSigns = { ["\226\128\144"] = "-", ["\226\128\145"] = "-", ["\226\128\146"] = "-", ["\226\128\147"] = "-",
  ["\226\128\148"] = "--", ["\226\136\146"] = "-", ["\226\128\152"] = "'", ["\226\128\153"] = "'",
  ["\226\128\156"] = '"', ["\226\128\157"] = '"', ["\194\160"] = " ", ["\226\129\164"] = "", ["\239\188\157"] = "=" }

-- The text with plain signs, and the first other one; nil when all are plain.
function M.plain(text)
  local first
  local out = text:gsub("[\194\226\239][\128-\191][\128-\191]?", function(sign)
    local found = kSigns[sign] and sign or kSigns[sign:sub(1, 2)] and sign:sub(1, 2)
    if not found then return nil end
    first = first or found
    return kSigns[found] .. sign:sub(#found + 1)
  end)
  if first then return out, first end
end

return M
