//! A point explosion (Sedov 1959).

use crate::{Parameters, Setting};
use nestar_deck::{DeckError, deck};
use nestar_device::math::sum3;
use nestar_systems::hydro::{InitialState, Injection, Primitive, PrimitiveColumns};

/// A point explosion: energy in a small sphere of a uniform medium at rest.
#[deck]
pub struct Sedov {
    /// Energy of the explosion, including its mirror images if the centre lies on reflecting faces.
    #[key(default = 1.0, unit = "mass*length**2/time**2", above = 0.0)]
    pub energy: f64,
    /// Density of the medium.
    #[key(default = 1.0, unit = "mass/length**3", above = 0.0)]
    pub density: f64,
    /// Pressure of the medium.
    #[key(default = 1e-5, unit = "mass/(length*time**2)", above = 0.0)]
    pub pressure: f64,
    /// Radius of the sphere that contains the energy; 0: 3.5 cells of the finest level.
    #[key(default = 0.0, unit = "length", min = 0.0)]
    pub radius: f64,
    /// Centre of the explosion; absent: the middle of the domain.
    #[key(unit = "length")]
    pub centre: Option<[f64; 3]>,
}

impl Parameters for Sedov {
    fn initial(self, setting: &Setting) -> Result<Box<dyn InitialState>, DeckError> {
        let centre = setting.centre(self.centre);
        let finest = setting
            .root_width
            .map(|w| w / f64::from(1u32 << setting.max_level));
        let radius = match self.radius {
            r if r > 0.0 => r,
            _ => 3.5 * finest.iter().copied().fold(0.0, f64::max),
        };
        let inside = energy_density(&self, setting, centre, radius, finest);
        Ok(Box::new(Explosion {
            fraction: 1.0 / f64::from(1u32 << mirrors(setting, centre)),
            heated: self.pressure.max((setting.model.gamma - 1.0) * inside),
            sedov: self,
            centre,
            radius,
        }))
    }
}

/// The initial state.
struct Explosion {
    sedov: Sedov,
    centre: [f64; 3],
    radius: f64,
    /// Fraction of the energy inside the domain: 1/2 per reflecting face through the centre.
    fraction: f64,
    /// Pressure in the sphere.
    heated: f64,
}

/// Returns the number of reflecting faces that contain the centre.
fn mirrors(setting: &Setting, centre: [f64; 3]) -> usize {
    let faces = [0, 1, 2].map(|a| [0, 1].map(|side| (a, side)));
    let on = |&&(a, side): &&(usize, usize)| {
        setting.mirrors[a][side] && setting.edges[side][a] == centre[a]
    };
    faces.as_flattened().iter().filter(on).count()
}

/// Returns `true` if `x` lies in the sphere.
fn within(x: [f64; 3], centre: [f64; 3], radius: f64) -> bool {
    let d = [x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]];
    sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]) < radius * radius
}

impl InitialState for Explosion {
    fn fill(&self, columns: &mut PrimitiveColumns) {
        for n in 0..columns.len() {
            columns.states[n] = Primitive {
                density: self.sedov.density,
                velocity: [0.0; 3],
                pressure: match within(columns.point(n), self.centre, self.radius) {
                    true => self.heated,
                    false => self.sedov.pressure,
                },
            };
        }
    }

    fn scalars_given(&self) -> Option<Vec<usize>> {
        Some(Vec::new())
    }

    fn injection(&self) -> Option<Injection> {
        let (centre, radius) = (self.centre, self.radius);
        Some(Injection {
            energy: self.fraction * self.sedov.energy,
            key: "sedov.energy",
            within: Box::new(move |x| within(x, centre, radius)),
            remedy: format!(
                "the sphere of radius {radius:e} around {centre:?} must lie in the domain (its centre may lie on reflecting faces) and be \
                 covered by cells of the finest level, mesh.max_level: add a [[mesh.refine]] with criterion = \"sphere\", the same centre and a radius \
                 larger by a root cell, or lower mesh.max_level; the energy must also exceed the thermal energy of sedov.pressure in the sphere"
            ),
        })
    }
}

/// Returns the energy per volume: the energy divided by the total volume of the finest cells with centres in the sphere.
/// The energy on the mesh is then exact.
fn energy_density(
    p: &Sedov,
    setting: &Setting,
    centre: [f64; 3],
    radius: f64,
    width: [f64; 3],
) -> f64 {
    let range: [(i64, i64); 3] = std::array::from_fn(|a| {
        let cell = |x: f64| ((x - setting.edges[0][a]) / width[a]).floor() as i64;
        (cell(centre[a] - radius), cell(centre[a] + radius))
    });
    let offset = |a: usize, i: i64| setting.edges[0][a] + (i as f64 + 0.5) * width[a] - centre[a];
    let mut cells = 0u64;
    for k in range[2].0..=range[2].1 {
        for j in range[1].0..=range[1].1 {
            for i in range[0].0..=range[0].1 {
                let d = [offset(0, i), offset(1, j), offset(2, k)];
                cells += u64::from(sum3(d[0] * d[0], d[1] * d[1], d[2] * d[2]) < radius * radius);
            }
        }
    }
    p.energy / (cells.max(1) as f64 * width[0] * width[1] * width[2])
}
