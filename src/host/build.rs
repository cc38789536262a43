//! How this build was made. Filled in by the build script; a text that begins with `?` says why a fact is unknown.

use super::digest;

/// Folder of the sources at build time: where a worker of the same build can be made again. May have gone since.
pub const SOURCE_FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Version of this package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What `rustc -vV` printed.
pub const RUSTC: &str = env!("RARE_BUILD_RUSTC");
/// Target triple.
pub const TARGET: &str = env!("RARE_BUILD_TARGET");
/// Triple of the machine that built.
pub const HOST: &str = env!("RARE_BUILD_HOST");
/// Flags of every compilation.
pub const FLAGS: &str = env!("RARE_BUILD_FLAGS");
/// Instruction set extensions that the compiler might use.
pub const FEATURES: &str = env!("RARE_BUILD_FEATURES");
/// Optimisation level.
pub const OPT_LEVEL: &str = env!("RARE_BUILD_OPT_LEVEL");
/// `release` or `debug`.
pub const PROFILE: &str = env!("RARE_BUILD_PROFILE");
/// Debug information level.
pub const DEBUG_INFO: &str = env!("RARE_BUILD_DEBUG_INFO");
/// `on` or `off`.
pub const DEBUG_ASSERTIONS: &str = env!("RARE_BUILD_DEBUG_ASSERTIONS");
/// What a panic does.
pub const PANIC: &str = env!("RARE_BUILD_PANIC");
/// Settings of the profile: link-time optimisation, code generation units and the like where they are not defaults.
pub const PROFILE_SETTINGS: &str = env!("RARE_BUILD_PROFILE_SETTINGS");
/// Linker and its version.
pub const LINKER: &str = env!("RARE_BUILD_LINKER");
/// Compiler of the allocators written in C and C++.
pub const C_COMPILER: &str = env!("RARE_BUILD_C_COMPILER");
/// Commit of the sources.
pub const COMMIT: &str = env!("RARE_BUILD_COMMIT");
/// Branch of the sources.
pub const BRANCH: &str = env!("RARE_BUILD_BRANCH");
/// How the sources differ from the commit.
pub const CHANGES: &str = env!("RARE_BUILD_CHANGES");
/// Commits of submodules.
pub const SUBMODULES: &str = env!("RARE_BUILD_SUBMODULES");

const LOCK_FILE: &str = include_str!("../../Cargo.lock");

/// Returns the digest of the lock file that this build was made with.
pub fn lock_digest() -> String {
    digest::of_bytes(LOCK_FILE.as_bytes())
}

/// Returns the locked version of a package, or of the several that were built.
pub fn locked_version(package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let versions: Vec<&str> = LOCK_FILE
        .split("[[package]]")
        .filter(|entry| entry.lines().any(|line| line == name))
        .filter_map(|entry| entry.lines().find_map(|line| line.strip_prefix("version = ")))
        .map(|version| version.trim_matches('"'))
        .collect();
    (!versions.is_empty()).then(|| versions.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_locked_allocators() {
        for package in ["tikv-jemallocator", "mimalloc", "snmalloc-rs", "crossbeam-epoch", "seize"] {
            let version = locked_version(package).unwrap_or_else(|| panic!("no {package} in the lock file"));
            assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{package} {version}");
        }
        assert_eq!(locked_version("crossbeam"), None);
    }

    #[test]
    fn knows_its_compiler() {
        assert!(RUSTC.starts_with("rustc "), "{RUSTC}");
        assert!(RUSTC.contains("commit-hash"), "{RUSTC}");
        assert_eq!(DEBUG_ASSERTIONS == "on", cfg!(debug_assertions));
    }
}
