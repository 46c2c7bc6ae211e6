#include "memory/expert_store.h"

namespace fathom {

std::vector<int64_t> ExpertPins::ready_first() const {
  std::vector<int64_t> order;
  for (bool wanted : {true, false})
    for (int64_t i = 0; i < count(); ++i)
      if (is_ready(i) == wanted) order.push_back(i);
  return order;
}

}  // namespace fathom
