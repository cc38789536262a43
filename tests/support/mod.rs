//! A catalogue, a source of randomness and a judge of JSON Schemas for the tests of specs.

use rare_workloads::{
    families::set::Parameters,
    harness::Measurements,
    protocol::{Reclamation, Request},
    structures::{Adt, Driver, ErasedSet, Info, Insert, Memory, ParameterInfo, Reclaims, Search, Semantics, Structure},
};
use serde_json::Value;

/// A structure that supports every scheme and has a parameter, and one that only leaks and manages its own memory.
pub static STRUCTURES: &[&Structure] = &[&BOTH, &LEAKY];

static BOTH: Structure = Structure {
    info: info(
        "both",
        &[ParameterInfo { name: "fanout", default: 16, range: (2, 64), meaning: "children of a node" }],
        Memory::Nodes,
    ),
    drivers: &[(Reclamation::None, &NeverRun), (Reclamation::Epoch, &NeverRun)],
};

static LEAKY: Structure =
    Structure { info: info("leaky", &[], Memory::Own), drivers: &[(Reclamation::None, &NeverRun)] };

const fn info(name: &'static str, parameters: &'static [ParameterInfo], memory: Memory) -> Info {
    Info {
        name,
        title: name,
        source: "a test",
        progress: "blocking",
        semantics: Semantics { adt: Adt::OrderedDictionary, insert: Insert::IfAbsent, key_bits: 64, value_bits: 64 },
        reclaims: Reclaims::Deferred,
        memory,
        search: Search::Logarithmic,
        deviations: &[],
        invariants: &[],
        parameters,
    }
}

/// A driver for specs that are compiled and never run.
struct NeverRun;

impl Driver for NeverRun {
    fn trial(&self, _: &Request) -> Result<Measurements, String> {
        unreachable!("specs are only compiled here")
    }

    fn erased(&self, _: &Parameters) -> Box<dyn ErasedSet> {
        unreachable!("specs are only compiled here")
    }
}

/// Splitmix64, so that a failure can be repeated from its seed.
pub struct Random(pub u64);

impl Random {
    /// Draws a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * bound as u128) >> 64) as usize
    }
}

/// Judges an instance by the keywords that the schema of specs uses. Patterns are judged only where they are quantities.
///
/// # Errors
/// The first keyword that does not hold, with the instance.
pub fn fits(root: &Value, schema: &Value, instance: &Value) -> Result<(), String> {
    let keywords = schema.as_object().ok_or("a schema is an object")?;
    for (keyword, expected) in keywords {
        let holds = match keyword.as_str() {
            "$ref" => {
                let pointer = expected.as_str().and_then(|it| it.strip_prefix('#')).ok_or("only local references")?;
                fits(root, root.pointer(pointer).ok_or("a dangling reference")?, instance)?;
                true
            }
            "const" => expected == instance,
            "enum" => expected.as_array().is_some_and(|values| values.contains(instance)),
            "type" => match expected.as_str() {
                Some("object") => instance.is_object(),
                Some("array") => instance.is_array(),
                Some("string") => instance.is_string(),
                Some("number") => instance.is_number(),
                Some("integer") => instance.is_i64() || instance.is_u64(),
                other => return Err(format!("unknown type {other:?}")),
            },
            "anyOf" => expected.as_array().is_some_and(|any| any.iter().any(|one| fits(root, one, instance).is_ok())),
            "minimum" => instance.as_f64().is_none_or(|number| number >= expected.as_f64().unwrap_or(f64::MIN)),
            "maximum" => instance.as_f64().is_none_or(|number| number <= expected.as_f64().unwrap_or(f64::MAX)),
            "minItems" => instance.as_array().is_none_or(|items| items.len() as u64 >= expected.as_u64().unwrap_or(0)),
            "minProperties" => {
                instance.as_object().is_none_or(|object| object.len() as u64 >= expected.as_u64().unwrap_or(0))
            }
            "items" => {
                instance.as_array().into_iter().flatten().try_for_each(|item| fits(root, expected, item))?;
                true
            }
            "required" => expected.as_array().into_iter().flatten().all(|key| {
                instance.as_object().is_none_or(|object| object.contains_key(key.as_str().unwrap_or_default()))
            }),
            "properties" => {
                for (key, value) in instance.as_object().into_iter().flatten() {
                    expected.get(key).map_or(Ok(()), |schema| fits(root, schema, value))?;
                }
                true
            }
            "additionalProperties" => {
                for (key, value) in instance.as_object().into_iter().flatten() {
                    if schema["properties"].get(key).is_none() {
                        match expected {
                            Value::Bool(false) => return Err(format!("unknown key {key}")),
                            schema => fits(root, schema, value)?,
                        }
                    }
                }
                true
            }
            "propertyNames" => {
                let names = instance.as_object().into_iter().flatten().map(|(key, _)| Value::from(key.as_str()));
                names.into_iter().try_for_each(|name| fits(root, expected, &name))?;
                true
            }
            "pattern" | "uniqueItems" | "$schema" | "$defs" | "title" | "description" | "x-class" | "x-default" => true,
            other => return Err(format!("the judge does not know {other}")),
        };
        if !holds {
            return Err(format!("{keyword} {expected} does not hold for {instance}"));
        }
    }
    Ok(())
}
