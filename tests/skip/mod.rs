//! How a test says that it skips a part of itself.

/// Says that a part is skipped because the machine lacks something.
///
/// # Panics
/// Where `RARE_TESTS_SKIP=refused`, as in CI, where everything is installed: there a skipped part is a failure.
pub fn skip(reason: &str) {
    println!("skipped: {reason}");
    let refused = std::env::var_os("RARE_TESTS_SKIP").is_some_and(|rule| rule == "refused");
    assert!(!refused, "nothing may be skipped here: {reason}");
}
