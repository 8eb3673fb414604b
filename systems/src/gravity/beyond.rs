//! The potential around an isolated domain, which the solver of the root level knows: state of the run beside the fields.

use super::around::{each_place, expand, fill, length, part_of};
use super::kernels::Kernels;
use super::root_fft::{Expansion, Grown};
use crate::fields::Potential;
use bevy_ecs::prelude::*;
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::comm::{Comm, Ranks};
use nestar_engine::data::{Element, Field, Precision};
use nestar_engine::device::ReusableBuffer;
use nestar_engine::in_precision;
use nestar_engine::step::PluginState;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::exterior::{Exterior, table_length};
use std::any::Any;
use std::marker::PhantomData;

/// The potential around an isolated domain before and after the latest step of the root level, and whether it has been solved for.
#[derive(Resource)]
pub struct ExteriorPotential<P: Field = Potential> {
    /// Whether the potential is known: a snapshot without it is solved anew.
    pub(super) solved: bool,
    /// Cells of the root level, if the domain is isolated.
    cells: Option<[i32; 3]>,
    /// After the step.
    potential: Around,
    /// Whether the newer tables are of that.
    stands: bool,
    precision: Precision,
    /// Whether the potential was solved for since [`Beyond::keep`].
    changed: bool,
    /// [`Tables`] of the precision.
    tables: Box<dyn Any + Send + Sync>,
    /// Whose potential it is.
    of: PhantomData<fn() -> P>,
}

/// What is known of the potential around the domain.
#[derive(Clone, Debug)]
enum Around {
    /// `[face][layer][b][a]`, from three cells below a lower face and two below an upper one, and three cells around faces.
    Values(Vec<f64>),
    /// What gives these.
    Expansion(Expansion),
}

/// What kernels read at two times.
struct Tables<R> {
    older: Table<R>,
    newer: Table<R>,
    /// As it was before the latest solve.
    kept: Table<R>,
}

/// Values, then coefficients of splines: on the device if there is one, else on the host.
struct Table<R> {
    host: Vec<R>,
    device: ReusableBuffer<R>,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            host: Vec::new(),
            device: ReusableBuffer::default(),
        }
    }
}

impl<P: Field> ExteriorPotential<P> {
    /// Around a domain of so many root cells, or of none if it is periodic.
    pub(super) fn new(cells: Option<[i32; 3]>, precision: Precision) -> Self {
        let tables: Box<dyn Any + Send + Sync> = in_precision!(precision, R => Box::new(Tables::<R> {
            older: Table::default(),
            newer: Table::default(),
            kept: Table::default(),
        }));
        Self {
            solved: false,
            cells,
            potential: Around::Values(Vec::new()),
            stands: false,
            precision,
            changed: false,
            tables,
            of: PhantomData,
        }
    }

    fn tables<R: Element>(&self) -> &Tables<R> {
        self.tables.downcast_ref().expect("the field's precision")
    }

    fn tables_mut<R: Element>(&mut self) -> &mut Tables<R> {
        self.tables.downcast_mut().expect("the field's precision")
    }

