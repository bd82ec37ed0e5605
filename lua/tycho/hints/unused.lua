-- Finds local names that nothing reads: a walk over the grammar of a source that Lua has accepted, with its scopes. Where
-- the walk meets what it does not know it finds nothing, so that what it does find is so.
local lexer = require "tycho.lexer"

local M = {}

local Walk = {}
Walk.__index = Walk

local kUnary = { ["-"] = true, ["not"] = true, ["#"] = true }
local kBinary = { ["+"] = true, ["-"] = true, ["*"] = true, ["/"] = true, ["%"] = true, ["^"] = true, [".."] = true,
  ["=="] = true, ["~="] = true, ["<"] = true, [">"] = true, ["<="] = true, [">="] = true, ["and"] = true, ["or"] = true }
local kConstants = { ["nil"] = true, ["true"] = true, ["false"] = true, ["..."] = true }
local kBlockEnds = { ["end"] = true, ["else"] = true, ["elseif"] = true, ["until"] = true }

-- What the current token says; "" for a text, whose letters mean nothing here, and at the end of the source.
function Walk:word()
  local token = self.tokens[self.at]
  return token and token.kind ~= "string" and token.text or ""
end
function Walk:kind() return self.tokens[self.at] and self.tokens[self.at].kind end

function Walk:take(word)
  if self:word() ~= word then error(self) end
  self.at = self.at + 1
end
function Walk:takes(word)
  local found = self:word() == word
  if found then self.at = self.at + 1 end
  return found
end
function Walk:name()
  local token = self.tokens[self.at]
  if not token or token.kind ~= "name" then error(self) end
  self.at = self.at + 1
  return token
end

function Walk:open() self.scope = { outer = self.scope, names = {} } end
function Walk:close() self.scope = self.scope.outer end

