//! What tests over the registry share: seeds, thread counts, random numbers, and a loop over every driver.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod controls;

use std::{env, str::FromStr};

use rare_workloads::{
    families::set::{Parameters, SetHandle},
    protocol::Reclamation,
    structures::{ALL, Driver, ErasedSet, Info, ParameterInfo, Reclaims, Structure},
};

/// One structure under one scheme, with default parameters but for one at most.
#[derive(Clone, Copy)]
pub struct Subject {
    pub info: &'static Info,
    pub reclamation: Reclamation,
    pub driver: &'static dyn Driver,
    /// The parameter that has another value than its default.
    varied: Option<(&'static str, u64)>,
}

impl Subject {
    /// Every driver of the registry, with default parameters, and once for each parameter with another value of that.
    pub fn all() -> Vec<Self> {
        ALL.iter().flat_map(|structure| Self::of(structure)).flat_map(Self::variations).collect()
    }

    /// Every driver of one structure, with default parameters.
    pub fn of(structure: &'static Structure) -> impl Iterator<Item = Self> {
        let info = &structure.info;
        structure.drivers.iter().map(|&(reclamation, driver)| Self { info, reclamation, driver, varied: None })
    }

    /// The same with default parameters, and with each parameter varied.
    fn variations(self) -> impl Iterator<Item = Self> {
        let varied = self.info.parameters.iter().map(|parameter| Some(variation(parameter)));
        [None].into_iter().chain(varied).map(move |varied| Self { varied, ..self })
    }

    pub fn has_range_query(&self) -> bool {
        self.driver.has_range_query()
    }

    /// The drivers that costly tests are run on: all of them with `RARE_TESTS=long`. Else every structure under `none` and
    /// `epoch`, under hazard pointers each structure whose algorithm they depend on, and under the other schemes
    /// [`REPRESENTATIVES`]: to a structure they are epochs, and to a scheme structures differ in what they retire, and when.
    pub fn sample() -> Vec<Self> {
        let is_chosen = |subject: &Self| match subject.reclamation {
            Reclamation::None | Reclamation::Epoch => true,
            _ if subject.varied.is_some() => false,
            Reclamation::Hazard => subject.info.reclaims == Reclaims::Deferred,
            Reclamation::Hyaline { .. } | Reclamation::Eager => REPRESENTATIVES.contains(&subject.info.name),
        };
        Self::all().into_iter().filter(|subject| is_long() || is_chosen(subject)).collect()
    }

    /// Makes an empty instance.
    pub fn make(&self) -> Box<dyn ErasedSet> {
        self.make_with(&[])
    }

    /// Makes an empty instance with some parameters, and this subject's otherwise.
    pub fn make_with(&self, given: &[(&str, u64)]) -> Box<dyn ErasedSet> {
        self.driver.erased(&self.parameters(given))
    }

    /// Completes parameters with those of this subject: the varied one, and defaults.
    pub fn parameters(&self, given: &[(&str, u64)]) -> Parameters {
        let defaults = self.info.parameters.iter().map(|parameter| (parameter.name, parameter.default));
        // Later ones overwrite earlier ones.
        let all = defaults.chain(self.varied).chain(given.iter().copied());
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Names it by structure, scheme, and the parameter that is not as by default.
    pub fn short_name(&self) -> String {
        let varied = self.varied.map_or_else(String::new, |(name, value)| format!("/{name}={value}"));
        format!("{}/{}{varied}", self.info.name, self.reclamation.name())
    }

    /// Names it, and how to run the test again, for messages.
    pub fn name(&self) -> String {
        format!("{}, RARE_TEST_SEED={} RARE_TEST_THREADS={}", self.short_name(), seed(), n_threads())
    }
}

/// A list, a skip list, a tree of single keys, and one of many keys with records of updates.
const REPRESENTATIVES: [&str; 4] = ["michael02", "fraser03", "nm14", "abtree17"];

/// Returns the value besides the default under which a parameter is tested: the smallest, where a structure degenerates
/// and which costs little, or, if that is the default, the largest.
fn variation(parameter: &'static ParameterInfo) -> (&'static str, u64) {
    let (smallest, largest) = parameter.range;
    (parameter.name, if parameter.default == smallest { largest } else { smallest })
}

/// Seed of the test run.
pub fn seed() -> u64 {
    from_environment("RARE_TEST_SEED", 1)
}

/// Threads of concurrent tests; more than the cores of a small machine on purpose.
pub fn n_threads() -> u64 {
    from_environment("RARE_TEST_THREADS", 4)
}

/// Tells whether the long form of the suites was asked for, with `RARE_TESTS=long`.
pub fn is_long() -> bool {
    sized(false, false, true)
}

/// Chooses what a test does at most: `short` under sanitizers, which slow it down tenfold, `usual` by default, `long` where
/// someone has the time. `RARE_TESTS` tells which.
pub fn sized<T>(short: T, usual: T, long: T) -> T {
    match env::var("RARE_TESTS").as_deref() {
        Ok("short") => short,
        Ok("long") => long,
        Ok(other) => panic!("RARE_TESTS=`{other}` is neither `short` nor `long`"),
        Err(_) => usual,
    }
}

fn from_environment<T: FromStr>(name: &str, default: T) -> T {
    let Ok(text) = env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name}=`{text}` is not a number"))
}

/// Splitmix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
pub struct Random(u64);

impl Random {
    /// The stream of one thread in one test.
    pub fn of(test: u64, thread: u64) -> Self {
        let mut random = Self(seed() ^ test.rotate_left(32) ^ thread.rotate_left(48));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// Applies `n_operations` random updates and look-ups of `keys`.
pub fn churn(handle: &mut dyn SetHandle, random: &mut Random, keys: &[u64], n_operations: u64) {
    for _ in 0..n_operations {
        let key = keys[random.below(keys.len() as u64) as usize];
        match random.below(5) {
            0 | 1 => handle.insert(key, !key),
            2 | 3 => handle.remove(key),
            _ => handle.contains(key),
        };
    }
}
