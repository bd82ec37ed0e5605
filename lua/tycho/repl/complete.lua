-- What tab offers: nested keys and methods, values of a key, commands, files and parameter names in texts.
local component = require "tycho.component"
local host = require "tycho.repl.host"
local lexer = require "tycho.lexer"
local node = require "tycho.node"
local schema = require "tycho.schema"

local M = {}

local function add(out, seen, word, typed)
  if type(word) == "string" and word:sub(1, #typed) == typed and not seen[word] then
    seen[word] = true
    out[#out + 1] = word
  end
end

local function class_named(name)
  for _, class in ipairs(host.classes) do
    if class.name == name then return class end
  end
end

-- Members of an object of the run: fields after a dot, methods after a colon.
local function of_class(class, separator)
  local out = {}
  if separator == "." then
    for _, field in ipairs(class.fields) do out[#out + 1] = field.name end
  else
    for _, method in ipairs(class.methods) do out[#out + 1] = method.name end
  end
  return out
end

-- Names below a value, without running user code.
local function names_below(value, separator)
  local behind = node.behind(value)
  if behind then
    if separator == ":" then return schema.sorted_keys(behind.methods) end
    local out = {}
    for i, key in ipairs(behind.keys) do out[i] = tostring(key) end
    return out
  end
  local made = component.behind(value)
  if made then return schema.sorted_keys(made.given) end
  local class = host.class_of(value)
  if class then return of_class(class_named(class), separator) end
  local meta = type(value) == "userdata" and debug.getmetatable(value)
  if meta and meta.content then return schema.sorted_keys(meta.content) end
  local out = {}
  for key in pairs(type(value) == "table" and value or {}) do
    if type(key) == "string" then out[#out + 1] = key end
  end
  return out
end

-- The value one name below another; nil where there is none. Fields of objects are read, nothing is called.
local function below(value, name)
  local behind = node.behind(value)
  if behind then
    local found = behind.values[name] or behind.values[tonumber(name)]
    return type(found) == "table" and found.proxy or found
  end
  local meta = type(value) == "userdata" and debug.getmetatable(value)
  if meta and meta.content then return meta.content[name] end
  if type(value) == "table" then return rawget(value, name) end
  local class = host.class_of(value)
  for _, field in ipairs(class and class_named(class).fields or {}) do
    if field.name == name then
      local ok, found = pcall(function() return value[name] end)
      return ok and found or nil
    end
  end
end

local function value_of(repl, path)
  local value, first = nil, true
  for name in path:gmatch("[^%.:]+") do
    if first then value = rawget(repl.vars, name) else value = below(value, name) end
    if first and value == nil then
      local meta = debug.getmetatable(repl.session.env)
      local ok, found = pcall(function() return name ~= "" and meta.__names[name] end)
      value = ok and found or nil
    end
    first = false
    if value == nil then return nil end
  end
  return value
end

-- The class of what a path names: of its value, or, where the objects of a run are elsewhere or not there yet, of the name.
local function class_at(repl, path)
  local value = value_of(repl, path)
  if value ~= nil then
    local class = host.class_of(value)
    return class and class_named(class)
  end
  local name = path:match("^ctx[%.:]([%w_]+)$") or path
  return class_named(repl.classes[name] or name)
end

local function global_names(repl)
  local out = {}
  for name in pairs(repl.vars) do out[#out + 1] = name end
  for name in pairs(debug.getmetatable(repl.session.env).__names) do out[#out + 1] = name end
  for _, word in ipairs(lexer.keywords) do out[#out + 1] = word end
  return out
end

local function collect(names, head, typed)
  local out, seen = {}, {}
  for _, name in ipairs(names) do add(out, seen, name, typed) end
  table.sort(out)
  for i, name in ipairs(out) do out[i] = head .. name end
  return out
end

-- The text inside the quote that is open at the end of a line, and what stands before it.
local function open_text(line)
  local quote, start, i = nil, nil, 1
  while i <= #line do
    local c = line:sub(i, i)
    if quote then
      if c == "\\" then i = i + 1 elseif c == quote then quote = nil end
    elseif c == '"' or c == "'" then
      quote, start = c, i
    end
    i = i + 1
  end
  if quote then return line:sub(start + 1), line:sub(1, start - 1) end
end

-- Values that a key of the recipe takes, as texts.
local function values_of_key(root, path)
  local field = path and schema.index(root)[path]
  if not field then return {} end
  if field.type == "enum" then return field.values end
  return {}
end

-- The kind of a component by the two words of its call: t.model.qwen3.
local function kind_of(root, namespace, kind)
  local found = namespace and schema.components(root)[namespace]
  return found and found.kinds[kind]
end

local function in_text(repl, typed, before)
  local root = repl.session.schema
  local kind = kind_of(root, before:match "t%.([%w_]+)%.([%w_]+)%s*{[^{}]*preset%s*=%s*$")
  if kind and kind.presets then return collect(kind.presets, "", typed) end
  if before:find(":find%s*%(?%s*$") then return collect(host.param_names(), "", typed) end
  if before:find(":why%s*%(?%s*$") then return collect(schema.all_paths(root), "", typed) end
  local values = values_of_key(root, before:match("r%.([%w_%.]+)%s*=%s*$"))
  if #values > 0 then return collect(values, "", typed) end
  return host.files(typed)
end

-- The signature of the method whose arguments are being typed.
local function signature_hint(repl, line)
  local path, name = line:match("([%w_%.]+):([%w_]+)%s*%([^%(%)]*$")
  local class = path and class_at(repl, path)
  for _, method in ipairs(class and class.methods or {}) do
    if method.name == name then return ("%s:%s  %s"):format(path, method.signature, method.doc) end
  end
end

local function after_command(repl, line)
  local command, rest = line:match("^%s*:(%a*)%s+(.*)$")
  if not command then
    local typed = line:match("^%s*:(%a*)$") or ""
    return collect(require("tycho.repl.commands").names(), ":", typed)
  end
  if command == "why" then return collect(schema.all_paths(repl.session.schema), "", rest) end
  if command == "save" or command == "log" then return host.files(rest) end
  return M.candidates(repl, rest)
end

local function keys_of_call(root, line)
  local namespace, kind, typed = line:match("t%.([%w_]+)%.([%w_]+)%s*{[^{}]-([%w_]*)$")
  local found = kind_of(root, namespace, kind)
  if not found then return nil, typed end
  local names = schema.names(found.fields)
  if found.presets then names[#names + 1] = "preset" end
  return names, typed
end

-- Whole words for the last one of a line, and a line that helps, or nil.
function M.candidates(repl, line)
  if line:find("^%s*:") then return after_command(repl, line) end
  local typed, before = open_text(line)
  if typed then return in_text(repl, typed, before) end
  local keys, key = keys_of_call(repl.session.schema, line)
  if keys then return collect(keys, "", key) end
  local path, separator, last = line:match("([%a_][%w_%.:]*)([%.:])([%w_]*)$")
  if path then
    local class = class_at(repl, path)
    local names = class and of_class(class, separator) or names_below(value_of(repl, path), separator)
    return collect(names, path .. separator, last), signature_hint(repl, line)
  end
  local quoted = {}
  for i, value in ipairs(values_of_key(line:match("r%.([%w_%.]+)%s*=%s*$"))) do quoted[i] = ("%q"):format(value) end
  if #quoted > 0 then return quoted end
  local hint = signature_hint(repl, line)
  return hint and {} or collect(global_names(repl), "", line:match("[%w_]*$")), hint
end

return M
