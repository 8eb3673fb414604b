//! Tables of numerical choices, such as limiters: each line has the word of a deck and the function behind it.

use std::fmt::Debug;

/// A choice among the lines of a table.
pub trait Choice: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Name of the table, for schemas.
    const NAME: &'static str;
    /// What is chosen.
    const ABOUT: &'static str;
    /// All choices, in the order of the table.
    const ALL: &'static [Self];
    /// The words of all choices in decks, in the same order.
    const WORDS: &'static [&'static str];

    /// Returns the word in decks.
    fn word(self) -> &'static str;

    /// Returns the documentation of the choice.
    fn about(self) -> &'static str;

    /// Returns the choice of a word in a deck.
    #[must_use]
    fn of_word(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|known| *known == word)?;
        Some(Self::ALL[at])
    }
}

/// Defines an enum from a table of choices, and implements [`Choice`].
///
/// If the lines name `#[device]` functions, the table also defines the function `$call`, whose const parameter selects one of them at
/// compile time; the method `item`, for the text of a device; and the macro `$select`, which calls a function with this const parameter
/// from a value of the enum. A line `Name = "word": function as lanes` takes another function on the CPU.
macro_rules! choices {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident;
        $($(#[doc = $doc:literal])+ $choice:ident = $word:literal;)+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $doc])+ $choice,)+
        }

        impl $crate::choice::Choice for $name {
            const NAME: &'static str = stringify!($name);
            const ABOUT: &'static str = concat!($($about),+);
            const ALL: &'static [Self] = &[$($name::$choice),+];
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            fn about(self) -> &'static str {
                [$(concat!($($doc),+)),+][self as usize].trim()
            }
        }
    };
    (
        $dollar:tt
        $(#[doc = $about:literal])+
        pub enum $name:ident by $select:ident;
        $(#[$call_doc:meta])+
        fn $call:ident<$lane:ident: $bound:ident>($($argument:ident: $kind:ty),+) -> $result:ty as $arguments:tt;
        $($(#[doc = $doc:literal])+ $choice:ident = $word:literal: $($item:ident)::+ $(as $($lanes:ident)::+)?;)+
    ) => {
        $crate::choice::choices! {
            $(#[doc = $about])+
            pub enum $name;
            $($(#[doc = $doc])+ $choice = $word;)+
        }

        impl $name {
            /// Returns the function for the text of a device.
            #[must_use]
            pub fn item(self) -> &'static nestar_device::Item {
                match self {
                    $($name::$choice => $($item)::+::ITEM,)+
                }
            }
        }

        $(#[$call_doc])+
        #[inline(always)]
        pub fn $call<$lane: $bound, const CHOICE: u32>($($argument: $kind),+) -> $result {
            $(if CHOICE == $name::$choice as u32 {
                return $crate::choice::choices!(@first $($($lanes)::+,)? $($item)::+,) $arguments;
            })+
            unreachable!("the selector {CHOICE} belongs to no choice")
        }

        macro_rules! $select {
            ($dollar value:expr, $dollar function:ident::<$dollar ($dollar before:tt),+>) => {
                match $dollar value {
                    $($name::$choice => $dollar function::<$dollar ($dollar before),+, { $name::$choice as u32 }>,)+
                }
            };
        }
        pub(crate) use $select;
    };
    (@first $first:path, $($rest:path,)?) => { $first };
}
pub(crate) use choices;
