//! Commits one fault on purpose. `.ci/sanitize` demands that the sanitizers report each.
//!
//! Usage: `faulty leak|use-after-free|out-of-bounds|data-race`

mod faults;

fn main() {
    let name = std::env::args().nth(1).expect("the name of a fault");
    assert!(faults::commit(&name), "no fault is called `{name}`");
}
