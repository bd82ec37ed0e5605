-- LuaCATS stubs for editors: every key of the schema and every name of t, so that a wrong one is underlined as it is typed.
local lexer = require "tycho.lexer"
local maths_stubs = require "tycho.maths.stubs"
local schema = require "tycho.schema"
local sweep_stubs = require "tycho.sweep.stubs"

local M = {}

-- Names of t that are not made from the schema: how they are called, and what for.
M.functions = {
  { "version", "string", "Version of Tycho." },
  { "required", "any", "Marks a key that an extending recipe must set." },
  { "null", "any", "No value, for an optional key." },
  { "unset", "any", "Restores a key's default; removes a name from an open table." },
  { "recipe", "fun(name: string): tycho.Recipe", "A new recipe with the schema's defaults." },
  { "sweep", "fun(name: string): tycho.Sweep", "A new sweep: see docs/sweeps.md." },
  { "arg", "fun(name: string, default?: any): any", "An argument of the command line: name=value." },
  { "random", "fun(name: string, seed?: integer): tycho.Random", "Random numbers that are the same in every process." },
  { "slurm", "tycho.Slurm", "The Slurm job: available, job_id, array_task, nodes, end_time." },
  { "env", "fun(name: string, default?: string): string", "An environment variable, recorded with the run." },
  { "secret", "fun(name: string, default?: string): string", "An environment variable whose value is never shown or recorded." },
  { "try", "fun(fn: function, ...: any): boolean, ...", "Returns true and fn's result, or false and an error: code, message, where." },
  { "fail", "fun(code: string, text: string, ...: any)", 'Raises an error: t.fail("E_DATA", "no file %s", name).' },
  { "deprecate", "fun(what: string, instead?: string, version?: string)",
    "Warns at the caller of a deprecated function: what is deprecated, what to write, and which version removes it." },
  { "bytes", "fun(given: string|tycho.FieldOptions): tycho.Bytes", 'A size, t.bytes("64MiB"), or a field of a component.' },
  { "duration", "fun(given: string|tycho.FieldOptions): tycho.Duration", 'A duration, t.duration("100ba"), or a field of a component.' },
  { "component", "fun(given: tycho.ComponentOptions): fun(given?: table): any", "Defines a callback or schedule with fields: see docs/components.md." },
  { "number", "fun(given: number|tycho.FieldOptions): tycho.Field", "A field of a component: t.number { default = 1, min = 0 }." },
  { "integer", "fun(given: integer|tycho.FieldOptions): tycho.Field", "A field of a component: t.integer { default = 3, min = 1 }." },
  { "boolean", "fun(given: boolean|tycho.FieldOptions): tycho.Field", "A field of a component: t.boolean { default = true }." },
  { "string", "fun(given: string|tycho.FieldOptions): tycho.Field", 'A field of a component: t.string { default = "x" }.' },
  { "choice", "fun(given: tycho.FieldOptions): tycho.Field", 'A field of a component: t.choice { "a", "b", default = "a" }.' },
  { "list", "fun(given: tycho.FieldOptions): tycho.Field", "A field of a component: t.list { t.number {}, default = {} }." },
  { "profile", "fun(given: tycho.Config.Profile|table): tycho.Config.Profile", 'Which steps to trace: t.profile { active = "3ba" }.' },
  { "fp8", "fun(given: tycho.Config.Fp8|table): tycho.Config.Fp8", 'Products of linear layers in fp8: t.fp8 { recipe = "rowwise" }.' },
  { "append", "fun(items: table): any", "The existing list, with these appended." },
  { "prepend", "fun(items: table): any", "The existing list, with these in front." },
  { "insert", "fun(at: integer, items: table): any", "The existing list, with these inserted at position `at`." },
  { "remove", "fun(items: table): any", "The existing list or open table, without these." },
  { "replace", "fun(items: table): any", "Only these: an open table is replaced, not merged." },
  { "observe", "fun(given: tycho.Cb.Observe|table): tycho.Cb", "A callback that observes, on rank 0." },
  { "control", "fun(given: tycho.Cb.Control|table): tycho.Cb", "A callback that steers the run: its ctx has cmd." },
  { "everywhere", "fun(given: tycho.Cb.Everywhere|table): tycho.Cb", "A callback on all ranks: its ctx has dist." },
  { "debug", "fun()", "Opens a prompt here, in a callback of a run that has a terminal; other ranks wait." },
  { "origin", "fun(given: table): tycho.Recipe", "Written by Tycho: the recipe from which a resolved one was made." },
  { "lazy", "fun(fn: fun(c: tycho.Recipe): any): any", "A value computed from the finished recipe." },
}

