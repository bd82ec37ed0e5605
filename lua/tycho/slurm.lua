-- t.slurm: the Slurm job that a file is read in, as far as all of its processes see the same. The rank is not there.
local native = require "tycho.native"
local values = require "tycho.values"

local M = {}

local kNotForRecipes = { rank = true, procid = true, localid = true, nodeid = true, hostname = true, task = true }

local function read(session, name)
  local value = native.env(name)
  session.environment[name] = value or values.null
  return value
end

local function number(session, name) return tonumber(read(session, name) or "") end

local readers = {
  available = function(session) return read(session, "SLURM_JOB_ID") ~= nil or native.find_program "sbatch" ~= nil end,
  job_id = function(session) return read(session, "SLURM_JOB_ID") end,
  array_task = function(session) return number(session, "SLURM_ARRAY_TASK_ID") end,
  nodes = function(session) return number(session, "SLURM_JOB_NUM_NODES") end,
  end_time = function(session) return number(session, "SLURM_JOB_END_TIME") or number(session, "TYCHO_JOB_END") end,
}

-- What is read is remembered with the run, as t.env does. Outside of a job all but `available` is nil.
function M.view(session)
  local view = newproxy(true)
  local meta = getmetatable(view)
  meta.__metatable = "read-only"
  meta.__tostring = function() return "t.slurm" end
  meta.__newindex = function(_, key) session:refuse(key, "t.slurm is read-only") end
  meta.__index = function(_, key)
    if readers[key] then return readers[key](session) end
    if kNotForRecipes[key] then
      session:refuse(key, ("no t.slurm.%s: all ranks read one recipe and must see the same"):format(tostring(key)))
    end
    session:refuse(key, ("no t.slurm.%s"):format(tostring(key)), "available: array_task, available, end_time, job_id, nodes")
  end
  return view
end

return M
