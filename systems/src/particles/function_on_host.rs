//! Functions of particles in host pages.

use super::device::ListId;
use super::function_call::{CalledParticle, FunctionCall, FunctionReduction, UpdateSums, numbers};
use super::pages::{PAGE, ParticlePages, ParticleReal};
use super::species::{PatchParticles, Species};
use nestar_device::{CellState, ParticleFn, Precise, Real};
use nestar_engine::mesh::parallel;
use nestar_kernels::particles::cloud::quanta_of;
use nestar_kernels::particles::functions::{FunctionLevel, is_mass_sound, reduced};

/// Pages of a list of a patch.
struct HostPages<'a> {
    row: u32,
    /// Index of the patch on its level.
    index: [i32; 3],
    level: &'a FunctionLevel,
    pages: &'a mut ParticlePages,
}

/// What is told of a particle of a patch.
pub(super) struct ToldParticle<T> {
    /// Row of the patch.
    pub row: u32,
    /// Number of the particle in its list.
    pub n: usize,
    pub what: T,
}

impl Species {
    /// Calls `work` for each patch with particles in a list, in parallel. Returns the results in Hilbert order.
    fn on_pages<M: ParticleFn, T: Send>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
        work: impl Fn(HostPages) -> T + Sync,
    ) -> Vec<T> {
        let (topology, level) = (call.topology, &call.level_of(at));
        let mut detached = self.take_patches(topology.rows(at.level).iter().copied());
        let of_patch = |_, (row, patch): &mut (u32, PatchParticles)| {
            work(HostPages {
                row: *row,
                index: topology.index(*row),
                level,
                pages: &mut patch[at.list],
            })
        };
        let results = parallel::map_mut(&mut detached, of_patch);
        self.restore_patches(detached);
        results
    }

    /// Sets the particles of a list to the results of a function.
    pub(super) fn update_on_host<M: ParticleFn<Result<R>: CellState<R>>, R: ParticleReal>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
    ) -> UpdateSums {
        let parameters = &call.parameters.precise::<R>();
        let (masses, per_mass) = (self.pool.columns.masses, call.quanta_per_mass);
        let columns = call.columns;
        let of_patch = |HostPages {
                            index,
                            level,
                            pages,
                            ..
                        }: HostPages| {
            let mut sums = UpdateSums::default();
            for (page, count) in pages.columns::<R>() {
                for n in 0..count {
                    let particle = CalledParticle::read::<M>((level, index), columns, &page, n);
                    let (new, count) = numbers(&particle.call::<M>(parameters));
                    let [before, mass] = [particle.numbers[0], new[0]].map(Real::to_f64);
                    let is_sound = is_mass_sound(mass, before, masses, per_mass)
                        && new[1..count].iter().all(|number| number.is_finite());
                    if !is_sound {
                        sums.invalid = sums.invalid.max(!particle.id);
                        continue;
                    }
                    let quanta = [before, mass].map(|mass| quanta_of(mass, per_mass));
                    sums = sums.with(UpdateSums {
                        gained: quanta[1].wrapping_sub(quanta[0]),
                        grown: quanta[1].saturating_sub(quanta[0]),
                        changed: u64::from(mass != before),
                        invalid: 0,
                    });
                    for (&column, &number) in columns.columns[..count].iter().zip(&new) {
                        if let Ok(column) = usize::try_from(column) {
                            page.numbers[PAGE * column + n] = number;
                        }
                    }
                }
            }
            sums
        };
        let sums = self.on_pages(call, at, of_patch);
        sums.into_iter()
            .fold(UpdateSums::default(), UpdateSums::with)
    }

    /// Reduces the results of a function for the particles of a list.
    pub(super) fn reduce_on_host<M: ParticleFn<Result<R> = R>, R: ParticleReal>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
        by: FunctionReduction,
    ) -> u64 {
        let (parameters, columns) = (&call.parameters.precise::<R>(), call.columns);
        let of_patch = |HostPages {
                            index,
                            level,
                            pages,
                            ..
                        }: HostPages| {
            let mut all = 0;
            for (page, count) in pages.read_columns::<R>() {
                for n in 0..count {
                    let particle = CalledParticle::read::<M>((level, index), columns, &page, n);
                    let value = particle.call::<M>(parameters).to_f64();
                    all = by.joined(all, reduced(value, by.what, by.scale));
                }
            }
            all
        };
        let found = self.on_pages(call, at, of_patch);
        found.into_iter().fold(0, |a, b| by.joined(a, b))
    }

    /// Returns what `tell` makes of the particles of a list and the results of a function, without `None`, in Hilbert order of the
    /// patches.
    pub(super) fn told_on_host<M: ParticleFn, R: ParticleReal, T: Send>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
        tell: impl Fn(&CalledParticle<R>, M::Result<R>) -> Option<T> + Sync,
    ) -> Vec<ToldParticle<T>> {
        let (parameters, columns) = (&call.parameters.precise::<R>(), call.columns);
        let of_patch = |patch: HostPages| {
            let (mut told, place) = (Vec::new(), (patch.level, patch.index));
            for (k, (page, count)) in patch.pages.read_columns::<R>().enumerate() {
                for n in 0..count {
                    let particle = CalledParticle::read::<M>(place, columns, &page, n);
                    let what = tell(&particle, particle.call::<M>(parameters));
                    told.extend(what.map(|what| ToldParticle {
                        row: patch.row,
                        n: PAGE * k + n,
                        what,
                    }));
                }
            }
            told
        };
        let told = self.on_pages(call, at, of_patch);
        told.into_iter().flatten().collect()
    }
}
