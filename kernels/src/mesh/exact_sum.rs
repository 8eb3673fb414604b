//! Sums floating-point numbers exactly, independent of their order.

/// Digits of 32 bits from 2^-1088 on, enough for any sum of 2^31 finite numbers.
const DIGITS: usize = 68;
/// Exponent of the lowest digit.
const LOWEST_EXPONENT: i32 = -1088;
/// Numbers that may be added before carries are propagated; digits have 31 spare bits.
const ADDITIONS_PER_CARRY: u32 = 1 << 30;

/// An exact sum, stored as a long fixed-point number (Kulisch 2013, "Computer Arithmetic and Validity").
///
/// It does not depend on the order of the numbers or on how they are split into partial sums.
#[derive(Clone, Debug)]
pub struct ExactSum {
    /// Signed digits, lowest first; unique for a given sum only after [`ExactSum::normalize`].
    digits: [i64; DIGITS],
    /// Numbers that may be added before carries must be propagated.
    remaining: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self {
            digits: [0; DIGITS],
            remaining: ADDITIONS_PER_CARRY,
        }
    }
}

impl PartialEq for ExactSum {
    fn eq(&self, other: &Self) -> bool {
        self.normalized() == other.normalized()
    }
}

impl ExactSum {
    /// Bytes of [`ExactSum::to_bytes`].
    pub const BYTES: usize = 8 * DIGITS;

    /// Adds a finite number; other numbers are ignored.
    pub fn add(&mut self, x: f64) {
        let bits = x.to_bits();
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        debug_assert!(exponent < 0x7ff, "{x} is not finite");
        let (mantissa, exponent) = match exponent {
            0x7ff => return,
            0 => (fraction, -1074),
            normal => (fraction | 1 << 52, normal - 1075),
        };
        let place = (exponent - LOWEST_EXPONENT) as usize;
        let wide = u128::from(mantissa) << (place % 32);
        for (n, digit) in self.digits[place / 32..].iter_mut().take(3).enumerate() {
            let part = (wide >> (32 * n)) as u32;
            *digit += if x < 0.0 {
                -i64::from(part)
            } else {
                i64::from(part)
            };
        }
        self.remaining -= 1;
        if self.remaining == 0 {
            self.normalize();
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.normalize();
        for (digit, theirs) in self.digits.iter_mut().zip(other.normalized()) {
            *digit += theirs;
        }
        self.normalize();
    }

    /// Propagates carries, so that every digit but the last is between 0 and 2^32 - 1.
    pub fn normalize(&mut self) {
        let mut carry = 0;
        let last = DIGITS - 1;
        for digit in &mut self.digits[..last] {
            let all = *digit + carry;
            *digit = all & 0xffff_ffff;
            carry = all >> 32;
        }
        self.digits[last] += carry;
        self.remaining = ADDITIONS_PER_CARRY;
    }

    fn normalized(&self) -> [i64; DIGITS] {
        let mut sum = self.clone();
        sum.normalize();
        sum.digits
    }

    /// Returns the digits; normalize first to get the unique ones. Digits of partial sums may be added modulo 2^64.
    pub fn words(&mut self) -> &mut [i64] {
        self.remaining = 1;
        &mut self.digits
    }

    /// Returns the sum as bytes, identical for equal sums.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.normalized()
            .iter()
            .flat_map(|d| d.to_le_bytes())
            .collect()
    }

    /// Reads the result of [`ExactSum::to_bytes`]; `None` if the bytes are not a sum.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
        let digits: [i64; DIGITS] = words.try_into().ok()?;
        let (low, fits) = (&digits[..DIGITS - 1], 0..1 << 32);
        let sound = rest.is_empty() && low.iter().all(|digit| fits.contains(digit));
        sound.then_some(Self {
            digits,
            remaining: ADDITIONS_PER_CARRY,
        })
    }

    /// Returns the number nearest to the sum.
    #[must_use]
    pub fn value(&self) -> f64 {
        let digits = self.normalized();
        if digits[DIGITS - 1] < 0 {
            let mut negative = Self {
                digits: digits.map(|digit| -digit),
                remaining: ADDITIONS_PER_CARRY,
            };
            negative.normalize();
            return -negative.value();
        }
        let Some(top) = digits.iter().rposition(|digit| *digit != 0) else {
            return 0.0;
        };
        let first = top.saturating_sub(2);
        let leading = digits[first..=top].iter().rev();
        let mut leading = leading.fold(0u128, |all, digit| all << 32 | *digit as u128);
        // lower digits decide ties
        leading |= u128::from(digits[..first].iter().any(|digit| *digit != 0));
        scaled(leading as f64, LOWEST_EXPONENT + 32 * first as i32)
    }
}

/// Returns `x` times a power of two from 2^-1088 to 2^1023, rounded once.
fn scaled(x: f64, power: i32) -> f64 {
    let power_of_two = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
    if power < -1000 {
        x * power_of_two(-1000) * power_of_two(power + 1000)
    } else {
        x * power_of_two(power)
    }
}

#[cfg(test)]
mod tests {
    use super::ExactSum;

    fn sum(numbers: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|x| sum.add(*x));
        sum
    }

    #[test]
    fn one_number_is_itself() {
        let numbers = [
            0.0,
            1.0,
            -1.0,
            0.1,
            -0.1,
            1e300,
            -1e300,
            f64::MAX,
            f64::MIN,
            5e-324,
            -5e-324,
            2.3e-308,
            1.5e-310,
            f64::MIN_POSITIVE,
            4_294_967_296.0,
            1.0 / 3.0,
        ];
        for x in numbers {
            assert_eq!(sum(&[x]).value(), x);
        }
    }

    #[test]
    fn nothing_is_lost_and_the_order_does_not_matter() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]).value(), 1.0);
        assert_eq!(sum(&[1.0, 5e-324, -1.0]).value(), 5e-324);
        // ties round to even: 2^53 + 1, then slightly more
        let even = 9_007_199_254_740_992.0;
        assert_eq!(sum(&[even, 1.0]).value(), even);
        assert_eq!(sum(&[even, 1.0, 1e-200]).value(), even + 2.0);
        let numbers: Vec<f64> = (1..2000)
            .map(|n| (-1.0f64).powi(n) / f64::from(n).powi(n % 40))
            .collect();
        let backwards: Vec<f64> = numbers.iter().rev().copied().collect();
        assert_eq!(sum(&numbers), sum(&backwards));
        assert_ne!(
            numbers.iter().sum::<f64>(),
            backwards.iter().sum::<f64>(),
            "a weak test"
        );
        let mut parts = sum(&numbers[..777]);
        parts.merge(&sum(&numbers[777..]));
        assert_eq!(parts.to_bytes(), sum(&backwards).to_bytes());
    }

    #[test]
    fn sums_come_back_from_their_bytes_and_add_up_as_words() {
        let (one, other) = (sum(&[-1e-40, 3.7]), sum(&[2e55, -4.0]));
        assert_eq!(ExactSum::from_bytes(&one.to_bytes()), Some(one.clone()));
        assert!(ExactSum::from_bytes(&one.to_bytes()[1..]).is_none());
        assert!(ExactSum::from_bytes(&[0xff; ExactSum::BYTES]).is_none());
        let (mut all, mut theirs) = (one.clone(), other.clone());
        all.normalize();
        theirs.normalize();
        for (word, theirs) in all.words().iter_mut().zip(theirs.words()) {
            *word = (*word as u64).wrapping_add(*theirs as u64) as i64;
        }
        all.normalize();
        let mut merged = one;
        merged.merge(&other);
        assert_eq!(all, merged);
    }
}
