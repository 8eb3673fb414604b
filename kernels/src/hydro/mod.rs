//! Ideal-gas hydrodynamics.
