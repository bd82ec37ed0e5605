-- Specs of lua/tycho/hints/other_values.lua: what people write for values elsewhere.
local other_values = require "tycho.hints.other_values"

describe("a value of another system", function()
  local devices, precisions = { "auto", "cpu", "cuda" }, { "fp32", "bf16" }

  it("is one of ours under another name", function()
    expect(other_values.of_enum("gpu", devices)).to_equal 'write "cuda"'
    expect(other_values.of_enum("CPU", devices)).to_equal 'write "cpu"'
    expect(other_values.of_enum("cuda:3", devices)).to_equal 'write "cuda"; CUDA_VISIBLE_DEVICES=3 chooses the GPU'
    expect(other_values.of_enum("bf16-mixed", precisions)).to_equal 'write "bf16"'
  end)

  it("says nothing where none of ours is meant", function()
    expect(other_values.of_enum("gpu", precisions)).to_equal(nil)
    expect(other_values.of_enum("fp16", { "min", "max" })).to_equal(nil)
    expect(other_values.of_enum("nonsense", devices)).to_equal(nil)
  end)

  it("is a kind of component, also as a class of Python", function()
    local kinds = { adamw = {}, lion = {} }
    expect(other_values.kind("torch.optim.AdamW", kinds)).to_equal "adamw"
    expect(other_values.kind("Adam", kinds)).to_equal "adamw"
    expect(other_values.kind("cosine_with_warmup", kinds)).to_equal(nil)
  end)
end)

describe("${...} of another system", function()
  local function hint(text, in_recipe) return other_values.instead_of_interpolation("run_name", text, in_recipe) end

  it("is told from a dollar", function()
    for _, text in ipairs { "$HOME", "a$", "${", "{x}", "$(date)", "cost: 5$ {a}" } do
      expect(other_values.interpolation(text)).to_equal(nil)
    end
    expect(other_values.interpolation "x-${now:%Y}-y").to_equal "${now:%Y}"
    expect(other_values.certain_interpolation "${x}").to_equal(nil)
    expect(other_values.certain_interpolation "${x.y}").to_equal "${x.y}"
  end)

  it("is what a shell fills in", function()
    expect(hint "x-${now:%Y}").to_equal 'the shell fills it in, in double quotes:  "run_name=x-$(date +%Y)"'
    expect(hint "${oc.env:USER}").to_equal 'the shell fills it in, in double quotes:  "run_name=$USER"'
    expect(hint "${oc.env:USER,me}").to_equal 'the shell fills it in, in double quotes:  "run_name=${USER:-me}"'
    expect(hint "x-${USER}").to_equal 'the shell fills it in, in double quotes:  "run_name=x-${USER}"'
  end)

  it("is an expression", function()
    expect(hint "w${model.width}-lr${optimizer.lr}").to_equal [[write  'run_name:="w" .. r.model.width .. "-lr" .. r.optimizer.lr']]
    expect(hint("w${model.width}", true)).to_equal [[write  "w" .. r.model.width]]
  end)
end)

describe("signs of word processors", function()
  it("become plain ones", function()
    expect({ other_values.plain "3e–4" }).to_equal { "3e-4", "–" }
    expect({ other_values.plain "—seed=3" }).to_equal { "--seed=3", "—" }
    expect({ other_values.plain "“a b”" }).to_equal { '"a b"', "“" }
    expect({ other_values.plain "a\194\160b" }).to_equal { "a b", "\194\160" }
  end)

  it("are no letters of other alphabets", function()
    for _, text in ipairs { "naïve", "Größe", "実験", "plain" } do expect(other_values.plain(text)).to_equal(nil) end
  end)
end)