    /// What is beyond the domain on the host, by the weight of the newer state of the root level.
    ///
    /// # Panics
    /// If the potential has the other precision.
    #[must_use]
    pub fn on_host<R: Element>(&self, weight: f64) -> Exterior<'_, R> {
        let Tables { older, newer, .. } = self.tables::<R>();
        // nothing is lost to round-off where the newer one counts alone
        let older = if weight == 1.0 { newer } else { older };
        self.host_between([older, newer], weight)
    }

    /// What was there at [`Beyond::keep`].
    pub(super) fn kept_on_host<R: Element>(&self) -> Exterior<'_, R> {
        let Tables { newer, kept, .. } = self.tables::<R>();
        let table = if self.changed { kept } else { newer };
        self.host_between([table, table], 1.0)
    }

    fn host_between<'a, R: Element>(
        &self,
        [older, newer]: [&'a Table<R>; 2],
        weight: f64,
    ) -> Exterior<'a, R> {
        Exterior {
            older: &older.host,
            newer: &newer.host,
            weight: R::lit(weight),
            cells: self.cells.unwrap_or_default(),
        }
    }

    /// As [`Beyond::on_host`] on a device.
    pub(super) fn on_device(&self, weight: f64) -> device::ExteriorParameters<Number> {
        let [older, newer, _] = self.addresses();
        let older = if weight == 1.0 { newer } else { older };
        self.device_between([older, newer], weight)
    }

    /// As [`Beyond::kept_on_host`] on a device.
    pub(super) fn kept_on_device(&self) -> device::ExteriorParameters<Number> {
        let [_, newer, kept] = self.addresses();
        let table = if self.changed { kept } else { newer };
        self.device_between([table, table], 1.0)
    }

    fn device_between(
        &self,
        [older, newer]: [u64; 2],
        weight: f64,
    ) -> device::ExteriorParameters<Number> {
        let cells = self.cells.unwrap_or_default();
        device::ExteriorParameters {
            older: Address::from(older),
            newer: Address::from(newer),
            weight,
            cells,
            coefficients: table_length(cells) as i32,
        }
    }

    fn addresses(&self) -> [u64; 3] {
        in_precision!(self.precision, R => {
            let Tables { older, newer, kept } = self.tables::<R>();
            [older, newer, kept].map(|table| table.device.address())
        })
    }

    /// From now on what is there counts as what was there before the next solve.
    pub(super) fn keep(&mut self) {
        self.changed = false;
    }

    /// A step of the root level stands: what was new is old.
    pub(super) fn commit(&mut self) {
        self.stands = false;
        in_precision!(self.precision, R => {
            let Tables { older, newer, .. } = self.tables_mut::<R>();
            std::mem::swap(older, newer);
        });
    }

    /// Takes over what the solver has found around this rank's patches, and from the other ranks. All ranks call it.
    pub(super) fn renew(
        &mut self,
        others: &Comm,
        (patches, grown): (&[[i32; 3]], &[Grown]),
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        let Some(cells) = self.cells else {
            return Ok(());
        };
        let mut own = Vec::new();
        for grown in grown {
            let patch = patches[grown.patch];
            own.extend(patch.map(f64::from));
            each_place(cells, patch, |_, cell| {
                own.push(grown.at(cell).unwrap_or(f64::NAN));
            });
        }
        let all = others
            .ranks()
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        let mut potential = vec![0.0; length(cells)];
        for bytes in all {
            let numbers: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
            let mut numbers = numbers.into_iter();
            while let Some(x) = numbers.next() {
                let mut next = || numbers.next().unwrap_or(f64::NAN);
                let patch = [x, next(), next()].map(|n| n as i32);
                each_place(cells, patch, |place, _| potential[place] = next());
            }
        }
        self.take_over(others, Around::Values(potential), kernels)
    }

    /// Takes over what an expansion says; whether it is news. All ranks call it.
    pub(super) fn expand(
        &mut self,
        others: &Comm,
        expansion: Expansion,
        kernels: Option<&Kernels>,
    ) -> Result<bool, Error> {
        let same =
            |known: &Around| matches!(known, Around::Expansion(known) if *known == expansion);
        if self.stands && same(&self.potential) {
            return Ok(false);
        }
        self.take_over(others, Around::Expansion(expansion), kernels)?;
        Ok(true)
    }

    /// Takes over what is beyond the domain for another potential. All ranks call it.
    pub(super) fn take<Q: Field>(
        &mut self,
        others: &Comm,
        other: &ExteriorPotential<Q>,
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        self.take_over(others, other.potential.clone(), kernels)
    }

    /// The potential has changed: what was new is kept.
    fn take_over(
        &mut self,
        others: &Comm,
        potential: Around,
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        in_precision!(self.precision, R => {
            let Tables { newer, kept, .. } = self.tables_mut::<R>();
            std::mem::swap(newer, kept);
        });
        self.potential = potential;
        self.changed = true;
        self.tabulate(others, kernels)
    }

    /// Makes the newer tables of the potential, on the device if there is one. All ranks call it.
    pub(super) fn tabulate(
        &mut self,
        others: &Comm,
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        let Some(cells) = self.cells else {
            return Ok(());
        };
        let potential = std::mem::replace(&mut self.potential, Around::Values(Vec::new()));
        let made: Result<(), Error> = in_precision!(self.precision, R => {
            let Table { host, device } = &mut self.tables_mut::<R>().newer;
            match (kernels, &potential) {
                (Some(kernels), Around::Values(values)) => kernels.root.tabulate(cells, values, device),
                (Some(kernels), Around::Expansion(expansion)) => kernels.root.expand((cells, others), expansion, device),
                (None, Around::Values(values)) => {
                    fill(cells, values, host);
                    Ok(())
                }
                (None, Around::Expansion(expansion)) => {
                    values(cells, expansion, others.ranks()).map(|values| fill(cells, &values, host))
                }
            }
        });
        self.potential = potential;
        self.stands = made.is_ok();
        made
    }
}

/// The values of an expansion, of which each rank works out a part.
fn values(cells: [i32; 3], expansion: &Expansion, ranks: &Ranks) -> Result<Vec<f64>, Error> {
    let part = part_of(length(cells), ranks.rank(), ranks.size());
    let mut own = vec![0.0; part.len()];
    expand(cells, expansion, part.start, &mut own);
    if ranks.is_single() {
        return Ok(own);
    }
    let own = bytemuck::cast_slice(&own);
    let all = ranks.communicator().all_gather(own)?;
    let parts = all.iter();
    let numbers = parts.flat_map(|bytes| bytemuck::pod_collect_to_vec(bytes));
    Ok(numbers.collect())
}

impl<P: Field> PluginState for ExteriorPotential<P> {
    const VERSION: u32 = 3;

    fn save(&self) -> Vec<u8> {
        let (kind, numbers) = match &self.potential {
            Around::Values(values) => (0, values.clone()),
            Around::Expansion(expansion) => (1, expansion.to_numbers()),
        };
        let mut bytes = vec![u8::from(self.solved), kind];
        bytes.extend(numbers.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let ([solved, kind], numbers) = bytes.split_first_chunk().ok_or("there is nothing")?;
        let (numbers, rest) = numbers.as_chunks();
        let numbers: Vec<f64> = numbers.iter().copied().map(f64::from_le_bytes).collect();
        let wanted = self.cells.map_or(0, length);
        self.potential = match kind {
            0 if rest.is_empty() && [0, wanted].contains(&numbers.len()) => Around::Values(numbers),
            1 if rest.is_empty() => {
                let expansion = Expansion::of_numbers(&numbers);
                Around::Expansion(expansion.ok_or("the expansion around the domain is damaged")?)
            }
            _ => {
                return Err(format!(
                    "the potential around the domain has {} values, {wanted} are wanted",
                    numbers.len()
                ));
            }
        };
        // of a periodic domain nothing is known around it
        let is_known = !matches!(&self.potential, Around::Values(values) if values.len() < wanted);
        self.solved = *solved == 1 && is_known;
        Ok(())
    }
}
