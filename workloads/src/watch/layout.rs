//! The first blocks that a thread allocated, as the reply lists them.

use crate::{
    alloc::{self, Dispatch, Listed},
    nodes,
    protocol::{Block, ThreadLayout},
};

/// Blocks of one thread and phase that can be listed at most: more would be a reply of hundreds of megabytes.
const ALLOCATIONS_MAX: u32 = 100_000;

/// Refuses a list of nothing, and one that is too long.
///
/// # Errors
/// In words.
pub(super) fn admit(allocations: u32) -> Result<(), String> {
    match allocations {
        0 => Err("the request cannot be run: no allocation is to be listed".to_owned()),
        1..=ALLOCATIONS_MAX => Ok(()),
        _ => Err(format!("the request cannot be run: more than {ALLOCATIONS_MAX} allocations are to be listed")),
    }
}

/// Lists from now on, by threads that start later.
///
/// # Errors
/// In words, when this process does not allocate through the dispatching allocator.
pub(super) fn begin() -> Result<(), String> {
    Dispatch::start_listing()?;
    nodes::name_kinds();
    Ok(())
}

/// Returns what the calling thread listed.
pub(super) fn of_this_thread() -> ThreadLayout {
    ThreadLayout { blocks: alloc::listed().into_iter().map(block).collect() }
}

fn block(listed: Listed) -> Block {
    Block {
        address: listed.address as u64,
        size: listed.size as u64,
        align: listed.align as u64,
        usable: listed.usable.map(|bytes| bytes as u64),
        kind: listed.kind.map(without_paths),
        phase: listed.phase,
    }
}

/// Takes the paths out of the name of a type, and of the types within it: `a::Node<b::Epoch>` becomes `Node<Epoch>`.
fn without_paths(name: &str) -> String {
    let mut short = String::new();
    // What was written of the path so far, which turns out to be one when `::` follows.
    let mut word_at = 0;
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("::") {
            short.truncate(word_at);
            rest = after;
            continue;
        }
        short.push(letter);
        rest = &rest[letter.len_utf8()..];
        if !letter.is_alphanumeric() && letter != '_' {
            word_at = short.len();
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_paths() {
        for (name, short) in [
            ("u64", "u64"),
            ("rare_workloads::structures::nm14::Node", "Node"),
            ("a::b_c::Node<d::Epoch, e::Pair<f::G, 3>>", "Node<Epoch, Pair<G, 3>>"),
            ("[core::cell::Cell<u64>; 4]", "[Cell<u64>; 4]"),
            ("(a::B, &dyn c::D)", "(B, &dyn D)"),
            ("a::f::{{closure}}", "{{closure}}"),
        ] {
            assert_eq!(without_paths(name), short);
        }
    }

    #[test]
    fn lists_of_nothing_and_of_too_much_are_refused() {
        assert!(admit(0).is_err() && admit(ALLOCATIONS_MAX + 1).is_err());
        assert_eq!((admit(1), admit(ALLOCATIONS_MAX)), (Ok(()), Ok(())));
    }
}
