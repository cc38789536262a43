//! How the harness measures. Whatever is not the default is a mistake of harnesses in use, kept so that its cost can be
//! shown and so that each check can prove that it notices.

use serde::{Deserialize, Serialize};

/// The settings of the harness in one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// How a thread learns that the window is over.
    pub time_check: TimeCheck,
    /// What lies between the per-thread state of two threads.
    pub padding: Padding,
    /// Where keys and operations come from.
    pub generator: GeneratorKind,
    /// A fault that is planted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// How a thread learns that the window is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeCheck {
    /// It reads a flag that another thread sets.
    #[default]
    Flag,
    /// It reads the clock after each so many operations, at least 1.
    Every(u32),
}

/// What lies between the state of two threads that the harness writes in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Padding {
    /// Each thread's state has 128 bytes of its own.
    #[default]
    Lines,
    /// Nothing: the states of several threads, and the stop flag, share cache lines.
    None,
}

/// Where keys and operations come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorKind {
    /// xoshiro256++, one stream a thread; key and operation from two draws.
    #[default]
    Xoshiro,
    /// FNV-1a over the last draw, whose lowest bit alternates: with two draws an operation and an even key range, each
    /// thread sees keys of one parity only.
    Fnv1aAlternating,
}

/// A fault of a harness, planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The prefill draws its keys with replacement, as many as asked for, and does not look at what was there.
    PrefillWithReplacement,
    /// Each thread pins itself to the CPU of the next one, and the last one to that of the first.
    RotatedPins,
    /// The last thread begins when a third of the window is over.
    LateThread,
    /// The threads run on for a fifth of the window, and their stamps say that they stopped in time.
    NominalTime,
}
