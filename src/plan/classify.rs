//! Which fields of a spec decide the identity of a plan, and what else never does.
//!
//! The table is complete by construction: a field of [`Spec`] that is not in it does not compile. Why a key is left
//! out of the hash stands in the table of keys ([`crate::spec::fields`]), and a test holds the two together.

use crate::spec::Spec;

/// What a field of a spec decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What is executed: it enters the hash.
    Identity,
    /// How the records are judged, or whether a plan is accepted.
    Analysis,
    /// What people see.
    Display,
}

/// One classified field of [`Spec`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// What it decides.
    pub class: Class,
    /// A key of the spec that it comes from.
    pub key: &'static str,
}

/// Writes the table and a function that destructures a spec by the same names, without a `..`.
macro_rules! classify {
    ($($field:ident: $class:ident from $key:literal;)*) => {
        /// Every field of [`Spec`].
        pub static FIELDS: &[Field] =
            &[$(Field { name: stringify!($field), class: Class::$class, key: $key }),*];

        const _: fn(&Spec) = |Spec { $($field: _),* }| ();
    };
}

classify! {
    name: Display from "name";
    question: Display from "question";
    quick: Display from "quick";
    axes: Identity from "structures";
    overrides: Identity from "structures";
    zip: Identity from "zip";
    exclude: Identity from "exclude";
    include: Identity from "include";
    n_trials: Identity from "trials.count";
    checks: Identity from "sanity_checks";
    instruments: Identity from "instruments";
    order: Identity from "order";
    seed: Identity from "seed";
    claims: Analysis from "claims";
    compare: Identity from "compare";
    mix_names: Display from "mixes";
    allow: Analysis from "allow";
    limits: Analysis from "limits.cells";
    budget: Analysis from "budget";
}

/// What is never in the hash although no key of a spec holds it.
pub static BEYOND_THE_KEYS: &[(&str, &str)] = &[
    ("names of mixes", "they are only shown; the shares are in the hash"),
    ("comments, key order, quoting, spelling of quantities", "they are the same spec in other words"),
    ("whether a default was written or left out", "every default is explicit in the plan"),
    ("the machine", "it is in the environment record; a rerun prints the difference"),
    (
        "versions of rare, structures and allocators",
        "they are in the environment record; a rerun prints the difference",
    ),
    ("what `all`, `compact` and `scatter` become", "they are resolved on the machine; each trial records it"),
];
