//! Chooses the mass quantum of deposits, and counts particles that have left the domain.

use super::pages::ParticleReal;
use super::patch_exchange::Escaped;
use super::species::{PatchParticles, Species, SpeciesMap, count};
use bevy_ecs::prelude::*;
use nestar_engine::comm::{Ranks, RanksError};
use nestar_engine::mesh::parallel;
use nestar_engine::step::PluginState;
use nestar_engine::{Error, in_precision};

/// Mass quantum and other state of the run.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
pub struct MassQuantum {
    /// Quanta per unit mass, a power of two, or 0 if no particle has mass. All particles together have fewer
    /// than 2^62 quanta.
    pub quanta_per_mass: f64,
    /// `true` if the accelerations of the particles are known.
    pub has_accelerations: bool,
    /// Escaped particles by species.
    pub lost: Vec<Escaped>,
    /// Names of the species.
    pub names: Vec<String>,
}

impl MassQuantum {
    /// Resets the state before a new start.
    pub fn reset(&mut self) {
        *self = Self {
            lost: vec![Escaped::default(); self.lost.len()],
            names: std::mem::take(&mut self.names),
            ..Self::default()
        };
    }

    /// Sets the quantum from the largest mass and the number of particles on all ranks.
    ///
    /// # Errors
    /// Another rank or the transport has failed; the total mass overflows.
    pub fn choose(&mut self, all: &mut SpeciesMap, others: &Ranks) -> Result<(), Error> {
        self.choose_with(all, 0.0, others).map(|_| ())
    }

    /// Sets the quantum as [`MassQuantum::choose`], for particles and gas of mass `gas`, from which particles may be born. Returns how many
    /// new quanta an old one has; 1 if there was none.
    ///
    /// # Errors
    /// As [`MassQuantum::choose`].
    pub fn choose_with(
        &mut self,
        all: &mut SpeciesMap,
        gas: f64,
        others: &Ranks,
    ) -> Result<f64, Error> {
        let own = Masses::of(all)?;
        // non-negative numbers have the order of their bits
        let largest = f64::from_bits(others.max(own.largest.to_bits())?);
        let before = self.quanta_per_mass;
        self.set_quantum(others.sum(own.number)? as f64 * largest + gas)?;
        let ratio = match before > 0.0 {
            true => self.quanta_per_mass / before,
            false => 1.0,
        };
        let lost = self.lost.iter_mut();
        lost.for_each(|lost| lost.mass = (lost.mass as f64 * ratio) as u64);
        all.0.iter_mut().for_each(Species::recount);
        self.check_lightest(all, &own, others)?;
        Ok(ratio)
    }

    /// Returns the mass of a number of quanta.
    #[must_use]
    pub fn mass_of(&self, quanta: u64) -> f64 {
        match self.quanta_per_mass {
            0.0 => 0.0,
            quanta_per_mass => quanta as f64 / quanta_per_mass,
        }
    }

    /// Checks that no particle is lighter than a quantum.
    ///
    /// # Errors
    /// A mass is below the quantum; another rank or the transport has failed.
    fn check_lightest(&self, all: &SpeciesMap, own: &Masses, others: &Ranks) -> Result<(), Error> {
        let names = all.0.iter().map(|species| &*species.name);
        let below_quantum = self.below_quantum(names.zip(own.lightest.iter().copied()));
        let below_quantum = others.first_error(below_quantum)?;
        below_quantum.map_or(Ok(()), |why| Err(Error::Setup(why)))
    }

    /// Returns a message if the smallest positive mass of a species is below the quantum. Such a particle
    /// would be no source of gravity.
    #[must_use]
    pub fn below_quantum<'a>(
        &self,
        mut lightest: impl Iterator<Item = (&'a str, f64)>,
    ) -> Option<String> {
        let is_light = |(_, mass): &(&str, f64)| *mass > 0.0 && mass * self.quanta_per_mass < 1.0;
        let (name, mass) = lightest.find(is_light)?;
        Some(format!(
            "particles.species.{name} has a particle of the mass {mass:e}, below the mass quantum {:e}, which \
             follows from the number of particles, the largest mass and the gas from which particles may be born. It would be no source of gravity: \
             increase its mass (`mass` or `initial`), reduce the largest mass, or set its mass to 0 if this is \
             intended",
            1.0 / self.quanta_per_mass
        ))
    }

    /// Sets the quantum such that the mass `most` has 60 to 61 bits.
    ///
    /// # Errors
    /// The mass overflows.
    pub fn set_quantum(&mut self, most: f64) -> Result<(), Error> {
        if !most.is_finite() {
            let why = "the total mass of the particles overflows: choose a larger unit of mass";
            return Err(Error::Setup(why.into()));
        }
        self.quanta_per_mass = scale_of(most);
        Ok(())
    }

