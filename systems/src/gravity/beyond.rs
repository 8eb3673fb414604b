//! The potential around an isolated domain, which the solver of the root level knows: state of the run beside the fields.

use super::kernels::Kernels;
use super::root::{Expansion, Grown};
use bevy_ecs::prelude::*;
use nestar_device::math::sum3;
use nestar_device::{Address, Number};
use nestar_engine::Error;
use nestar_engine::device::Kept;
use nestar_engine::field::{Element, Precision};
use nestar_engine::in_precision;
use nestar_engine::ranks::Ranks;
use nestar_engine::step::PluginState;
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::device;
use nestar_kernels::multigrid::exterior::{AROUND_FACE, Exterior, LAYERS, table_length};
use nestar_kernels::multigrid::moments::coordinate;
use nestar_kernels::multigrid::stencil::tabled;
use rayon::prelude::*;
use std::any::Any;

/// Layers of cells around the domain that are asked of the solver: one more than the tables hold, for the coefficients of splines.
pub(super) const MARGIN: usize = AROUND_FACE + 1;

/// Layers along the normal of a face of which the tables are made: as many as they have, and one more on either side.
const DEEP: i32 = LAYERS as i32 + 2;

/// The potential around an isolated domain before and after the latest step of the root level, and whether it has been solved for.
#[derive(Resource)]
pub struct Beyond {
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

impl Beyond {
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
        let all = ranks
            .communicator()
            .all_gather(bytemuck::cast_slice(&own))?;
        self.potential = all
            .iter()
            .flat_map(|bytes| bytemuck::pod_collect_to_vec(bytes))
            .collect();
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

impl PluginState for Beyond {
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

/// Cells along the axes beside a face's, with those around it.
fn across(cells: [i32; 3], face: usize) -> [i32; 2] {
    [1, 2].map(|n| cells[(face / 2 + n) % 3] + 2 * MARGIN as i32)
}

/// Values of a face.
fn area(cells: [i32; 3], face: usize) -> usize {
    let [a, b] = across(cells, face);
    (DEEP * a * b) as usize
}

/// Values around a domain of so many root cells.
fn length(cells: [i32; 3]) -> usize {
    (0..6).map(|face| area(cells, face)).sum()
}

/// The first layer of a face.
fn first_layer(cells: [i32; 3], face: usize) -> i32 {
    match face % 2 {
        0 => -(MARGIN as i32),
        _ => cells[face / 2] - 2,
    }
}

/// Values of a face that stand side by side.
struct Line {
    face: usize,
    /// The cell of the first one.
    first: [i32; 3],
}

/// All lines, in the order of the values.
fn lines(cells: [i32; 3]) -> Vec<Line> {
    let of_face = |face: usize| {
        let (axis, [_, high]) = (face / 2, across(cells, face));
        let line = move |layer: i32, j: i32| {
            let mut first = [-(MARGIN as i32); 3];
            first[axis] = first_layer(cells, face) + layer;
            first[(axis + 2) % 3] += j;
            Line { face, first }
        };
        (0..DEEP).flat_map(move |layer| (0..high).map(move |j| line(layer, j)))
    };
    (0..6).flat_map(of_face).collect()
}

impl Line {
    fn values(&self, cells: [i32; 3], half: [f64; 3], expansion: &Expansion) -> Vec<f64> {
        let along = (self.face / 2 + 1) % 3;
        expansion.along(across(cells, self.face)[0] as usize, |n| {
            std::array::from_fn(|axis| {
                let step = if axis == along { n as i32 } else { 0 };
                coordinate(self.first[axis] + step, cells[axis], half[axis])
            })
        })
    }
}

/// Calls `visit` with the places of the values in and beside a root patch, and their cells counted from the patch's first.
fn each_place(cells: [i32; 3], patch: [i32; 3], mut visit: impl FnMut(usize, [i32; 3])) {
    let (size, margin) = (PATCH as i32, MARGIN as i32);
    let ends = |axis: usize| [patch[axis] == 0, (patch[axis] + 1) * size == cells[axis]];
    let range = |axis: usize| {
        let [first, last] = ends(axis).map(|ends| if ends { margin } else { 0 });
        -first..size + last
    };
    let mut begin = 0;
    for face in 0..6 {
        let (axis, [wide, high]) = (face / 2, across(cells, face));
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        for layer in (0..DEEP).filter(|_| ends(axis)[face % 2]) {
            for (j, i) in range(b).flat_map(|j| range(a).map(move |i| (j, i))) {
                let mut cell = [0; 3];
                cell[axis] = first_layer(cells, face) + layer - patch[axis] * size;
                (cell[a], cell[b]) = (i, j);
                let (i, j) = (i + patch[a] * size + margin, j + patch[b] * size + margin);
                visit(begin + ((layer * high + j) * wide + i) as usize, cell);
            }
        }
        begin += area(cells, face);
    }
}

/// Fills the tables of values and of coefficients.
fn fill<R: Element>(cells: [i32; 3], potential: &[f64], table: &mut [R]) {
    let coefficients = table.len() / 2;
    let mut begin = 0;
    for face in 0..6 {
        let (axis, [wide, high]) = (face / 2, across(cells, face));
        let steps = [wide * high, 1, wide].map(|n| n as usize);
        for layer in 1..DEEP - 1 {
            for (j, i) in (1..high - 1).flat_map(|j| (1..wide - 1).map(move |i| (j, i))) {
                let n = begin + ((layer * high + j) * wide + i) as usize;
                let value = potential[n];
                let bends =
                    steps.map(|step| (potential[n - step] - value) + (potential[n + step] - value));
                let mut at = [0; 3];
                at[axis] = first_layer(cells, face) + layer;
                at[(axis + 1) % 3] = i - MARGIN as i32;
                at[(axis + 2) % 3] = j - MARGIN as i32;
                let place = tabled(&cells, face as i32, at) as usize;
                table[place] = R::lit(value);
                let bend = sum3(bends[0], bends[1], bends[2]);
                table[coefficients + place] = R::lit(value - 0.125 * bend);
            }
        }
        begin += area(cells, face);
    }
}
