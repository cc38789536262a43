//! Gives each thread its CPU.
//!
//! Pure: the answer depends on the topology, the policy and the number of threads only. Two threads never share a CPU
//! under a policy that pins; where there are too few CPUs the answer is an error.
//!
//! The order in which CPUs are given out:
//!
//! - `compact`: sockets in ascending number; in a socket, first one hardware thread of each core, P-cores before
//!   E-cores, node by node, die by die, core by core; then the second hardware threads in the same order; then the next
//!   socket.
//! - `scatter`: first one hardware thread of each P-core, then of each E-core, then the second hardware threads. Within
//!   each of these passes threads go round-robin over sockets, within a socket round-robin over its nodes, within a node
//!   round-robin over its dies, and there core by core.
//! - a list: exactly its CPUs, thread by thread.
//!
//! A hardware thread is first, second, … among the *allowed* threads of its core, by CPU number: a container that owns
//! only second siblings owns first threads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{
    cpu_list::CpuList,
    topology::{Place, Topology},
};
use crate::spec::value::Pinning;

/// Why a pinning policy cannot be honoured on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PinError {
    /// More threads than CPUs.
    #[error(
        "cannot pin {threads} threads: this process may use {allowed} CPUs only ({cpus}), and threads must not share one"
    )]
    TooFew {
        /// Threads to pin.
        threads: usize,
        /// CPUs allowed.
        allowed: usize,
        /// Which.
        cpus: CpuList,
    },
    /// The explicit list is shorter than the threads.
    #[error("cannot pin {threads} threads to a list of {listed} CPUs: each thread needs one of its own")]
    ShortList {
        /// Threads to pin.
        threads: usize,
        /// CPUs in the list.
        listed: usize,
    },
    /// A listed CPU does not exist.
    #[error("cannot pin to CPU {cpu}: this machine has CPUs {present}")]
    Absent {
        /// The CPU.
        cpu: u32,
        /// CPUs that exist.
        present: CpuList,
    },
    /// A listed CPU is offline.
    #[error("cannot pin to CPU {cpu}: it is offline (online: {online})")]
    Offline {
        /// The CPU.
        cpu: u32,
        /// CPUs that run.
        online: CpuList,
    },
    /// A listed CPU is kept from this process.
    #[error("cannot pin to CPU {cpu}: the affinity mask or the cpuset of this process allows {allowed} only")]
    NotAllowed {
        /// The CPU.
        cpu: u32,
        /// CPUs allowed.
        allowed: CpuList,
    },
    /// A CPU is listed twice.
    #[error("cannot pin two threads to CPU {cpu}: the list names it twice")]
    Repeated {
        /// The CPU.
        cpu: u32,
    },
    /// The policy needs to know where the CPU sits.
    #[error("cannot order the CPUs: the place of CPU {cpu} is unknown ({reason}); list the CPUs or use `none`")]
    UnknownPlace {
        /// The CPU.
        cpu: u32,
        /// Why.
        reason: String,
    },
}

impl Topology {
    /// Returns the CPU of each of `n_threads` threads; `None` lets a thread float.
    ///
    /// # Errors
    /// [`PinError`] if this machine cannot honour the policy.
    pub fn pin(&self, pinning: &Pinning, n_threads: usize) -> Result<Vec<Option<u32>>, PinError> {
        let order = match pinning {
            Pinning::None => return Ok(vec![None; n_threads]),
            Pinning::Compact => compact(self.candidates()?),
            Pinning::Scatter => scatter(self.candidates()?),
            Pinning::Cpus(cpus) => {
                self.check_list(cpus, n_threads)?;
                cpus.clone()
            }
        };
        if n_threads > order.len() {
            let (allowed, cpus) = (self.n_allowed(), self.allowed.clone());
            return Err(PinError::TooFew { threads: n_threads, allowed, cpus });
        }
        Ok(order.into_iter().take(n_threads).map(Some).collect())
    }

