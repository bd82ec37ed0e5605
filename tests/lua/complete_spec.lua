-- Specs of lua/tycho/complete.lua and stubs.lua: what shells and editors are told.
local complete = require "tycho.complete"
local fixture = require "fixture"
local native = require "tycho.native"
local schema = require "tycho.schema"
local stubs = require "tycho.stubs"

local function candidates(word) return complete.candidates(fixture.schema, word) end

describe("completion", function()
  it("offers keys one level at a time", function()
    expect(candidates "se").to_equal { "seed=", "seq_len=" }
    expect(candidates "opt").to_equal { "optimizer=", "optimizer." }
    expect(candidates "optimizer.").to_equal { "optimizer.lr=", "optimizer.betas=", "optimizer.eps=" }
    expect(candidates "ck").to_equal { "ckpt." }
    expect(candidates "scheduler.").to_equal { "scheduler.warmup=", "scheduler.floor=" }
  end)

  it("offers the keys of the kind that is chosen, where one is", function()
    local function chosen(path) return path == "scheduler" and "constant" or nil end
    expect(complete.candidates(fixture.schema, "scheduler.", chosen)).to_equal { "scheduler.warmup=" }
    expect(complete.candidates(fixture.schema, "optimizer.", chosen)).to_equal { "optimizer.lr=", "optimizer.betas=", "optimizer.eps=" }
    expect(complete.candidates(fixture.schema, "scheduler.floor=", chosen)).to_equal {}
    expect(complete.candidates(fixture.schema, "eval_data.a.", function(path) return path == "eval_data.a" and "text" or nil end))
      .to_equal { "eval_data.a.path=", "eval_data.a.len=" }
  end)

  it("offers values of enums, components and booleans", function()
    expect(candidates "precision=").to_equal { "precision=fp32", "precision=bf16" }
    expect(candidates "scheduler=co").to_equal { "scheduler=constant", "scheduler=cosine" }
    expect(candidates "model.tied=f").to_equal { "model.tied=false" }
    expect(candidates "micro_batch=").to_equal { "micro_batch=null" }
    expect(candidates "seed=").to_equal {}
  end)

  it("offers what can be unset and added", function()
    expect(candidates "~ckpt.k").to_equal { "~ckpt.keep" }
    expect(candidates "+ta").to_equal { "+tags=", "+tags." }
  end)

  it("offers nothing for what is unknown", function()
    expect(candidates "nothing.").to_equal {}
    expect(candidates "optimizer.lrr=").to_equal {}
  end)
end)

describe("stubs", function()
  it("are Lua and have every key of the schema", function()
    local text = stubs.text(native.schema, {})
    expect(loadstring(text) ~= nil).to_equal(true)
    schema.walk(native.schema.fields, function(_, field)
      expect(text).to_contain(("---@field %s "):format(field.name))
    end)
  end)

  it("have every name of t", function()
    local session = setmetatable({ schema = native.schema, sites = {}, refuse = function() end }, {})
    local text = stubs.text(native.schema, {}):match "class %(exact%) tycho.t\n(.*)$"
    for name in pairs(package.loaded.tycho.content(session)) do expect(text).to_contain(("---@field %s "):format(name)) end
  end)

  it("say types, defaults and what is required", function()
    local text = stubs.text(fixture.schema, {})
    expect(text).to_contain '---@field precision "fp32"|"bf16"  Help of precision. Default "fp32".'
    expect(text).to_contain "---@field lr number  Help of lr. Required."
    expect(text).to_contain "---@field betas [number, number]  Help of betas. Default {0.9, 0.95}."
    expect(text).to_contain "---@field tags table<string, string>"
  end)
end)
