-- The part of the stubs for editors that sweeps, t.random and t.slurm need.
local native = require "tycho.native"

local M = {}

local kTypes = [[
---A sweep: assign to its keys, then return it.
---@class tycho.Sweep: tycho.SweepConfig
local Sweep = {}
---Excludes the points for which it returns true.
---@param fn fun(p: table<string, any>): boolean
function Sweep:skip(fn) end

---@class (exact) tycho.Random
---@field uniform fun(self, low?: number, high?: number): number  Uniform in [low, high).
---@field log fun(self, low: number, high: number): number  Log-uniform.
---@field int fun(self, low: integer, high: integer): integer  An integer, both ends included.
---@field normal fun(self, mean?: number, std?: number): number  Normally distributed.
---@field choice fun(self, list: any[]): any  One of a list.

---@class (exact) tycho.Slurm
---@field available boolean  Inside a job, or where sbatch is.
---@field job_id string|nil
---@field array_task integer|nil
---@field nodes integer|nil
---@field end_time number|nil  Seconds since 1970.

---@class (exact) tycho.t.space
---@field choice fun(values: any[]): tycho.Space  One of the given values.
---@field range fun(low: number, high: number, step?: number): tycho.Space  A number between two others, on a linear scale.
---@field log fun(low: number, high: number, count?: integer): tycho.Space  The same, on a logarithmic scale.
---@field int fun(low: integer, high: integer, step?: integer): tycho.Space  An integer, both ends included.
---@field normal fun(mean: number, std: number): tycho.Space  Normally distributed.
---@field zip fun(lists: table<string, any[]>): tycho.Space  Keys that change together.
---@field when fun(condition: table<string, any>, space: tycho.Space): tycho.Space  Only where other keys have these values.
---@field cases fun(spaces: tycho.Space[]): tycho.Space  Several spaces of one key: the first whose condition holds.
---@class (exact) tycho.t.search
---@field grid fun(points?: table<string, integer>): tycho.Search  Every combination.
---@field random fun(given?: tycho.Search.Random|table): tycho.Search  Independently drawn points.
---@field asha fun(given: tycho.Search.Asha|table): tycho.Search  The best of each rung continue.
---@class (exact) tycho.t.stop
---@field patience fun(given?: tycho.Stop.Patience|table): tycho.Stop  Stops trials that no longer improve.
---@class (exact) tycho.t.launch
---@field workers fun(given?: tycho.Launch.Workers|table): tycho.Launch  Trials on this machine.
---@field local_gpus fun(given?: tycho.Launch.LocalGpus|table): tycho.Launch  One trial for each set of GPUs.
---@field slurm_array fun(given?: tycho.Launch.SlurmArray|table): tycho.Launch  Workers as a Slurm array.
]]

M.namespaces = { "space", "search", "stop", "launch" }

-- Appends the types; write_class and `done` are those of stubs.lua.
function M.write(out, done, write_class)
  write_class(out, done, "tycho.SweepConfig", nil, native.sweep_schema().fields)
  for i, line in ipairs(out) do   -- a rule may be a function too
    if line:find("^%-%-%-@alias tycho%.Stop ") then out[i] = line:gsub("\n$", "") .. "|fun(m: table): boolean\n" end
  end
  out[#out + 1] = kTypes
end

return M
