//! Looks at a library that is to replace the system's allocator, before any trial.
//!
//! The loader only warns when it cannot preload a library, and the numbers of the system's allocator would then carry
//! another name. So everything that makes it skip one is refused here; that the library really served a trial is the
//! worker's proof.

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rare_workloads::protocol::Preload;

use super::{
    digest,
    elf::{self, Elf, ElfError},
};

/// Functions that a replacement must define, or the system's would serve beside it.
const REQUIRED: [&str; 2] = ["malloc", "free"];

/// Why a library cannot be preloaded. `path` is as the spec wrote it, control characters escaped: a message is one line.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what each is")]
pub enum PreloadError {
    #[error("cannot preload `{path}`: it cannot be resolved")]
    Missing { path: String, source: io::Error },
    #[error("cannot preload `{path}`: `{resolved}` contains {what}, which the loader would not take as part of a name")]
    OddName { path: String, resolved: String, what: &'static str },
    #[error("cannot preload `{path}`: it is not a regular file")]
    NotAFile { path: String },
    #[error("cannot preload `{path}`: it cannot be read")]
    Unreadable { path: String, source: io::Error },
    #[error("cannot preload `{path}`: {source}")]
    NotElf { path: String, source: ElfError },
    #[error("cannot preload `{path}`: it was built for another architecture (ELF machine {machine})")]
    OtherMachine { path: String, machine: u16 },
    #[error("cannot preload `{path}`: it is not a shared library (ELF type {kind})")]
    NotShared { path: String, kind: u16 },
    #[error("cannot preload `{path}`: it is an executable, not a shared library")]
    Executable { path: String },
    #[error("cannot preload `{path}`: it does not export `{symbol}`, so the system's allocator would still serve")]
    NoAllocator { path: String, symbol: &'static str },
}

/// Checks that the loader will preload the library at `path`, and names it by its content.
///
/// A relative path starts at the working folder. The result holds the path resolved of links.
///
/// # Errors
/// [`PreloadError`] says what the loader would stumble over.
pub fn inspect(path: &str) -> Result<Preload, PreloadError> {
    let named = || shown(path);
    refuse_odd_name(path, path)?;
    let resolved = fs::canonicalize(path).map_err(|source| PreloadError::Missing { path: named(), source })?;
    let resolved = utf8(path, resolved)?;
    refuse_odd_name(path, &resolved)?;
    let bytes = read(path, Path::new(&resolved))?;
    check(path, &bytes)?;
    Ok(Preload { path: resolved, sha256: digest::of_bytes(&bytes) })
}

/// `LD_PRELOAD` separates libraries by blanks and colons, has no quoting, and expands `$`.
fn refuse_odd_name(path: &str, resolved: &str) -> Result<(), PreloadError> {
    let what = resolved.chars().find_map(|c| match c {
        ' ' => Some("a space"),
        ':' => Some("a colon"),
        '$' => Some("a dollar sign"),
        c if c.is_control() => Some("a control character"),
        _ => None,
    });
    what.map_or(Ok(()), |what| Err(PreloadError::OddName { path: shown(path), resolved: shown(resolved), what }))
}

fn shown(path: &str) -> String {
    path.chars().fold(String::new(), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
        shown
    })
}

fn utf8(path: &str, resolved: PathBuf) -> Result<String, PreloadError> {
    resolved.into_os_string().into_string().map_err(|resolved| PreloadError::OddName {
        path: shown(path),
        resolved: shown(&resolved.to_string_lossy()),
        what: "bytes that are not UTF-8",
    })
}

fn read(path: &str, resolved: &Path) -> Result<Vec<u8>, PreloadError> {
    let unreadable = |source| PreloadError::Unreadable { path: shown(path), source };
    // Before opening: opening a pipe would wait for its writer.
    if !resolved.metadata().map_err(unreadable)?.is_file() {
        return Err(PreloadError::NotAFile { path: shown(path) });
    }
    let mut bytes = Vec::new();
    fs::File::open(resolved).map_err(unreadable)?.read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn check(path: &str, bytes: &[u8]) -> Result<(), PreloadError> {
    let path = shown(path);
    let elf = match Elf::parse(bytes) {
        Ok(elf) => elf,
        Err(source) => return Err(PreloadError::NotElf { path, source }),
    };
    if elf.machine != elf::MACHINE {
        return Err(PreloadError::OtherMachine { path, machine: elf.machine });
    }
    if elf.kind != elf::ET_DYN {
        return Err(PreloadError::NotShared { path, kind: elf.kind });
    }
    match elf.dynamic() {
        Ok(Some(dynamic)) if !dynamic.is_executable => {}
        Ok(_) => return Err(PreloadError::Executable { path }),
        Err(source) => return Err(PreloadError::NotElf { path, source }),
    }
    for symbol in REQUIRED {
        match elf.exports(symbol) {
            Ok(true) => {}
            Ok(false) => return Err(PreloadError::NoAllocator { path, symbol }),
            Err(source) => return Err(PreloadError::NotElf { path, source }),
        }
    }
    Ok(())
}