for _, one in ipairs(maths_stubs.functions) do table.insert(M.functions, one) end

local kUnits = { ba = "optimizer steps", ep = "epochs", sp = "samples", tok = "tokens", dur = "share of the run",
  s = "seconds", m = "minutes", h = "hours" }
local kSizes = { "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB" }

local kHead = [[
---@meta tycho
-- Written by `tycho types`; do not edit.

---@alias tycho.Duration string|tycho.Quantity  Number with unit: 10ba, 1ep, 2e9tok, 256sp, 0.5dur, 90m
---@alias tycho.Bytes string|tycho.Quantity  Number with unit: 64MiB, 1.5GB

---@class tycho.Quantity
---@field value number
---@field unit string
---@operator add(tycho.Quantity): tycho.Quantity
---@operator sub(tycho.Quantity): tycho.Quantity
---@operator mul(number): tycho.Quantity
---@operator div(number): tycho.Quantity

---@class (exact) tycho.Field  A field of a component: what may be written there.
---@class (exact) tycho.FieldOptions  Without a default, and not optional, the field is required.
---@field default? any
---@field help? string  What it means, for `tycho config`.
---@field optional? boolean  t.null is allowed, and the default unless there is another.
---@field required? boolean
---@field min? number  At least this.
---@field max? number  At most this.
---@field above? number  More than this.
---@field below? number  Less than this.
---@field multiple_of? integer
---@field unit? string  Unit of a number, in words.
---@field units? string  Units of a duration: "ba tok".
---@field length? integer  Of a list.
---@field [integer] string|tycho.Field  The texts of a choice; the field of a list's values.

---@class (exact) tycho.Moment  The argument of a schedule.
---@field step integer  Steps done.
---@field total integer  Steps of the run.
---@field frac number  step / total.
---@field warmup number  Steps of t_warmup; only in t.sched.fn.
---@field loss? number  Of the previous step; only in t.sched.dynamic.
]]

local function camel(text)
  return (("_" .. text):gsub("_(%w)", function(letter) return letter:upper() end))
end

local type_text   -- of a spec, below

local kPlain = { number = "number", integer = "integer", boolean = "boolean", string = "string",
  duration = "tycho.Duration", bytes = "tycho.Bytes", data = "table" }

-- What a function of a recipe is called with: the ctx of a callback's kind, the moment of a schedule.
local function function_text(class)
  local kind = class:match("^tycho%.Cb%.(%a+)%.")
  if kind then return ("fun(ctx: tycho.run.%sCtx, state: table)"):format(kind) end
  return "fun(s: tycho.Moment, state: table): number"
end

function type_text(spec, class)
  local text = kPlain[spec.type]
  if spec.type == "enum" then
    local out = {}
    for i, value in ipairs(spec.values) do out[i] = ("%q"):format(value) end
    text = table.concat(out, "|") .. (spec.defines and "|tycho." .. camel(spec.defines) or "")
  elseif spec.type == "list" then
    text = spec.length and "[" .. (type_text(spec.item, class) .. ", "):rep(spec.length):sub(1, -3) .. "]"
      or ("(%s)[]"):format(type_text(spec.item, class))
  elseif spec.type == "map" then
    text = ("table<string, %s>"):format(type_text(spec.item, class))
  elseif spec.type == "function" then
    text = function_text(class)
  elseif spec.type == "component" then
    text = "tycho." .. camel(spec.namespace)
  elseif spec.type == "struct" then
    text = class
  end
  if spec.word then text = ("%s|%q"):format(text, spec.word) end
  return spec.optional and text .. "|nil" or text
end

local write_class