    /// Checks that the current total mass fits and that no mass is below the quantum. Collective.
    ///
    /// # Errors
    /// A restart has changed masses, or a plugin has created particles after the quantum was set or has
    /// changed masses too much. Another rank or the transport has failed.
    pub fn check_total(&self, all: &mut SpeciesMap, others: &Ranks) -> Result<(), Error> {
        let masses = Masses::of(all)?;
        let own = masses.sum;
        // in fractions of the limit, so that the sum over ranks fits
        let parts = (own * self.quanta_per_mass / power_of_two(30)).min(power_of_two(40)) as u64;
        let is_unknown = self.quanta_per_mass == 0.0 && own > 0.0;
        if !others.any(is_unknown)? && others.sum(parts)? < 1 << 32 {
            return self.check_lightest(all, &masses, others);
        }
        let why = "the particles have much more mass than when the mass quantum was set: keep `mass` of the species in a \
                   restart, let plugins that create particles call `allow_births`, and at most double the total mass of particles \
                   and the gas that the run began with";
        Err(Error::Setup(why.into()))
    }

    /// Repeats [`MassQuantum::check_total`] if plugins have increased the mass so much that it may not fit.
    ///
    /// # Errors
    /// As [`MassQuantum::check_total`].
    pub fn check_growth(&self, all: &mut SpeciesMap, others: &Ranks) -> Result<(), Error> {
        let mut with_masses = all.0.iter().filter(|species| species.pool.columns.masses);
        if with_masses.next().is_none() {
            return Ok(());
        }
        let mass_gain: f64 = all.0.iter().map(|species| species.mass_gain).sum();
        let least = power_of_two(60) / others.size() as f64;
        if !others.any(mass_gain * self.quanta_per_mass > least)? {
            return Ok(());
        }
        all.0.iter_mut().for_each(|species| species.mass_gain = 0.0);
        self.check_total(all, others)
    }

    /// Adds particles that have left the domain, summed over all ranks. Returns a remark for each species whose number of lost
    /// particles has reached another power of two.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn add_escaped(
        &mut self,
        lost: &[Escaped],
        others: &Ranks,
    ) -> Result<Vec<String>, RanksError> {
        if !others.any(lost.iter().any(|lost| lost.count > 0))? {
            return Ok(Vec::new());
        }
        let mut remarks = Vec::new();
        for ((all, lost), name) in self.lost.iter_mut().zip(lost).zip(&self.names) {
            let before = all.count;
            all.count += others.sum(lost.count)?;
            all.mass += others.sum(lost.mass)?;
            if all.count.checked_ilog2() != before.checked_ilog2() {
                let mass = all.mass as f64 / self.quanta_per_mass.max(f64::MIN_POSITIVE);
                remarks.push(format!(
                    "particles.species.{name}: {} of its particles (mass {mass}) have left the domain through open faces; see the \
                     columns {name}_lost and {name}_lost_mass",
                    all.count
                ));
            }
        }
        Ok(remarks)
    }
}

/// Returns the largest power of two whose product with `most` is below 2^61.
fn scale_of(most: f64) -> f64 {
    if most == 0.0 {
        return 0.0;
    }
    let exponent = (most.to_bits() >> 52) as i32 - 1023;
    power_of_two(60 - exponent)
}

/// Returns 2 to a power, clamped to exponents from -1000 to 1000.
pub fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent.clamp(-1000, 1000)) as u64) << 52)
}

/// Masses of the particles of this rank.
#[derive(Clone, Debug, Default)]
struct Masses {
    number: u64,
    largest: f64,
    sum: f64,
    /// Smallest positive mass by species; infinite if there is none.
    lightest: Vec<f64>,
}

impl Masses {
    fn of(all: &mut SpeciesMap) -> Result<Self, Error> {
        let mut masses = Self::default();
        all.fetch()?;
        for species in &mut all.0 {
            in_precision!(species.precision(), R => masses.add::<R>(species));
        }
        Ok(masses)
    }

