//! Errors that are reported together.
use syn::{Error, Result};

/// The errors met so far.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// Adds one.
    pub fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The value, or nothing of it and the error kept.
    pub fn kept<T: Default>(&mut self, result: Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.add(error);
            T::default()
        })
    }

    /// The value, unless there were errors.
    pub fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