-- The classes that a spec needs and that are not written yet.
local function classes_of(out, done, spec, class)
  if spec.type == "struct" and not done[class] then
    done[class] = true
    write_class(out, done, class, nil, spec.fields)
  elseif spec.type == "list" or spec.type == "map" then
    classes_of(out, done, spec.item, class)
  elseif spec.type == "component" and not done["tycho." .. camel(spec.namespace)] then
    local base = "tycho." .. camel(spec.namespace)
    done[base] = true
    local names = {}
    for i, kind in ipairs(schema.sorted_keys(spec.kinds)) do
      names[i] = base .. "." .. camel(kind)
      write_class(out, done, names[i], spec.kinds[kind].help, spec.kinds[kind].fields)
    end
    out[#out + 1] = ("---@alias %s %s\n"):format(base, table.concat(names, "|"))
  end
end

function write_class(out, done, class, help, fields, parent)
  for _, field in ipairs(fields) do classes_of(out, done, field, class .. "." .. camel(field.name)) end
  if help then out[#out + 1] = "---" .. help end
  out[#out + 1] = ("---@class (exact) %s%s"):format(class, parent and ": " .. parent or "")
  for _, field in ipairs(fields) do
    local note = field.required and "Required." or ""
    if not field.required and field.type ~= "struct" and field.type ~= "component" then
      note = "Default " .. schema.literal(field.default) .. "."
    end
    local text = type_text(field, class .. "." .. camel(field.name))
    out[#out + 1] = ("---@field %s %s  %s %s"):format(lexer.key(field.name), text, field.help, note):gsub("%s+$", "")
  end
  out[#out + 1] = ""
end

-- The constructors of one namespace: every key may be left out there.
local function constructors(out, namespace, kinds)
  out[#out + 1] = ("---@class (exact) tycho.t.%s"):format(namespace)
  for _, kind in ipairs(schema.sorted_keys(kinds)) do
    local form = "given?: tycho.%s.%s|table"
    if namespace == "sched" and (kind == "fn" or kind == "dynamic") then
      form = "name: string, fn: fun(s: tycho.Moment, state: table): number, given?: tycho.%s.%s|table"
    end
    local presets = kinds[kind].presets
    if presets then
      local names = {}
      for i, name in ipairs(presets) do names[i] = ("%q"):format(name) end
      form = ("given?: tycho.%%s.%%s|{ preset: %s, [string]: any }"):format(table.concat(names, "|"))
    end
    out[#out + 1] = ("---@field %s fun(%s): tycho.%s  %s"):format(kind, form:format(camel(namespace), camel(kind)),
      camel(namespace), kinds[kind].help or "")
  end
  if namespace == "model" then
    out[#out + 1] = "---@field hf fun(given: { path: string, pretrained?: boolean, ignore?: string[], [string]: any }): tycho.Model"
      .. "  A Hugging Face model: its config.json, and its weights unless pretrained = false."
  end
  out[#out + 1] = namespace == "init" and maths_stubs.define_init or maths_stubs.define(namespace)
  out[#out + 1] = ""
end

-- What t.component takes: the functions are those of the events, and a schedule's.
local function component_options(out, components)
  out[#out + 1] = "---@class (exact) tycho.ComponentOptions\n---@field name string  Letters, digits and _: t.cb.NAME.\n---@field help? string"
  out[#out + 1] = '---@field kind? "observe"|"control"|"everywhere"|"schedule"|"dynamic_schedule"|"rows"  Default "observe".'
  out[#out + 1] = "---@field fields? table<string, any>  Name -> t.number { ... } and its like, or a default.\n"
    .. "---@field state? table|fun(cfg: table): table  State to begin with, as plain data."
  for _, field in ipairs(components.cb and components.cb.kinds.control.fields or {}) do
    if field.type == "function" then out[#out + 1] = ("---@field %s? fun(ctx: any, st: table, cfg: table)  %s"):format(field.name, field.help) end
  end
  out[#out + 1] = "---@field factor? fun(s: tycho.Moment, ...: table): number  Of a schedule: (s, cfg), or (s, st, cfg) of a dynamic one.\n"
    .. "---@field rows? fun(row: table, cfg: table): table|nil  Of tycho data map.\n"
end

local kRecipe = [[
---A recipe: assign to its keys, then return it.
---@class tycho.Recipe: tycho.Config
local Recipe = {}
---Returns a copy under a new name; the base is never changed.
---@param name string
---@return tycho.Recipe
function Recipe:extend(name) end
---Adds a rule that is checked after all overrides, before anything starts.
---@param name string
---@param fn fun(c: table): boolean, string?
function Recipe:check(name, fn) end
---Who set a key to which values, as text; the final value is last.
---@param path string
---@return string
function Recipe:why(path) end
---What differs from the defaults, as text.
---@return string
function Recipe:show() end
---Sets a key by its dotted path.
---@param path string
---@param value any
function Recipe:set(path, value) end
]]

local function unit_fields(out)
  for _, unit in ipairs(schema.sorted_keys(kUnits)) do
    out[#out + 1] = ("---@field %s fun(number: number): tycho.Quantity  %s: t.%s(100)"):format(unit, kUnits[unit], unit)
  end
  for _, size in ipairs(kSizes) do
    out[#out + 1] = ("---@field %s fun(number: number): tycho.Quantity  t.%s(64)"):format(size, size)
  end
end

-- Objects of a run that is open: `classes` as bindings/run/class.h describes them.
local function run_classes(out, classes)
  for _, class in ipairs(classes) do
    local name = "tycho.run." .. camel(class.name)
    out[#out + 1] = ("---%s\n---@class (exact) %s"):format(class.doc, name)
    for _, field in ipairs(class.fields) do
      out[#out + 1] = ("---@field %s %s  %s"):format(field.name, field.type, field.doc)
    end
    for _, operator in ipairs(class.operators or {}) do
      local operand = operator ~= "unm" and ("(number|%s)"):format(name) or ""
      if operator ~= "eq" then out[#out + 1] = ("---@operator %s%s: %s"):format(operator, operand, name) end
    end
    if #(class.operators or {}) > 0 then out[#out + 1] = ("---@field [integer] number|%s  By position, from 1."):format(name) end
    if class.iterates then out[#out + 1] = "---@overload fun(state?: any, last?: string): string, tycho.run.Tensor" end
    out[#out + 1] = ("local %s = {}"):format(camel(class.name))
    for _, method in ipairs(class.methods) do
      local names = {}
      out[#out + 1] = "---" .. method.doc
      for i, arg in ipairs(method.args) do
        names[i] = arg.name
        out[#out + 1] = ("---@param %s%s %s  %s"):format(arg.name, arg.optional and "?" or "", arg.type, arg.doc)
          :gsub("%s+$", "")
      end
      if method.returns ~= "" then out[#out + 1] = "---@return " .. method.returns end
      out[#out + 1] = ("function %s:%s(%s) end"):format(camel(class.name), method.name, table.concat(names, ", "))
    end
    out[#out + 1] = ""
  end
end

-- The text of the stub file for a schema and the objects of a run.
function M.text(root, classes)
  local out, done, components = { kHead, maths_stubs.types }, {}, schema.components(root)
  write_class(out, done, "tycho.Config", nil, root.fields)
  out[#out + 1] = kRecipe
  component_options(out, components)
  run_classes(out, classes)
  sweep_stubs.write(out, done, write_class)
  local namespaces = schema.sorted_keys(components)
  for _, name in ipairs(namespaces) do constructors(out, name, components[name].kinds) end
  out[#out + 1] = maths_stubs.act
  out[#out + 1] = maths_stubs.init
  out[#out + 1] = maths_stubs.loss
  out[#out + 1] = "---@class (exact) tycho.t"
  for _, one in ipairs(M.functions) do out[#out + 1] = ("---@field %s %s  %s"):format(one[1], one[2], one[3]) end
  unit_fields(out)
  for _, name in ipairs(namespaces) do out[#out + 1] = ("---@field %s tycho.t.%s"):format(name, name) end
  out[#out + 1] = "---@field act tycho.t.act"
  for _, name in ipairs(sweep_stubs.namespaces) do out[#out + 1] = ("---@field %s tycho.t.%s"):format(name, name) end
  out[#out + 1] = "local t = {}\n\nreturn t\n"
  return table.concat(out, "\n")
end

local kLuarc = [[
{
  "runtime.version": "LuaJIT",
  "workspace.library": ["types"],
  "workspace.checkThirdParty": false,
  "type.checkTableShape": true,
  "diagnostics.severity": { "undefined-field": "Error!", "inject-field": "Error!" }
}
]]

-- The door for C++: files by name, with the kinds of request.recipes; or what is wrong with one of them.
function M.main(request)
  local root, wrong = require("tycho.session").schema_of(request.recipes)
  if wrong then return { problems = 1, report = wrong } end
  return { problems = 0, files = { ["types/tycho.lua"] = M.text(root, request.classes), [".luarc.json"] = kLuarc } }
end

return M
