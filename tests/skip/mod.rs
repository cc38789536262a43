//! How a test says that it skips a part of itself.

use std::io::{self, Write};

/// Says that a part is skipped because the machine lacks something.
///
/// # Panics
/// Where `RARE_TESTS_SKIP=refused`, as in CI, where everything is installed: there a skipped part is a failure.
pub fn skip(reason: &str) {
    // Not by `println!`, which the harness keeps to itself when a test passes. A lost line is worth no failure.
    let _ = writeln!(io::stderr(), "skipped: {reason}");
    let refused = std::env::var_os("RARE_TESTS_SKIP").is_some_and(|rule| rule == "refused");
    assert!(!refused, "nothing may be skipped here: {reason}");
}
