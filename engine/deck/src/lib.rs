//! Nestar.
