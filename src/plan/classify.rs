//! Which fields of a spec decide the identity of a plan, and why the others do not.
//!
//! The table is complete by construction: a field of [`Spec`] that is not in it does not compile.

use crate::spec::Spec;

/// What a field of a spec is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It decides what is executed, so it is in the hash.
    Identity,
    /// It decides how the records are judged.
    Analysis,
    /// It decides what people see.
    Display,
    /// It decides whether a plan is accepted, or how far a run gets: never what a trial does.
    Bound,
}

/// One classified field of [`Spec`].
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// What it is for.
    pub class: Class,
    /// Why it is in the hash or not.
    pub why: &'static str,
}

/// Writes the table and a function that destructures a spec by the same names, without a `..`.
macro_rules! classify {
    ($($field:ident: $class:ident, $why:literal;)*) => {
        /// Every field of [`Spec`].
        pub static FIELDS: &[Field] =
            &[$(Field { name: stringify!($field), class: Class::$class, why: $why }),*];

        const _: fn(&Spec) = |Spec { $($field: _),* }| ();
    };
}

classify! {
    name: Display, "a title: renaming an experiment does not change it";
    question: Display, "a title: rewording it does not change the experiment";
    quick: Display, "marks the pages; what the `quick` block changes is in the hash by itself";
    axes: Identity, "the cells";
    overrides: Identity, "the cells, through the structures that fix a parameter";
    zip: Identity, "the cells, through the axes that advance together";
    exclude: Identity, "the cells, by those it leaves out";
    include: Identity, "the cells, by those it adds";
    n_trials: Identity, "the blocks";
    checks: Identity, "the checks that run";
    instruments: Identity, "the instruments that run";
    order: Identity, "the order within the blocks";
    seed: Identity, "everything random";
    claims: Analysis, "decided from the records: the same trials serve any claim";
    mix_names: Display, "names of mixes; their shares are in the hash";
    allow: Analysis, "permits comparisons; the same trials run";
    limits: Bound, "refuses a plan or lets it pass; the same trials run";
    budget: Bound, "ends a run between blocks; the blocks before it are the same";
}

/// What is never in the hash although no field of a spec holds it.
pub static BEYOND_THE_SPEC: &[(&str, &str)] = &[
    ("comments, key order, quoting, spelling of quantities", "the same spec in other words"),
    ("whether a default was written or left out", "every default is explicit in the plan"),
    ("the machine", "facts of the host are in the environment record; a rerun prints the difference"),
    ("versions of rare, structures and allocators", "in the environment record; a rerun prints the difference"),
    ("what `all`, `compact` and `scatter` become", "resolved on the machine; each trial records it"),
];
