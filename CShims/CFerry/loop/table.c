/* table.c - maps ids to transfers: open addressing, linear probing, and removal
 * by shifting back, so that no tombstones accumulate. */
#include "loop/loop.h"

#include <stdlib.h>

static size_t place(uint64_t id, size_t capacity) {
  /* Fibonacci hashing spreads ids that count upwards. */
  return (size_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (capacity - 1);
}

static bool grow(ferry__table *table) {
  size_t capacity = table->capacity ? table->capacity * 2 : 256;
  ferry__transfer **slots = calloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  for (size_t i = 0; i < table->capacity; i++) {
    if (!table->slots[i])
      continue;
    size_t at = place(ferry__entry_of(table->slots[i])->id, capacity);
    while (slots[at])
      at = (at + 1) & (capacity - 1);
    slots[at] = table->slots[i];
  }
  free(table->slots);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

bool ferry__table_insert(ferry__table *table, ferry__transfer *transfer) {
  if (table->count * 2 >= table->capacity && !grow(table))
    return false;
  size_t at = place(ferry__entry_of(transfer)->id, table->capacity);
  while (table->slots[at]) {
    if (ferry__entry_of(table->slots[at])->id == ferry__entry_of(transfer)->id)
      abort(); /* The caller used the id of a transfer that has not ended. */
    at = (at + 1) & (table->capacity - 1);
  }
  table->slots[at] = transfer;
  table->count++;
  return true;
}

ferry__transfer *ferry__table_find(const ferry__table *table, uint64_t id) {
  if (!table->count)
    return NULL;
  size_t at = place(id, table->capacity);
  while (table->slots[at] && ferry__entry_of(table->slots[at])->id != id)
    at = (at + 1) & (table->capacity - 1);
  return table->slots[at];
}

void ferry__table_remove(ferry__table *table, uint64_t id) {
  if (!table->count)
    return;
  size_t mask = table->capacity - 1, hole = place(id, table->capacity);
  while (table->slots[hole] && ferry__entry_of(table->slots[hole])->id != id)
    hole = (hole + 1) & mask;
  if (!table->slots[hole])
    return;
  table->count--;
  for (size_t at = (hole + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
    size_t home = place(ferry__entry_of(table->slots[at])->id, table->capacity);
    /* It may move back if its home is not between the hole and itself. */
    if (((at - home) & mask) >= ((at - hole) & mask)) {
      table->slots[hole] = table->slots[at];
      hole = at;
    }
  }
  table->slots[hole] = NULL;
}

uint64_t ferry__hash(const char *text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
  for (size_t i = 0; i < length; i++)
    hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ull;
  return hash;
}
