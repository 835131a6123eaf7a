//! The JSON schema of a scenario file, for editors: completion, descriptions, and a warning as one types.
//!
//! It follows from the tables' declarations. It is laxer than [`super::parse`]: which keys a `kind` needs, and how values
//! fit together, only the check knows.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::file::File;
use super::table::{Field, Named, Section};
use super::value::NAME_PATTERN;

/// The schema (draft 7, the newest that editors' TOML plug-ins agree on) as indented JSON with a newline at its end.
pub fn schema() -> String {
    let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<File>();
    format!("{:#}\n", schema.as_value())
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

impl<T: JsonSchema> JsonSchema for Section<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        schemars::json_schema!({
            "type": "object",
            "propertyNames": { "pattern": NAME_PATTERN },
            "additionalProperties": table,
            "minProperties": 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../schema/scenario.json");
        assert!(committed == schema(), "run `simq schema > schema/scenario.json`");
    }
}
