//! Collects errors, to report them together.
use syn::{Error, Result};

/// The collected errors.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// Adds an error.
    pub fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value, or a default after recording the error.
    pub fn record<T: Default>(&mut self, result: Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.add(error);
            T::default()
        })
    }

    /// Returns the value, unless there were errors.
    pub fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}
