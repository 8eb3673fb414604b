//! Conditions of the potential at the faces of the domain.

use super::config::GravityBoundary;
use bevy_ecs::prelude::*;
use nestar_engine::mesh::Topology;
use nestar_engine::step::config::BoundaryKind;
use nestar_engine::{Engine, Error};

/// Condition of the potential at a face of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaceCondition {
    /// The domain continues at the opposite face.
    Periodic,
    /// Matter and potential continue as mirror images.
    Mirrored,
    /// Vacuum.
    Isolated,
}

/// Conditions of the potential at all faces, lower and upper, by axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Resource)]
pub(super) struct Surroundings([[FaceCondition; 2]; 3]);

impl Surroundings {
    /// A domain that is periodic along all axes, with no values around it.
    pub const PERIODIC: Self = Self([[FaceCondition::Periodic; 2]; 3]);

    /// Returns the conditions that a deck asks for.
    ///
    /// # Errors
    /// The key `gravity.boundary` does not fit `domain.boundary`, or the solver does not support it.
    pub fn of(sim: &Engine, wanted: GravityBoundary) -> Result<Self, Error> {
        let periodic = sim.world.resource::<Topology>().domain.periodic;
        let refused = |why: &str| Err(sim.deck.error_at("gravity.boundary", why))?;
        match wanted {
            GravityBoundary::Periodic if periodic.contains(&false) => {
                refused("\"periodic\" needs domain.boundary = \"periodic\"")
            }
            GravityBoundary::Isolated if periodic.contains(&true) => {
                refused("\"isolated\" needs faces of the domain that are not periodic")
            }
            GravityBoundary::Periodic => Ok(Self::PERIODIC),
            GravityBoundary::Isolated => Ok(Self([[FaceCondition::Isolated; 2]; 3])),
            GravityBoundary::Auto => {
                let found = Self::of_domain(sim);
                let open = |axis: usize| found.0[axis].contains(&FaceCondition::Isolated);
                if found.is_closed() || (0..3).all(open) {
                    return Ok(found);
                }
                refused(
                    "`gravity.boundary` = \"auto\" does not fit `domain.boundary`: a domain that is periodic along some axes only, or reflecting on both \
                     sides, cannot have open faces along others; make each axis periodic or reflecting on both sides, or give each an open face",
                )
            }
        }
    }

    /// Returns the conditions that correspond to the boundary conditions of the domain.
    fn of_domain(sim: &Engine) -> Self {
        Self(sim.settings.domain.boundary.faces().map(|faces| {
            faces.clone().map(|kind| match kind {
                BoundaryKind::Periodic => FaceCondition::Periodic,
                BoundaryKind::Reflecting => FaceCondition::Mirrored,
                _ => FaceCondition::Isolated,
            })
        }))
    }

    /// Returns `true` if no face is isolated. Poisson's equation then determines the potential up to a constant, for a
    /// source without mean.
    pub fn is_closed(&self) -> bool {
        let mut faces = self.0.iter().flatten();
        faces.all(|&face| face != FaceCondition::Isolated)
    }

    /// Returns the conditions of the lower and the upper face by axis.
    pub fn faces(&self) -> [[FaceCondition; 2]; 3] {
        self.0
    }

    /// Returns for each face whether it is mirrored.
    pub fn mirrored(&self) -> [[bool; 2]; 3] {
        self.0
            .map(|faces| faces.map(|face| face == FaceCondition::Mirrored))
    }

    /// Returns the bit mask of mirrored faces, in the order x-, x+, y-, y+, z-, z+.
    pub fn mirrored_faces(&self) -> i32 {
        let faces = self.0.iter().flatten().enumerate();
        let bit = |(n, &face)| i32::from(face == FaceCondition::Mirrored) << n;
        faces.map(bit).sum()
    }

    /// Returns the number of cells of the box of the root level's transforms, in units of those of the domain.
    pub fn box_size(&self) -> f64 {
        let of_axis = |faces: &[FaceCondition; 2]| {
            let doubled = |kind| if faces.contains(&kind) { 2.0 } else { 1.0 };
            doubled(FaceCondition::Mirrored) * doubled(FaceCondition::Isolated)
        };
        self.0.iter().map(of_axis).product()
    }
}
