//! Rates, and where they are known.

use nestar_kernels::cooling::RateFunctions;
use nestar_kernels::cooling::tabulate::MolecularWeight;

/// Where rates are known, and whether they depend on metals.
pub(super) struct Source {
    pub rates: RateFunctions<'static>,
    /// Lowest and highest temperature at which they are known, kelvin.
    pub known: [f64; 2],
    /// Lowest and highest density, hydrogen nuclei per cubic centimetre; `None`: nothing depends on it.
    pub densities: Option<[f64; 2]>,
    /// Lowest and highest metallicity of a table, where it has an axis.
    pub metals: [f64; 2],
    /// Metallicities between which they are linear; fewer than two: they do not depend on it.
    pub metallicities: Vec<f64>,
    /// Largest metallicity.
    pub richest: f64,
}

impl Source {
    /// Rates by temperature alone.
    pub fn plain(cooling: impl Fn(f64) -> f64 + Send + Sync + 'static, heating: f64) -> Self {
        Self {
            rates: RateFunctions {
                cooling: Box::new(move |_, t, _| cooling(t)),
                heating: Box::new(move |_, _, _| heating),
                weight: MolecularWeight::Fixed(1.0),
            },
            known: [0.0, f64::INFINITY],
            densities: None,
            metals: [0.0, f64::INFINITY],
            metallicities: Vec::new(),
            richest: 0.0,
        }
    }

    /// What metals add to the rates; none, where these do not depend on metals or are not known without them.
    pub fn of_metals(self) -> Option<Self> {
        if self.metallicities.len() < 2 || self.metals[0] > 0.0 {
            return None;
        }
        let RateFunctions {
            cooling,
            heating,
            weight,
        } = self.rates;
        let rates = RateFunctions {
            cooling: Box::new(move |n, t, z| cooling(n, t, z) - cooling(n, t, 0.0)),
            heating: Box::new(move |n, t, z| heating(n, t, z) - heating(n, t, 0.0)),
            weight,
        };
        Some(Self { rates, ..self })
    }
}
