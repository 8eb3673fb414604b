//! The potential around an isolated domain, which the solver of the root level knows: state of the run beside the fields.

use super::around::{each_place, fill, length, lines};
use super::kernels::Kernels;
use super::root::{Expansion, Grown};
use crate::fields::Potential;
use bevy_ecs::prelude::*;
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::device::Kept;
use nestar_engine::field::{Element, Field, Precision};
use nestar_engine::in_precision;
use nestar_engine::ranks::Ranks;
use nestar_engine::step::PluginState;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::exterior::{Exterior, table_length};
use rayon::prelude::*;
use std::any::Any;
use std::marker::PhantomData;

/// The potential around an isolated domain before and after the latest step of the root level, and whether it has been solved for.
#[derive(Resource)]
pub struct Beyond<P: Field = Potential> {
    /// Whether the potential is known: a snapshot without it is solved anew.
    pub(super) solved: bool,
    /// Cells of the root level, if the domain is isolated.
    cells: Option<[i32; 3]>,
    /// `[face][layer][b][a]` after the step, from three cells below a lower face and two below an upper one, and three cells around faces.
    potential: Vec<f64>,
    precision: Precision,
    /// Whether the potential was solved for since [`Beyond::keep`].
    changed: bool,
    /// [`Tables`] of the precision.
    tables: Box<dyn Any + Send + Sync>,
    /// Whose potential it is.
    of: PhantomData<fn() -> P>,
}

/// What kernels read at two times.
struct Tables<R> {
    older: Table<R>,
    newer: Table<R>,
    /// As it was before the latest solve.
    kept: Table<R>,
}

/// Values, then coefficients of splines.
struct Table<R> {
    host: Vec<R>,
    device: Kept<R>,
}

impl<R: Element> Table<R> {
    fn of(cells: [i32; 3]) -> Self {
        Self {
            host: vec![R::lit(0.0); 2 * table_length(cells)],
            device: Kept::default(),
        }
    }
}

impl<P: Field> Beyond<P> {
    /// Around a domain of so many root cells, or of none if it is periodic.
    pub(super) fn new(cells: Option<[i32; 3]>, precision: Precision) -> Self {
        let around = cells.unwrap_or_default();
        let tables: Box<dyn Any + Send + Sync> = in_precision!(precision, R => Box::new(Tables::<R> {
            older: Table::of(around),
            newer: Table::of(around),
            kept: Table::of(around),
        }));
        Self {
            solved: false,
            cells,
            potential: vec![0.0; cells.map_or(0, length)],
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
    pub(super) fn on_device(&self, weight: f64) -> device::Exterior<Number> {
        let [older, newer, _] = self.addresses();
        let older = if weight == 1.0 { newer } else { older };
        self.device_between([older, newer], weight)
    }

    /// As [`Beyond::kept_on_host`] on a device.
    pub(super) fn kept_on_device(&self) -> device::Exterior<Number> {
        let [_, newer, kept] = self.addresses();
        let table = if self.changed { kept } else { newer };
        self.device_between([table, table], 1.0)
    }

    fn device_between(&self, [older, newer]: [u64; 2], weight: f64) -> device::Exterior<Number> {
        let cells = self.cells.unwrap_or_default();
        device::Exterior {
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
        in_precision!(self.precision, R => {
            let Tables { older, newer, .. } = self.tables_mut::<R>();
            std::mem::swap(older, newer);
        });
    }

    /// Takes over what the solver has found around this rank's patches, and from the other ranks. All ranks call it.
    pub(super) fn renew(
        &mut self,
        ranks: &Ranks,
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
        let all = ranks
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        for bytes in all {
            let numbers: Vec<f64> = bytemuck::pod_collect_to_vec(&bytes);
            let mut numbers = numbers.into_iter();
            while let Some(x) = numbers.next() {
                let mut next = || numbers.next().unwrap_or(f64::NAN);
                let patch = [x, next(), next()].map(|n| n as i32);
                each_place(cells, patch, |place, _| self.potential[place] = next());
            }
        }
        self.take_over(kernels)
    }

    /// Takes over what an expansion says, in which cells are so wide as twice `half`: each rank works on a part. All ranks call it.
    pub(super) fn expand(
        &mut self,
        ranks: &Ranks,
        (expansion, half): (&Expansion, [f64; 3]),
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        let Some(cells) = self.cells else {
            return Ok(());
        };
        let lines = lines(cells);
        let first = |rank: usize| lines.len() * rank / ranks.size();
        let own = &lines[first(ranks.rank())..first(ranks.rank() + 1)];
        let found = own
            .par_iter()
            .flat_map_iter(|line| line.values(cells, half, expansion));
        let own: Vec<f64> = found.collect();
        self.potential = match ranks.are_alone() {
            true => own,
            false => {
                let own = bytemuck::cast_slice(&own);
                let all = ranks.communicator().all_gather(own)?;
                let parts = all.iter();
                parts
                    .flat_map(|bytes| bytemuck::pod_collect_to_vec(bytes))
                    .collect()
            }
        };
        self.take_over(kernels)
    }

    /// Takes over what is beyond the domain for another potential.
    pub(super) fn take<Q: Field>(
        &mut self,
        other: &Beyond<Q>,
        kernels: Option<&Kernels>,
    ) -> Result<(), Error> {
        self.potential.clone_from(&other.potential);
        self.take_over(kernels)
    }

    /// The potential has changed: what was new is kept.
    fn take_over(&mut self, kernels: Option<&Kernels>) -> Result<(), Error> {
        in_precision!(self.precision, R => {
            let Tables { newer, kept, .. } = self.tables_mut::<R>();
            std::mem::swap(newer, kept);
        });
        self.changed = true;
        self.tabulate(kernels)
    }

    /// Makes the newer tables of the potential.
    pub(super) fn tabulate(&mut self, kernels: Option<&Kernels>) -> Result<(), Error> {
        let Some(cells) = self.cells else {
            return Ok(());
        };
        let potential = std::mem::take(&mut self.potential);
        let made: Result<(), Error> = in_precision!(self.precision, R => {
            let Table { host, device } = &mut self.tables_mut::<R>().newer;
            fill(cells, &potential, host);
            match kernels {
                Some(kernels) => device.set(kernels.device(), host).map_err(Error::from),
                None => Ok(()),
            }
        });
        self.potential = potential;
        made
    }
}

impl<P: Field> PluginState for Beyond<P> {
    const VERSION: u32 = 2;

    fn save(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.solved)];
        bytes.extend(self.potential.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (solved, potential) = bytes.split_first().ok_or("there is nothing")?;
        let (potential, rest) = potential.as_chunks();
        if potential.len() != self.potential.len() || !rest.is_empty() {
            return Err(format!(
                "the potential around the domain has {} values, {} are wanted",
                potential.len(),
                self.potential.len()
            ));
        }
        self.solved = *solved == 1;
        self.potential = potential.iter().copied().map(f64::from_le_bytes).collect();
        Ok(())
    }
}