    fn add<R: ParticleReal>(&mut self, species: &mut Species) {
        let (columns, one) = (species.pool.columns, species.mass);
        let number: usize = species.patches.iter().map(count).sum();
        self.number += number as u64;
        if !columns.masses {
            self.sum += number as f64 * one;
            self.largest = self.largest.max(if number > 0 { one } else { 0.0 });
            let is_heavy = number > 0 && one > 0.0;
            self.lightest
                .push(if is_heavy { one } else { f64::INFINITY });
            return;
        }
        let of_patch = |patch: &mut PatchParticles| {
            let (mut sum, mut largest, mut least) = (0.0, 0f64, f64::INFINITY);
            for (page, count) in patch
                .iter_mut()
                .flat_map(|rows| rows.read_pages::<R>(columns))
            {
                let own = page.mass.iter().take(count).map(|mass| mass.to_f64());
                sum += own.clone().sum::<f64>();
                largest = own.clone().fold(largest, f64::max);
                least = own.filter(|mass| *mass > 0.0).fold(least, f64::min);
            }
            (sum, largest, least)
        };
        let patches = parallel::map_mut(&mut species.patches, |_, patch| of_patch(patch));
        let mut lightest = f64::INFINITY;
        for (sum, largest, least) in patches {
            self.sum += sum;
            self.largest = self.largest.max(largest);
            lightest = lightest.min(least);
        }
        self.lightest.push(lightest);
    }
}

/// Saved state: the quantum, the flag of known accelerations, and for each species the length of its name,
/// the name, and the escaped particles.
impl PluginState for MassQuantum {
    const VERSION: u32 = 2;

    fn save(&self) -> Vec<u8> {
        let mut bytes = self.quanta_per_mass.to_le_bytes().to_vec();
        bytes.push(u8::from(self.has_accelerations));
        for (name, lost) in self.names.iter().zip(&self.lost) {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend([lost.count, lost.mass].map(u64::to_le_bytes).as_flattened());
        }
        bytes
    }

    /// Species that are not in the saved state have no escaped particles.
    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let cut = "it is truncated";
        let (quanta_per_mass, rest) = bytes.split_first_chunk().ok_or("it is empty")?;
        let (has_accelerations, mut rest) = rest.split_first().ok_or(cut)?;
        (self.quanta_per_mass, self.has_accelerations) = (
            f64::from_le_bytes(*quanta_per_mass),
            *has_accelerations == 1,
        );
        while let Some((length, tail)) = rest.split_first_chunk() {
            let length = u64::from_le_bytes(*length) as usize;
            let (name, tail) = tail.split_at_checked(length).ok_or(cut)?;
            let (count, tail) = tail.split_first_chunk().ok_or(cut)?;
            let (mass, tail) = tail.split_first_chunk().ok_or(cut)?;
            let [count, mass] = [count, mass].map(|word| u64::from_le_bytes(*word));
            let own = self.names.iter().position(|own| own.as_bytes() == name);
            if let Some(own) = own {
                self.lost[own] = Escaped { count, mass };
            }
            rest = tail;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(cut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_mass_fits_into_a_word() {
        for most in [1.0, 0.3, 1e-30, 7e40, 1.999_999, 2.0] {
            let units = most * scale_of(most);
            assert!(
                (power_of_two(60)..power_of_two(61)).contains(&units),
                "{most}"
            );
        }
        assert_eq!(scale_of(0.0), 0.0);
    }

    #[test]
    fn a_mass_below_the_quantum_is_reported() {
        let quantum = MassQuantum {
            quanta_per_mass: scale_of(2.0),
            ..MassQuantum::default()
        };
        let message = |lightest: [f64; 2]| {
            let species = ["dark", "dust"].into_iter().zip(lightest);
            quantum.below_quantum(species).unwrap_or_default()
        };
        let unit = 1.0 / quantum.quanta_per_mass;
        assert_eq!(message([1.0, unit]) + &message([f64::INFINITY, 0.0]), "");
        let why = message([1.0, 0.9 * unit]);
        let names = [
            "species.dust",
            &format!("{:e}", 0.9 * unit),
            &format!("{unit:e}"),
        ];
        assert!(names.iter().all(|name| why.contains(name)), "{why}");
    }

    #[test]
    fn the_saved_state_is_restored_exactly() {
        let lost = Escaped {
            count: 3,
            mass: 1 << 50,
        };
        let state = MassQuantum {
            quanta_per_mass: power_of_two(40),
            has_accelerations: true,
            lost: vec![lost, Escaped::default()],
            names: ["dark", "stars"].map(String::from).to_vec(),
        };
        let empty = |names: &[&str]| MassQuantum {
            lost: vec![Escaped::default(); names.len()],
            names: names.iter().map(|name| name.to_string()).collect(),
            ..MassQuantum::default()
        };
        let mut other = empty(&["dark", "stars"]);
        other.load(&state.save()).expect("it fits");
        assert_eq!(other, state);
        let mut more = empty(&["new", "dark"]);
        more.load(&state.save()).expect("names count");
        assert_eq!(more.lost, [Escaped::default(), lost]);
        let saved = state.save();
        assert!(other.load(&saved[..saved.len() - 1]).is_err());
        assert!(other.load(&[1, 2]).is_err());
    }
}
