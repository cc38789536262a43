//! How the harness measures. Whatever is not the default is a mistake of harnesses in use, kept so that its cost can be
//! shown and so that each check can prove that it notices.

use serde::{Deserialize, Serialize};

use super::{Distribution, Request};

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

impl Request {
    /// Says why a setting of the harness cannot be honoured in this trial; `None` if all can.
    pub fn harness_refusal(&self) -> Option<&'static str> {
        let Harness { time_check, padding: _, generator, fault } = self.harness;
        let uniform = self.distribution == Distribution::Uniform;
        let pinned_alike = || self.cpus.windows(2).all(|pair| pair[0] == pair[1]);
        if time_check == TimeCheck::Every(0) {
            Some("the clock is to be read after every 0 operations")
        } else if generator == GeneratorKind::Fnv1aAlternating && !uniform {
            Some("the generator `fnv1a-alternating` draws uniform keys only")
        } else if fault == Some(Fault::RotatedPins) && pinned_alike() {
            Some("the pins of the threads cannot be rotated: they do not differ")
        } else {
            None
        }
    }
}

/// How a thread learns that the window is over. A window of operations ends by itself, whatever is said here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeCheck {
    /// It reads a flag that another thread sets.
    #[default]
    Flag,
    /// It reads the clock after each so many operations, at least 1, and stops once the window has lasted as long as asked
    /// since the opening stamp.
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
    /// thread sees keys of one parity only. Uniform keys alone, as the remainder of a draw. The fault is kept.
    Fnv1aAlternating,
}

/// A fault of a harness, planted. In a window of operations there is no time to be late for, nor a nominal one: the last two
/// do nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The prefill draws its keys with replacement, as many as asked for, and does not look at what was there.
    PrefillWithReplacement,
    /// Each thread pins itself to the CPU of the next one, and the last one to that of the first. Threads that are pinned
    /// alike are refused.
    RotatedPins,
    /// The last thread begins when a third of the window is over.
    LateThread,
    /// The threads run on for a fifth of the window, and their stamps say that they stopped in time.
    NominalTime,
}
