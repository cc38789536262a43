//! Reads the value of a parameter back from a plan; [`super::walk`] is the way there.
//!
//! Refuses what the compiler of specs would: whoever unpacks the cell of a plan may rely on it. The input is hostile.

use rare_workloads::{
    protocol::{Distribution, Mix, Reclamation},
    reclaim::BATCHES,
};
use serde::Deserialize;
use serde_json::Value as Json;

use super::json::MAX_INTEGER;
use crate::{
    spec::{
        fields::{self, Kind},
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
    },
    units::{BasisPoints, Bytes, Nanos},
};

/// Returns the value that `json` writes, or `None` if it is none of this parameter.
pub(super) fn read_value(parameter: Parameter, json: &Json) -> Option<Value> {
    match parameter {
        Parameter::Structure => structure(json).map(Value::Structure),
        Parameter::Allocator => allocator(json).map(Value::Allocator),
        Parameter::Reclamation => reclamation(json).map(Value::Reclamation),
        Parameter::Pinning => pinning(json).map(Value::Pinning),
        Parameter::Threads => threads(json).map(Value::Threads),
        Parameter::KeyRange => number(json).filter(|&range| range > 0).map(Value::Count),
        Parameter::Mix => mix(json).map(Value::Mix),
        Parameter::Distribution => distribution(json).map(Value::Distribution),
        Parameter::Prefill => prefill(json).map(Value::Prefill),
        Parameter::RangeQuery => range_query(json).map(Value::RangeQuery),
        Parameter::TrialLength => number(json).filter(|&length| length > 0).map(|it| Value::Duration(Nanos(it))),
        Parameter::EnvironmentPadding => number(json).map(|it| Value::Bytes(Bytes(it))),
        Parameter::NodePadding | Parameter::HarnessPadding => {
            number(json).filter(|&bytes| bytes <= u64::from(u32::MAX)).map(Value::Count)
        }
        Parameter::Priority => json.as_i64().and_then(|it| i8::try_from(it).ok()).map(Value::Nice),
        Parameter::HugePages
        | Parameter::Aslr
        | Parameter::ObjectPool
        | Parameter::TimeCheck
        | Parameter::Generator
        | Parameter::HarnessFault => word(parameter, json).map(Value::Word),
    }
}

/// A quantity: a number as far as JSON keeps integers apart, a decimal string beyond.
pub(super) fn number(json: &Json) -> Option<u64> {
    match json {
        Json::Number(number) => number.as_u64().filter(|&number| number <= MAX_INTEGER),
        Json::String(text) => decimal(text).filter(|&number| number > MAX_INTEGER),
        _ => None,
    }
}

/// A decimal string without sign or leading zeros.
pub(super) fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number: &u64| number.to_string() == text)
}

fn small_number(json: &Json) -> Option<u32> {
    number(json).and_then(|number| u32::try_from(number).ok())
}

fn one_of(words: impl IntoIterator<Item = &'static str>, json: &Json) -> Option<&'static str> {
    words.into_iter().find(|word| json.as_str() == Some(word))
}

/// A word of the parameter's closed list. Words of later versions are read too: they name a plan that cannot run here,
/// not bytes that are no plan.
fn word(parameter: Parameter, json: &Json) -> Option<&'static str> {
    match fields::of(parameter).kind {
        Kind::Word(words) => one_of(words.iter().map(|word| word.name), json),
        _ => None,
    }
}

/// The only member of an object, if its key is this one.
fn single<'j>(json: &'j Json, key: &str) -> Option<&'j Json> {
    json.as_object().filter(|members| members.len() == 1)?.get(key)
}

fn structure(json: &Json) -> Option<StructureUse> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        label: String,
        name: String,
        parameters: serde_json::Map<String, Json>,
    }
    let form = Form::deserialize(json).ok()?;
    // Names of plain ASCII sort alike by bytes and by UTF-16 units, as RFC 8785 sorts them.
    let member = |(name, json): (String, Json)| Some((name, number(&json)?)).filter(|(name, _)| name.is_ascii());
    let parameters = form.parameters.into_iter().map(member).collect::<Option<_>>()?;
    Some(StructureUse { name: form.name, label: form.label, parameters })
}

fn allocator(json: &Json) -> Option<Allocator> {
    let preload = || Some(Allocator::Preload(single(json, "preload")?.as_str()?.to_owned()));
    one_of(Allocator::LINKED.iter().copied(), json).map(Allocator::Linked).or_else(preload)
}

fn reclamation(json: &Json) -> Option<Reclamation> {
    if let Some(batch) = single(json, "hyaline_batch") {
        let batch = small_number(batch).filter(|batch| BATCHES.contains(batch))?;
        return Some(Reclamation::Hyaline { batch });
    }
    let is_plain = |scheme: &Reclamation| !matches!(scheme, Reclamation::Hyaline { .. });
    Reclamation::ALL.iter().copied().find(|scheme| is_plain(scheme) && json.as_str() == Some(scheme.name()))
}

fn pinning(json: &Json) -> Option<Pinning> {
    match json {
        Json::String(word) => match word.as_str() {
            "none" => Some(Pinning::None),
            "compact" => Some(Pinning::Compact),
            "scatter" => Some(Pinning::Scatter),
            _ => None,
        },
        Json::Array(cpus) => cpus.iter().map(small_number).collect::<Option<_>>().map(Pinning::Cpus),
        _ => None,
    }
}

fn threads(json: &Json) -> Option<Threads> {
    match json.as_str() {
        Some("all") => Some(Threads::All),
        Some(_) => None,
        None => small_number(json).filter(|&threads| threads > 0).map(Threads::Count),
    }
}

fn mix(json: &Json) -> Option<Mix> {
    Mix::deserialize(json).ok().filter(|mix| mix.is_whole())
}

fn distribution(json: &Json) -> Option<Distribution> {
    match json.as_str() {
        Some("uniform") => Some(Distribution::Uniform),
        Some(_) => None,
        None => small_number(single(json, "zipf_millionths")?).map(Distribution::Zipf),
    }
}

fn prefill(json: &Json) -> Option<Prefill> {
    let share = || small_number(single(json, "basis_points")?).filter(|&share| share <= Mix::WHOLE);
    let keys = || number(single(json, "keys")?).map(Prefill::Keys);
    share().map(|share| Prefill::Share(BasisPoints(share))).or_else(keys)
}

fn range_query(json: &Json) -> Option<RangeQuery> {
    match json.as_str() {
        Some("none") => Some(RangeQuery::None),
        _ => number(json).filter(|&keys| keys > 0).map(RangeQuery::Keys),
    }
}
