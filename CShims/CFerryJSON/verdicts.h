// verdicts.h - the results that a check has found so far.
#ifndef FERRY_JSON_VERDICTS_H
#define FERRY_JSON_VERDICTS_H

#include "CFerryJSON.h"

#include <vector>

// By value and rule: whether it matches, and if not, why.
class Verdicts {
 public:
  struct Verdict {
    uint32_t index = 0;  // 0 if the slot is empty
    uint32_t place = 0;
    uint32_t reason = FERRY_JSON_FITS;
    uint32_t rule = 0;
    uint32_t property = 0;
    uint32_t found_at = 0;
  };

  const Verdict *find(size_t index, uint32_t place) const noexcept {
    if (slots.empty())
      return nullptr;
    const Verdict &slot = slots[slot_of(index, place)];
    return slot.index ? &slot : nullptr;
  }

  // Returns false if there are too many.
  bool add(size_t index, uint32_t place, const ferry_json_mismatch &mismatch) {
    if (count == FERRY_JSON_VERDICTS)
      return false;
    if (2 * (count + 1) > slots.size())
      grow();
    slots[slot_of(index, place)] = {
        static_cast<uint32_t>(index), place,
        mismatch.reason,              mismatch.rule,
        mismatch.property,            static_cast<uint32_t>(mismatch.index)};
    count++;
    return true;
  }

 private:
  std::vector<Verdict> slots;
  size_t count = 0;

  // The slot where it is, or would be.
  size_t slot_of(size_t index, uint32_t place) const noexcept {
    uint64_t hash = (uint64_t(index) << 32 | place) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    size_t slot = (hash ^ hash >> 32) & (slots.size() - 1);
    while (slots[slot].index &&
           (slots[slot].index != index || slots[slot].place != place))
      slot = (slot + 1) & (slots.size() - 1);
    return slot;
  }

  void grow() {
    std::vector<Verdict> old(slots.empty() ? 1024 : 2 * slots.size());
    old.swap(slots);
    for (const Verdict &verdict : old)
      if (verdict.index)
        slots[slot_of(verdict.index, verdict.place)] = verdict;
  }
};

#endif
