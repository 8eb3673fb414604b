//! Device functions for the tests, each from a flat array to a flat array.
#[allow(
    non_snake_case,
    clippy::all,
    reason = "what nobody should write is attacked too"
)]
pub mod language;
pub mod mathematics;
pub mod random;
pub mod syntax;

use nestar_device::{Item, Real};

/// One function with its CUDA text.
pub struct Case<R: 'static> {
    /// Name for messages and for the C++ program.
    pub name: &'static str,
    /// Number of input numbers.
    pub inputs: usize,
    /// Number of output numbers.
    pub outputs: usize,
    /// Calls the Rust function.
    pub call: fn(&[R], &mut [R]),
    /// The text.
    pub item: &'static Item,
}

macro_rules! case {
    ($function:path, $inputs:literal, $outputs:literal) => {{
        use $function as function;
        $crate::cases::Case {
            name: stringify!($function),
            inputs: $inputs,
            outputs: $outputs,
            call: |x, y| {
                let x: &[R; $inputs] = x.try_into().unwrap();
                let z: [R; $outputs] = function::<R>(x);
                y.copy_from_slice(&z);
            },
            item: function::ITEM,
        }
    }};
}

/// All cases.
pub fn all<R: Real>() -> Vec<Case<R>> {
    vec![
        case!(mathematics::exponentials, 2, 8),
        case!(mathematics::trigonometry, 2, 5),
        case!(mathematics::hyperbolics, 1, 4),
        case!(mathematics::sums, 4, 2),
        case!(syntax::operators, 4, 8),
        case!(syntax::control_flow, 4, 8),
        case!(syntax::structures, 4, 8),
        case!(syntax::doubles, 2, 4),
        case!(language::enums, 4, 8),
        case!(language::choices, 4, 4),
        case!(language::integers, 4, 8),
        case!(language::loops, 4, 4),
        case!(language::names, 4, 8),
        case!(random::known, 1, 12),
        case!(random::deviates, 4, 8),
    ]
}
