//! The JSON Schema of a spec, for completion in editors.
//!
//! Derived from the field table. It is wider than the compiler: it cannot add up shares or compare a prefill with a key
//! range.

use rare_workloads::reclaim::BATCHES;
use serde_json::{Map, Value, json};

use super::{
    fields::{Default, FIELDS, Field, Kind},
    lower::OPERATIONS,
    value::Parameter,
    words::{self, Word, names},
};
use crate::units::Quantity;

/// Returns the schema, draft 2020-12.
pub fn schema() -> Value {
    let required: Vec<&str> =
        FIELDS.iter().filter(|field| field.default == Default::Required).map(|field| field.key).collect();
    let mut schema = object(properties(|_| true), &required);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("rare spec");
    schema["$defs"] = definitions();
    schema
}

/// Returns the properties of the fields that are `wanted`, nested ones under their group.
fn properties(wanted: impl Fn(&Field) -> bool) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in FIELDS.iter().filter(|field| wanted(field)) {
        let Some((group, leaf)) = field.key.split_once('.') else {
            properties.insert(field.key.to_owned(), property(field));
            continue;
        };
        let group = properties.entry(group).or_insert_with(|| object(Map::new(), &[]));
        group["properties"][leaf] = property(field);
    }
    properties
}

fn property(field: &Field) -> Value {
    let one = value(field);
    let mut property = match (field.is_axis(), field.kind) {
        (true, Kind::Mixes) => one,
        (true, _) => json!({ "anyOf": [one, { "type": "array", "minItems": 1, "items": one }] }),
        (false, _) => one,
    };
    property["description"] = json!(format!("{} Values: {}.", field.meaning, field.range()));
    property["x-class"] = json!(field.class.name());
    if let Default::Text(text) = field.default {
        property["x-default"] = json!(text);
    }
    property
}

fn value(field: &Field) -> Value {
    match field.kind {
        Kind::Version => json!({ "const": 1 }),
        Kind::Name => json!({ "type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$" }),
        Kind::Markdown => json!({ "type": "string" }),
        Kind::Number { quantity, .. } => number(quantity),
        Kind::NumberOrNone { quantity, .. } => json!({ "anyOf": [{ "const": "none" }, number(quantity)] }),
        Kind::Signed { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Word(words) => word(words),
        Kind::Words { words, all } => {
            let list = json!({ "type": "array", "uniqueItems": true, "items": word(words) });
            if all {
                json!({ "anyOf": [{ "enum": ["all", "none"] }, word(words), list] })
            } else {
                json!({ "anyOf": [word(words), list] })
            }
        }
        Kind::Structures => json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/structure" }] }),
        Kind::Allocator => {
            let path = json!({ "type": "string", "pattern": "^/" });
            json!({ "anyOf": [word(words::ALLOCATORS), only("preload", &path)] })
        }
        Kind::Reclamation => reclamation(),
        Kind::Pinning => {
            let cpus = json!({ "type": "array", "minItems": 1, "items": { "type": "integer", "minimum": 0 } });
            json!({ "anyOf": [word(words::PINNING), only("cpus", &cpus)] })
        }
        Kind::Threads { .. } => json!({ "anyOf": [{ "const": "all" }, number(Quantity::Count)] }),
        Kind::Mixes => json!({
            "anyOf": [
                { "$ref": "#/$defs/mix" },
                { "type": "object", "minProperties": 1, "additionalProperties": { "$ref": "#/$defs/mix" } },
            ]
        }),
        Kind::Distribution => {
            json!({ "anyOf": [word(words::DISTRIBUTIONS), only("zipf", &number(Quantity::Decimal))] })
        }
        Kind::Prefill => {
            json!({ "anyOf": [word(words::PREFILLS), number(Quantity::Percent), number(Quantity::Count)] })
        }
        Kind::RangeQuery { .. } => {
            let size = number(Quantity::Count);
            json!({ "anyOf": [word(words::RANGE_QUERIES), size, only("size", &size)] })
        }
        Kind::Exclude | Kind::Include => {
            json!({ "anyOf": [{ "$ref": "#/$defs/rule" }, { "type": "array", "items": { "$ref": "#/$defs/rule" } }] })
        }
        Kind::Zip => {
            let keys = json!({ "enum": Parameter::ALL.map(Parameter::key) });
            json!({ "type": "array", "items": { "type": "array", "minItems": 2, "items": keys } })
        }
        Kind::Claims => {
            json!({ "anyOf": [{ "$ref": "#/$defs/claim" }, { "type": "array", "items": { "$ref": "#/$defs/claim" } }] })
        }
        Kind::Compare => {
            let one = json!({ "$ref": "#/$defs/compare" });
            json!({ "anyOf": [one, { "type": "array", "items": one }] })
        }
        Kind::Quick => object(properties(|field| !["rare", "name", "family", "quick"].contains(&field.key)), &[]),
    }
}

fn definitions() -> Value {
    let share = json!({ "anyOf": [{ "const": "rest" }, { "type": "number", "minimum": 0, "maximum": 100 }, number(Quantity::Share)] });
    let mut shares = Map::new();
    for operation in OPERATIONS {
        shares.insert(operation.to_owned(), share.clone());
    }
    let sentence = json!({ "type": "string", "pattern": "[<>]" });
    let claim = json!({ "that": sentence, "by": number(Quantity::Percent), "where": { "$ref": "#/$defs/rule" } });
    let rule = json!({ "$ref": "#/$defs/rule" });
    let compare = json!({ "base": rule, "changed": rule, "predicts": word(words::PREDICTED) });
    json!({
        "mix": object(shares, &[]),
        "structure": {
            "type": "object",
            "required": ["use"],
            "properties": {
                "use": { "type": "string" },
                "as": { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$" },
                "reclamation": reclamation(),
                "object_pool": word(words::OBJECT_POOLS),
                "padding": word(words::NODE_PADDINGS),
            },
        },
        "rule": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "enum": Parameter::ALL.map(Parameter::key) },
        },
        "compare": object(compare.as_object().cloned().unwrap_or_default(), &["base", "changed", "predicts"]),
        "claim": { "anyOf": [sentence, object(claim.as_object().cloned().unwrap_or_default(), &["that"])] },
    })
}

fn reclamation() -> Value {
    let batch = json!({ "type": "integer", "minimum": BATCHES.start(), "maximum": BATCHES.end() });
    json!({ "anyOf": [word(words::RECLAMATION), only("hyaline", &only("batch", &batch))] })
}

/// A quantity: a text with its unit, and a bare number where the unit may be left out.
fn number(quantity: Quantity) -> Value {
    let text = json!({ "type": "string", "pattern": quantity.pattern() });
    if quantity.takes_bare_number() { json!({ "anyOf": [{ "type": "number", "minimum": 0 }, text] }) } else { text }
}

/// A word of a list. Words that are numbers are numbers to a YAML reader.
fn word(words: &'static [Word]) -> Value {
    let names = names(words).map(|name| name.parse::<u64>().map_or_else(|_| json!(name), |number| json!(number)));
    Value::Object(Map::from_iter([("enum".to_owned(), Value::Array(names.collect()))]))
}

fn only(key: &str, value: &Value) -> Value {
    object(Map::from_iter([(key.to_owned(), value.clone())]), &[key])
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}
