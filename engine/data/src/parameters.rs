//! Parameters of functions, which are constant or follow the simulation time.

use std::sync::Arc;

/// Parameters of a function of cells: constant, or a function of the numbers that follow the simulation time
/// ([`Levels::numbers_at`](nestar_engine_mesh::Levels::numbers_at)).
///
/// The host computes parameters that follow the time for each call, in double precision. Tables that they share are sent to a
/// device once, and nothing is compiled again.
pub struct Parameters<P>(Kind<P>);

enum Kind<P> {
    Constant(Arc<P>),
    Following(Arc<dyn Fn([f64; 2]) -> P + Send + Sync>),
}

impl<P> Clone for Parameters<P> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Kind::Constant(constant) => Kind::Constant(constant.clone()),
            Kind::Following(of) => Kind::Following(of.clone()),
        })
    }
}

impl<P> From<P> for Parameters<P> {
    fn from(constant: P) -> Self {
        Self(Kind::Constant(Arc::new(constant)))
    }
}

impl<P> Parameters<P> {
    /// Creates parameters that follow the simulation time. Tables in them should be shared by all results.
    #[must_use]
    pub fn following(of: impl Fn([f64; 2]) -> P + Send + Sync + 'static) -> Self {
        Self(Kind::Following(Arc::new(of)))
    }

    /// Returns parameters that `of` derives from these.
    #[must_use]
    pub fn map<Q>(&self, of: impl Fn(&P) -> Q + Send + Sync + 'static) -> Parameters<Q>
    where
        P: 'static,
    {
        match &self.0 {
            Kind::Constant(constant) => of(constant).into(),
            Kind::Following(own) => {
                let own = own.clone();
                Parameters::following(move |numbers| of(&own(numbers)))
            }
        }
    }

    /// Returns the parameters for these numbers of the clock.
    #[must_use]
    pub fn at(&self, numbers: [f64; 2]) -> Arc<P> {
        match &self.0 {
            Kind::Constant(constant) => constant.clone(),
            Kind::Following(of) => Arc::new(of(numbers)),
        }
    }
}
