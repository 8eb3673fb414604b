//! Mesh operations: ghost gathering, prolongation, restriction.
