//! Physics of Nestar: one folder per plugin, each made of systems that call kernels.
//!
//! Plugins do not import each other. They share [`fields`] (fields and resources), [`order`] (the order of a step),
//! [`units`] (code units) and [`register`] (registration of cell functions).

pub mod acceleration;
pub mod chemistry;
pub mod cooling;
pub mod declare;
pub mod external;
pub mod fields;
pub mod gravity;
pub mod hydro;
pub mod order;
pub mod particles;
pub mod refinement;
pub mod register;
pub mod selection;
pub mod sources;
pub mod spectral;
pub mod spheres;
pub mod subcycling;
pub mod time;
pub mod units;