-- group: the names of the statement, in order; none for those that need not be read, such as parameters.
function Walk:declare(token, group)
  local made = { token = token, read = token.text:sub(1, 1) == "_" }
  self.scope.names[token.text] = made
  if group then group[#group + 1] = made end
end

function Walk:read(name)
  local scope = self.scope
  while scope and not scope.names[name] do scope = scope.outer end
  if scope then scope.names[name].read = true end
end

function Walk:expressions()
  repeat self:expression() until not self:takes ","
end

function Walk:body()
  self:open()
  self:take "("
  while not self:takes ")" do
    if not self:takes "..." then self:declare(self:name()) end
    self:takes ","
  end
  self:block()
  self:take "end"
  self:close()
end

function Walk:constructor()
  self:take "{"
  while not self:takes "}" do
    local following = self.tokens[self.at + 1]
    if self:takes "[" then
      self:expression()
      self:take "]"
      self:take "="
    elseif self:kind() == "name" and following and following.text == "=" and following.kind == "op" then
      self.at = self.at + 2
    end
    self:expression()
    if not self:takes "," then self:takes ";" end
  end
end

-- What may follow a name or a bracket: fields, indices, calls. True when there was any.
function Walk:suffixes()
  local begin = self.at
  while true do
    local word = self:word()
    if word == "." or word == ":" and self.tokens[self.at + 1].text ~= ":" then   -- not ::label::
      self.at = self.at + 1
      self:name()
    elseif word == "[" then
      self.at = self.at + 1
      self:expression()
      self:take "]"
    elseif word == "(" then
      self.at = self.at + 1
      if not self:takes ")" then
        self:expressions()
        self:take ")"
      end
    elseif word == "{" then
      self:constructor()
    elseif self:kind() == "string" then
      self.at = self.at + 1
    else
      return self.at > begin
    end
  end
end

-- 10ULL and 0x1.8p3 are several tokens to the lexer.
function Walk:number()
  local before = self.tokens[self.at]
  self.at = self.at + 1
  while self:kind() == "number" or self:kind() == "name" do
    local token = self.tokens[self.at]
    if token.line ~= before.line or token.col ~= before.col + before.len then return end
    before, self.at = token, self.at + 1
  end
end

function Walk:operand()
  while kUnary[self:word()] do self.at = self.at + 1 end
  local word, kind = self:word(), self:kind()
  if kConstants[word] or kind == "string" then
    self.at = self.at + 1
  elseif kind == "number" then
    self:number()
  elseif word == "{" then
    self:constructor()
  elseif self:takes "function" then
    self:body()
  elseif self:takes "(" then
    self:expression()
    self:take ")"
    self:suffixes()
  else
    self:read(self:name().text)
    self:suffixes()
  end
end

function Walk:expression()
  self:operand()
  while kBinary[self:word()] do
    self.at = self.at + 1
    self:operand()
  end
end

-- A name alone that is given a value is not read by that.
function Walk:target()
  if self:takes "(" then
    self:expression()
    self:take ")"
    self:suffixes()
    return
  end
  local token = self:name()
  if self:suffixes() then self:read(token.text) end
end

function Walk:scoped_block(stop)
  self:open()
  self:block()
  self:close()
  if stop then self:take(stop) end
end

local kStatements = {
  [";"] = function() end,
  ["do"] = function(walk) walk:scoped_block "end" end,
  ["while"] = function(walk)
    walk:expression()
    walk:take "do"
    walk:scoped_block "end"
  end,
  ["repeat"] = function(walk)   -- its condition sees the locals of its block
    walk:open()
    walk:block()
    walk:take "until"
    walk:expression()
    walk:close()
  end,
  ["if"] = function(walk)
    repeat
      walk:expression()
      walk:take "then"
      walk:scoped_block()
    until not walk:takes "elseif"
    if walk:takes "else" then walk:scoped_block() end
    walk:take "end"
  end,
  ["for"] = function(walk)
    local names = {}
    repeat names[#names + 1] = walk:name() until not walk:takes ","
    if not walk:takes "=" then walk:take "in" end
    walk:expressions()
    walk:take "do"
    walk:open()
    for _, token in ipairs(names) do walk:declare(token) end
    walk:scoped_block "end"
    walk:close()
  end,
  ["function"] = function(walk)
    local token, is_field = walk:name(), false
    while walk:takes "." or walk:word() == ":" do
      local is_method = walk:takes ":"
      walk:name()
      is_field = true
      if is_method then break end
    end
    if is_field then walk:read(token.text) end
    walk:open()
    walk:declare { text = "self" }
    walk:body()
    walk:close()
  end,
  ["local"] = function(walk)
    local group = {}
    walk.groups[#walk.groups + 1] = group
    if walk:takes "function" then
      walk:declare(walk:name(), group)
      return walk:body()
    end
    local names = {}
    repeat names[#names + 1] = walk:name() until not walk:takes ","
    if walk:takes "=" then walk:expressions() end
    for _, token in ipairs(names) do walk:declare(token, group) end
  end,
  ["return"] = function(walk)
    if not kBlockEnds[walk:word()] and walk:word() ~= ";" and walk.at <= #walk.tokens then walk:expressions() end
  end,
  ["break"] = function() end,
  [":"] = function(walk)   -- ::label::
    walk:take ":"
    walk:name()
    walk:take ":"
    walk:take ":"
  end,
}

function Walk:statement()
  local statement = kStatements[self:word()]
  if statement then
    self.at = self.at + 1
    return statement(self)
  end
  local following = self.tokens[self.at + 1]
  if self:word() == "goto" and following and following.kind == "name" then   -- elsewhere a name like others
    self.at = self.at + 2
    return
  end
  self:target()
  while self:takes "," do self:target() end
  if self:takes "=" then self:expressions() end
end

function Walk:block()
  while self.at <= #self.tokens and not kBlockEnds[self:word()] do self:statement() end
end

-- The last names of a group that nothing reads. Those before a name that is read hold its place.
local function unread(group, out)
  for i = #group, 1, -1 do
    if group[i].read then return end
    out[#out + 1] = group[i].token
  end
end

-- The tokens of local names in a text that Lua has accepted which nothing reads. Names that begin with _, parameters
-- and the names of loops may stay unread.
function M.locals(text)
  local tokens = lexer.tokens((text:gsub("^#[^\n]*", "")))
  local walk = setmetatable({ tokens = tokens, at = 1, groups = {} }, Walk)
  local ok, raised = pcall(function()
    walk:open()
    walk:block()
    if walk.at <= #tokens then error(walk) end
  end)
  if not ok and raised ~= walk then error(raised, 0) end
  local out = {}
  for _, group in ipairs(ok and walk.groups or {}) do unread(group, out) end
  return out
end

return M
