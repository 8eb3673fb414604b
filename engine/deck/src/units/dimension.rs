//! Dimensions of numbers: powers of length, mass and time.

pub(crate) const LENGTH: [i32; 3] = [1, 0, 0];
pub(crate) const VOLUME: [i32; 3] = [3, 0, 0];
pub(crate) const MASS: [i32; 3] = [0, 1, 0];
pub(crate) const TIME: [i32; 3] = [0, 0, 1];
pub(crate) const SPEED: [i32; 3] = [1, 0, -1];
pub(crate) const ENERGY: [i32; 3] = [2, 1, -2];

/// Powers of length, mass and time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Powers(pub [f64; 3]);

impl From<[i32; 3]> for Powers {
    fn from(powers: [i32; 3]) -> Self {
        Self(powers.map(f64::from))
    }
}

/// Returns the name of a quantity with these powers of length, mass and time.
pub(crate) fn kind(powers: Powers) -> String {
    let whole = powers.0.iter().all(|power| power.fract() == 0.0);
    let name = match powers.0.map(|power| power as i32) {
        [0, 0, 0] if whole => "a pure number",
        LENGTH if whole => "a length",
        MASS if whole => "a mass",
        TIME if whole => "a time",
        SPEED if whole => "a velocity",
        VOLUME if whole => "a volume",
        ENERGY if whole => "an energy",
        [-3, 1, 0] if whole => "a density",
        [-1, 1, -2] if whole => "a pressure",
        [1, 0, -2] if whole => "an acceleration",
        [0, 0, -1] if whole => "a rate",
        _ => {
            let named = ["cm", "g", "s"].into_iter().zip(powers.0);
            let named = named.filter(|(_, power)| *power != 0.0);
            let units: Vec<String> = named
                .map(|(unit, power)| format!("{unit}^{power}"))
                .collect();
            return format!("a quantity in {}", units.join(" "));
        }
    };
    name.into()
}

/// Dimension of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dimension {
    /// The deck does not tell it, because the number is given in code units.
    Unknown,
    /// Powers of length, mass and time.
    Powers(Powers),
}

impl Dimension {
    /// Dimension of a pure number.
    pub const NONE: Self = Self::Powers(Powers([0.0; 3]));

    /// Names the quantity, such as `a length`.
    pub fn shown(self) -> String {
        match self {
            Self::Unknown => "a number in code units".into(),
            Self::Powers(powers) => kind(powers),
        }
    }

    pub fn scaled(self, exponent: f64) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Powers(Powers(powers)) => Self::Powers(Powers(powers.map(|p| p * exponent))),
        }
    }

    /// Returns the dimension of a product with a power of another number.
    pub fn times(self, other: Self, exponent: f64) -> Self {
        match (self, other) {
            (Self::Powers(Powers(a)), Self::Powers(Powers(b))) => {
                Self::Powers(Powers([0, 1, 2].map(|n| a[n] + exponent * b[n])))
            }
            _ => Self::Unknown,
        }
    }
}
