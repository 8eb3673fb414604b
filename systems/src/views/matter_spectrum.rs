//! Power spectra of particles and of all matter.

use super::matter::Matter;
use super::overdensity::{Grid, Power};
use nestar_deck::DeckError;
use nestar_engine::run::views::{
    ComputedEntry, ComputedView, ViewArray, ViewContext, ViewCoordinate, ViewLayout,
};
use nestar_engine::{Engine, Error};

/// Spectra of some kinds of matter.
pub(super) struct MatterSpectrum {
    grid: Grid,
    /// Numbers of modes of the shells.
    modes: Vec<f64>,
    /// Names, and what they mean.
    all: Vec<(String, Matter)>,
}

impl MatterSpectrum {
    /// Finds the matter that the elements of the key `species` name.
    ///
    /// # Errors
    /// There is no such species; a name is given twice.
    pub fn new(context: &ViewContext, species: &[String], grid: Grid) -> Result<Self, DeckError> {
        let mut all: Vec<(String, Matter)> = Vec::new();
        for (n, name) in species.iter().enumerate() {
            if all.iter().any(|(other, _)| other == name) {
                let why = format!("names \"{name}\" a second time: remove it");
                return Err(context.error(&format!("species[{n}]"), &why));
            }
            all.push((name.clone(), Matter::named(context, n, name)?));
        }
        let modes = grid.modes()[1..].to_vec();
        Ok(Self { grid, modes, all })
    }
}

impl ComputedView for MatterSpectrum {
    fn layout(&self) -> ViewLayout {
        let wavenumber = ViewCoordinate {
            name: "wavenumber".into(),
            units: Some("1/length".into()),
            long_name: "wave number, 2 pi over the wavelength".into(),
            values: (1..=self.modes.len())
                .map(|shell| shell as f64 * self.grid.wavenumber())
                .collect(),
        };
        let array = |name: String, dimensions: &[String], long_name: String| ViewArray {
            name,
            dimensions: dimensions.to_vec(),
            units: Some("length**3".into()),
            long_name,
        };
        let along = [wavenumber.name.clone()];
        let mut arrays = vec![ViewArray {
            units: None,
            ..array("modes".into(), &along, "number of modes".into())
        }];
        for (name, _) in &self.all {
            let about = format!("power spectrum of {name}");
            arrays.push(array(format!("power_{name}"), &along, about));
            let about = format!("shot noise of {name}, contained in the power spectrum");
            arrays.push(array(format!("shot_noise_{name}"), &[], about));
        }
        ViewLayout {
            coordinates: vec![wavenumber],
            arrays,
        }
    }

    fn entry(&self, sim: &Engine) -> Result<Option<ComputedEntry>, Error> {
        let mut arrays = vec![self.modes.clone()];
        for (_, matter) in &self.all {
            if let Some(points) = matter.collect(sim)? {
                let Power { power, shot_noise } = self.grid.power(&points.all);
                arrays.extend([power, vec![shot_noise]]);
            }
        }
        let is_complete = arrays.len() == 1 + 2 * self.all.len();
        Ok(is_complete.then_some(ComputedEntry {
            arrays,
            ..ComputedEntry::default()
        }))
    }
}
