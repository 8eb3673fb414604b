//! Selects particles by one of their scalars, such as the time of their birth.

use super::device::COLLECTIONS;
use super::function_call::{FunctionCall, StateColumns};
use super::selected_particle::SelectedParticle;
use super::species::Species;
use nestar_device::{Real, device};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_kernels::mesh::cell_record::CellRecord;
use nestar_kernels::particles::functions::Body;

/// An interval without its lower end.
#[device]
struct Interval {
    /// Exclusive lower bound.
    above: f64,
    /// Inclusive upper bound.
    upto: f64,
}

/// Returns the scalar of a particle if it lies in an interval.
#[device]
fn within<R: Real>(particle: (Body<R>, R), interval: &Interval) -> CellRecord<R> {
    let (_, scalar) = particle;
    let number = scalar.to_f64();
    CellRecord::<R> {
        found: number > interval.above && number <= interval.upto,
        record: scalar,
    }
}

impl Species {
    /// Starts to compile [`Species::select`] for a device. The first use reports errors.
    pub(super) fn prepare_selection(&self) {
        if let Some(lists) = &self.on_device {
            let _ = lists.kernels().of_function(COLLECTIONS, within::ITEM);
        }
    }

    /// Returns the particles that `level` moves on this rank and whose scalar lies in the interval from `bounds[0]`, which is excluded,
    /// to `bounds[1]`, in the order of their identities. On a device, eight bytes are fetched for each list if there is none.
    ///
    /// # Errors
    /// There is no such scalar; the device fails.
    pub fn select(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
        level: usize,
        scalar: &str,
        [above, upto]: [f64; 2],
    ) -> Result<Vec<SelectedParticle>, DeviceError> {
        let columns = StateColumns::of(self, &[scalar]).map_err(|[key, _]| {
            DeviceError::Setup(format!(
                "a plugin selects particles by the scalar {scalar:?}: add it to `{key}`"
            ))
        })?;
        let found = self.collect_by::<within>(&FunctionCall {
            topology,
            tables,
            columns: &columns,
            clock: LevelClock {
                level,
                ..LevelClock::default()
            },
            quanta_per_mass: 0.0,
            parameters: &Interval { above, upto },
        })?;
        let mut all: Vec<SelectedParticle> = found.into_iter().map(|(found, _)| found).collect();
        all.sort_unstable_by_key(|found| found.particle.id);
        Ok(all)
    }
}