    /// A list is judged whole, so that its mistakes do not depend on the thread count of a cell.
    fn check_list(&self, cpus: &[u32], n_threads: usize) -> Result<(), PinError> {
        let mut seen = BTreeSet::new();
        for &cpu in cpus {
            if !self.present.contains(cpu) {
                return Err(PinError::Absent { cpu, present: self.present.clone() });
            }
            if !self.online.contains(cpu) {
                return Err(PinError::Offline { cpu, online: self.online.clone() });
            }
            if !self.allowed.contains(cpu) {
                return Err(PinError::NotAllowed { cpu, allowed: self.allowed.clone() });
            }
            if !seen.insert(cpu) {
                return Err(PinError::Repeated { cpu });
            }
        }
        match n_threads > cpus.len() {
            true => Err(PinError::ShortList { threads: n_threads, listed: cpus.len() }),
            false => Ok(()),
        }
    }

    fn candidates(&self) -> Result<Vec<Candidate<'_>>, PinError> {
        let mut threads_of_core: BTreeMap<u32, u32> = BTreeMap::new();
        let mut candidates = Vec::with_capacity(self.places.len());
        for (&cpu, place) in &self.places {
            let place = place.as_ref().map_err(|reason| PinError::UnknownPlace { cpu, reason: reason.clone() })?;
            let seen = threads_of_core.entry(place.core).or_default();
            candidates.push(Candidate { cpu, place, rank: *seen });
            *seen += 1;
        }
        Ok(candidates)
    }
}

/// An allowed CPU; `rank` says which of the allowed hardware threads of its core it is, from 0.
#[derive(Clone, Copy)]
struct Candidate<'t> {
    cpu: u32,
    place: &'t Place,
    rank: u32,
}

impl Candidate<'_> {
    /// Order of cores within a socket. The CPU number makes it total.
    fn within_socket(&self) -> (u32, u32, u32, u32, u32) {
        let Place { class, node, die, core_id, .. } = *self.place;
        (class, node, die, core_id, self.cpu)
    }
}

fn compact(mut candidates: Vec<Candidate>) -> Vec<u32> {
    candidates.sort_by_key(|candidate| (candidate.place.socket, candidate.rank, candidate.within_socket()));
    candidates.into_iter().map(|candidate| candidate.cpu).collect()
}

fn scatter(mut candidates: Vec<Candidate>) -> Vec<u32> {
    candidates.sort_by_key(Candidate::within_socket);
    let passes = group(candidates, |candidate| (candidate.rank, candidate.place.class));
    passes.into_iter().flat_map(over_sockets).map(|candidate| candidate.cpu).collect()
}

fn over_sockets(candidates: Vec<Candidate>) -> Vec<Candidate> {
    deal(group(candidates, |candidate| candidate.place.socket).into_iter().map(over_nodes))
}

fn over_nodes(candidates: Vec<Candidate>) -> Vec<Candidate> {
    deal(group(candidates, |candidate| candidate.place.node).into_iter().map(over_dies))
}

fn over_dies(candidates: Vec<Candidate>) -> Vec<Candidate> {
    deal(group(candidates, |candidate| candidate.place.die).into_iter())
}

/// Splits by key, keys ascending, the order within a group kept.
fn group<T, K: Ord>(items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for item in items {
        groups.entry(key(&item)).or_default().push(item);
    }
    groups.into_values().collect()
}

/// Takes one of each pile in turn until all are empty.
fn deal<T>(piles: impl Iterator<Item = Vec<T>>) -> Vec<T> {
    let mut piles: VecDeque<VecDeque<T>> = piles.map(VecDeque::from).collect();
    let mut dealt = Vec::new();
    while let Some(mut pile) = piles.pop_front() {
        if let Some(item) = pile.pop_front() {
            dealt.push(item);
            piles.push_back(pile);
        }
    }
    dealt
}
