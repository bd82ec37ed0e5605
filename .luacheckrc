-- What luacheck looks for in the Lua library, its specs and the recipes. tests/house/lua_lint.sh runs it.
std = "luajit"
max_line_length = false   -- the format is read by people; tests/house/files_test.cpp counts lines of a file
files["tests/lua"] = { read_globals = { "describe", "it", "expect" } }
