//! Words of decks for numerical choices of the kernels.

use nestar_kernels::choice::Choice;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A choice of the kernels, given by its word in decks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Word<T>(pub T);

impl<T: Choice> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de, T: Choice> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        T::of_word(&word)
            .map(Self)
            .ok_or_else(|| D::Error::unknown_variant(&word, T::WORDS))
    }
}

impl<T: Choice> JsonSchema for Word<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<Schema> = T::ALL
            .iter()
            .map(|choice| {
                json_schema!({
                    "type": "string",
                    "const": choice.word(),
                    "description": choice.about(),
                })
            })
            .collect();
        json_schema!({ "description": T::ABOUT.trim(), "oneOf": words })
    }
}
