//! Sums of floating-point numbers that do not depend on their order, in 48 bytes.

/// Digits of a sum, from the one with the leading bit of the largest number down.
const DIGITS: usize = 4;
/// Exponent of the lowest digit of any number.
const LOWEST_EXPONENT: i32 = -1088;

/// Sum that does not depend on the order of the numbers or on how they are split into partial sums.
///
/// Unlike [`ExactSum`](nestar_kernels::mesh::exact_sum::ExactSum), it keeps only the four leading digits of 32 bits, counted from
/// the leading digit of the largest number: at least 97 bits. What is lower is cut off, whatever the order, because digits of
/// numbers are cut at places that depend on the largest number alone (Demmel and Nguyen 2015, "Parallel reproducible
/// summation").
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OrderlessSum {
    /// Signed digits, highest first, with 31 spare bits.
    digits: [i64; DIGITS],
    /// Place of the highest digit plus 1, from the lowest digit of any number; 0: no number was added.
    top: u16,
    /// `true` if a number was not finite.
    is_nan: bool,
}

impl OrderlessSum {
    /// Bytes of a packed sum.
    pub const BYTES: usize = 8 * DIGITS + 3;

    /// Adds a number; at most 2^31 are added.
    pub fn add(&mut self, x: f64) {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = match exponent {
            0x7ff => {
                self.is_nan = true;
                return;
            }
            0 if fraction == 0 => return,
            0 => (fraction, -1074),
            normal => (fraction | 1 << 52, normal - 1075),
        };
        let place = (exponent - LOWEST_EXPONENT) as usize;
        let wide = u128::from(mantissa) << (place % 32);
        let highest = (127 - wide.leading_zeros() as usize) / 32;
        let top = (place / 32 + highest + 1) as u16;
        self.raise(top);
        // number of places between the highest digit of the sum and that of the number
        let below = usize::from(self.top - top);
        for n in 0..=highest {
            let Some(digit) = self.digits.get_mut(below + n) else {
                break;
            };
            let part = i64::from((wide >> (32 * (highest - n))) as u32);
            *digit += if x < 0.0 { -part } else { part };
        }
    }

    /// Moves the digits so that the highest one has place `top`, if it is lower.
    fn raise(&mut self, top: u16) {
        if top <= self.top {
            return;
        }
        let by = usize::from(top - self.top).min(DIGITS);
        self.digits.copy_within(..DIGITS - by, by);
        self.digits[..by].fill(0);
        self.top = top;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        let mut other = *other;
        self.raise(other.top);
        other.raise(self.top);
        for (digit, more) in self.digits.iter_mut().zip(other.digits) {
            *digit += more;
        }
        self.is_nan |= other.is_nan;
    }

    /// Returns the number nearest to the sum; NaN if a number was not finite.
    pub fn value(&self) -> f64 {
        if self.is_nan {
            return f64::NAN;
        }
        let mut digits = self.digits;
        carry(&mut digits);
        let is_negative = digits[0] < 0;
        if is_negative {
            digits = digits.map(|digit| -digit);
            carry(&mut digits);
        }
        let [high, digits @ .., last] = digits;
        let leading = digits
            .iter()
            .fold(high as u128, |all, digit| all << 32 | *digit as u128);
        // the last digit decides ties
        let leading = (leading | u128::from(last != 0)) as f64;
        let place = i32::from(self.top) - 1 - (DIGITS as i32 - 2);
        let value = scaled(leading, LOWEST_EXPONENT + 32 * place);
        if is_negative { -value } else { value }
    }

    /// Appends the sum to `out`.
    pub fn pack(&self, out: &mut Vec<u8>) {
        out.extend(self.digits.iter().flat_map(|digit| digit.to_le_bytes()));
        out.extend(self.top.to_le_bytes());
        out.push(u8::from(self.is_nan));
    }

    /// Reads a packed sum.
    pub fn unpack(bytes: &[u8; Self::BYTES]) -> Self {
        let (digits, rest) = bytes.split_at(8 * DIGITS);
        let mut sum = Self::default();
        for (digit, bytes) in sum.digits.iter_mut().zip(digits.as_chunks().0) {
            *digit = i64::from_le_bytes(*bytes);
        }
        sum.top = u16::from_le_bytes([rest[0], rest[1]]);
        sum.is_nan = rest[2] != 0;
        sum
    }
}

/// Propagates carries, so that all digits but the first are between 0 and 2^32 - 1.
fn carry(digits: &mut [i64; DIGITS]) {
    for n in (1..DIGITS).rev() {
        digits[n - 1] += digits[n] >> 32;
        digits[n] &= 0xffff_ffff;
    }
}

/// Returns `x` times a power of two.
fn scaled(x: f64, power: i32) -> f64 {
    let power_of_two = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
    let mut x = x;
    let mut power = power;
    while power < -1000 {
        x *= power_of_two(-1000);
        power += 1000;
    }
    x * power_of_two(power)
}

#[cfg(test)]
mod tests {
    use super::OrderlessSum;
    use nestar_kernels::mesh::exact_sum::ExactSum;

    fn sum(numbers: impl IntoIterator<Item = f64>) -> OrderlessSum {
        let mut sum = OrderlessSum::default();
        numbers.into_iter().for_each(|x| sum.add(x));
        sum
    }

    #[test]
    fn one_number_is_itself() {
        for x in [
            0.0,
            1.0,
            -1.0,
            0.1,
            -1e300,
            5e-324,
            2.3e-308,
            1.0 / 3.0,
            4_294_967_296.0,
        ] {
            assert_eq!(sum([x]).value(), x);
        }
        assert!(sum([1.0, f64::NAN]).value().is_nan());
    }

    #[test]
    fn the_order_does_not_matter_and_nothing_visible_is_lost() {
        let scale = |n: i32| f64::from_bits((1023 + (n % 150 - 75) as i64) as u64 * (1 << 52));
        let number = |n: i32| (f64::from(n) - 900.3) / f64::from(n) * scale(n * 37);
        let numbers: Vec<f64> = (1..2000).map(number).collect();
        let forwards = sum(numbers.iter().copied());
        let backwards = sum(numbers.iter().rev().copied());
        assert_eq!(forwards, backwards);
        let plain = |numbers: &mut dyn Iterator<Item = &f64>| numbers.sum::<f64>();
        assert_ne!(
            plain(&mut numbers.iter()),
            plain(&mut numbers.iter().rev()),
            "a weak test"
        );
        let mut exact = ExactSum::default();
        numbers.iter().for_each(|&x| exact.add(x));
        assert_eq!(forwards.value(), exact.value());
        // partial sums in both orders, through bytes
        for at in [1, 700, 1998] {
            let [a, b] = [&numbers[..at], &numbers[at..]].map(|part| sum(part.iter().copied()));
            let [mut one, mut other] = [a, b];
            one.merge(&b);
            other.merge(&a);
            assert_eq!(one, other);
            assert_eq!(one.value().to_bits(), forwards.value().to_bits());
            let mut bytes = Vec::new();
            one.pack(&mut bytes);
            let bytes = bytes.as_slice().try_into().expect("the size of a sum");
            assert_eq!(OrderlessSum::unpack(bytes), one);
        }
    }

    #[test]
    fn signs_and_far_apart_numbers_are_summed() {
        assert_eq!(sum([1e20, 1.0, -1e20]).value(), 1.0);
        assert_eq!(sum([-1e20, 1.0, 1e20, -2.0]).value(), -1.0);
        assert_eq!(sum([1e-200, 1e200]), sum([1e200, 1e-200]));
        assert_eq!(sum([1e-200, 1e200]).value(), 1e200);
    }
}
