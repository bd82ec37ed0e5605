// AdamW as a recipe writes it, for tests of what executes it.
#pragma once
#include "tests/trainer/expression/random_expression.h"

namespace tycho {

/// p, m and v of p, g, m, v (elements), scale (one number), lr, b1, b2, eps, decay, c1 and c2 (scalars).
inline Expression adamw_expression() {
  return expression_of(
      "{'inputs':[{'name':'p'},{'name':'g'},{'name':'m'},{'name':'v'},{'name':'scale','shape':[1,1]},"
      "{'name':'lr','scalar':true},{'name':'b1','scalar':true},{'name':'b2','scalar':true},"
      "{'name':'eps','scalar':true},{'name':'decay','scalar':true},{'name':'c1','scalar':true},"
      "{'name':'c2','scalar':true}],'nodes':[['input',0],['input',1],['input',2],['input',3],['input',4],"
      "['input',5],['input',6],['input',7],['input',8],['input',9],['input',10],['input',11],['number',1],"
      "['mul',1,4],['sub',12,6],['sub',12,7],['mul',2,6],['mul',13,14],['add',16,17],['mul',3,7],['mul',13,"
      "13],['mul',20,15],['add',19,21],['sqrt',22],['sqrt',11],['div',12,24],['mul',23,25],['add',26,8],"
      "['div',18,27],['sub',12,9],['mul',0,29],['div',5,10],['mul',28,31],['sub',30,32]],"
      "'outputs':[{'name':'p','node':33},{'name':'m','node':18},{'name':'v','node':22}]}");
}

}  // namespace tycho
