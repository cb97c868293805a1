// number.cc - whether a number is a multiple of another one.
//
// 19.99 is a multiple of 0.01, although the quotient of the two doubles is not
// an integer. So each double is replaced by the shortest decimal that reads as
// it, which is what was written.
#include "check.h"

#include <charconv>
#include <cmath>

namespace {

// digits * 10^exponent, not negative, without trailing zeros.
struct Decimal {
  uint64_t digits = 0;
  int exponent = 0;

  void trim() noexcept {
    while (digits && digits % 10 == 0) {
      digits /= 10;
      exponent++;
    }
  }
};

Decimal decimal_of(double number) noexcept {
  Decimal decimal;
  char text[64];
  auto written = std::to_chars(text, text + sizeof text, std::fabs(number),
                               std::chars_format::scientific);
  bool is_fraction = false;
  const char *at = text;
  for (; at < written.ptr && *at != 'e'; at++) {
    if (*at == '.') {
      is_fraction = true;
      continue;
    }
    decimal.digits = decimal.digits * 10 + static_cast<uint64_t>(*at - '0');
    decimal.exponent -= is_fraction;
  }
  if (at < written.ptr && at[1] == '+')
    at++;
  int exponent = 0;
  if (at < written.ptr)
    std::from_chars(at + 1, written.ptr, exponent);
  decimal.exponent += exponent;
  decimal.trim();
  return decimal;
}

Decimal decimal_of(ferry_json_tape tape, size_t index) noexcept {
  uint8_t tag = ferry_json_tag(tape, index);
  if (tag == 'd')
    return decimal_of(ferry_json_double(tape, index));
  uint64_t bits = tape.words[index + 1];
  Decimal decimal;
  bool is_negative = tag == 'l' && static_cast<int64_t>(bits) < 0;
  decimal.digits = is_negative ? 0 - bits : bits;
  decimal.trim();
  return decimal;
}

uint64_t product(uint64_t a, uint64_t b, uint64_t modulus) noexcept {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % modulus);
}

}  // namespace

bool ferry__json_is_multiple(ferry_json_tape tape, size_t index,
                             ferry_json_tape other_tape,
                             size_t other) noexcept {
  Decimal number = decimal_of(tape, index);
  Decimal factor = decimal_of(other_tape, other);
  if (number.digits == 0)
    return true;
  // The rest has no trailing zero, so it is not a multiple of ten.
  if (factor.digits == 0 || number.exponent < factor.exponent)
    return false;
  uint64_t rest = number.digits % factor.digits;
  uint64_t power = 10 % factor.digits;
  for (int bits = number.exponent - factor.exponent; bits; bits >>= 1) {
    if (bits & 1)
      rest = product(rest, power, factor.digits);
    power = product(power, power, factor.digits);
  }
  return rest == 0;
}
