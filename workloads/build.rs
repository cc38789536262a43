//! Records what this build is made of: a digest of the sources, the compiler, its flags, the allocators' versions.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

/// Crates that carry the linked allocators.
const ALLOCATOR_CRATES: [&str; 3] = ["mimalloc", "snmalloc-rs", "tikv-jemallocator"];

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let lock = root.join("../Cargo.lock");
    let lock_text = fs::read_to_string(&lock).unwrap_or_default();

    let mut files = vec![root.join("Cargo.toml")];
    collect(&root.join("src"), &mut files);
    if lock.exists() {
        files.push(lock);
    }
    for file in ["src", "Cargo.toml", "../Cargo.lock"] {
        println!("cargo::rerun-if-changed={file}");
    }

    export("SOURCE_SHA256", &digest(&root, files));
    export("PROFILE", &variable("PROFILE"));
    export("OPT_LEVEL", &variable("OPT_LEVEL"));
    export("TARGET", &variable("TARGET"));
    export("RUSTC", &compiler_version());
    export("RUSTFLAGS", &env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default());
    let versions: Vec<String> = ALLOCATOR_CRATES
        .iter()
        .filter_map(|name| Some(format!("{name}={}", locked_version(&lock_text, name)?)))
        .collect();
    export("ALLOCATOR_CRATES", &versions.join(" "));
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name} for build scripts"))
}

fn export(name: &str, value: &str) {
    println!("cargo::rustc-env=RARE_{name}={value}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are readable: the compiler reads them too") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// Hashes names and contents, each with its length before it, so that no two sets of files look alike.
fn digest(root: &Path, files: Vec<PathBuf>) -> String {
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|path| (path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned(), path))
        .collect();
    named.sort();
    let mut hasher = Sha256::new();
    for (name, path) in named {
        let content = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for part in [name.as_bytes(), &content] {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn compiler_version() -> String {
    let output = Command::new(variable("RUSTC")).arg("--version").output().expect("the compiler runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Finds `version` of a package in the text of a lock file.
fn locked_version(lock: &str, name: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(rest.split('"').next()?.to_owned())
}
