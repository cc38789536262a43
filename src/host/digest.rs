//! SHA-256 of bytes and of files, as 64 hexadecimal digits.
//!
//! The digest of a file is kept while its inode, size and times stay the same: a snapshot is taken before and after a
//! run, and its executables are large.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use sha2::{Digest, Sha256};

/// Device, inode, size, modification and change time with nanoseconds.
type Version = (u64, u64, u64, (i64, i64), (i64, i64));

static KNOWN: Mutex<BTreeMap<PathBuf, (Version, String)>> = Mutex::new(BTreeMap::new());

/// Returns the digest of some bytes.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the digest of a file.
///
/// # Errors
/// The error of opening or reading it.
pub fn of_file(path: &Path) -> io::Result<String> {
    /// Large enough that system calls do not show beside the hashing.
    const CHUNK: usize = 256 * 1024;
    let mut file = File::open(path)?;
    let version = version(&file.metadata()?);
    if let Some((known, digest)) = known().get(path)
        && *known == version
    {
        return Ok(digest.clone());
    }
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            length => hasher.update(&chunk[..length]),
        }
    }
    let digest = hex(&hasher.finalize());
    known().insert(path.to_owned(), (version, digest.clone()));
    Ok(digest)
}

fn known() -> std::sync::MutexGuard<'static, BTreeMap<PathBuf, (Version, String)>> {
    KNOWN.lock().expect("no code panics while it holds the digests")
}

fn version(file: &Metadata) -> Version {
    (file.dev(), file.ino(), file.size(), (file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_another_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of_file(&path).unwrap(), abc);
        assert_eq!(of_file(&path).unwrap(), of_bytes(b"abc"));
        std::fs::write(&path, "abcd").unwrap();
        assert_eq!(of_file(&path).unwrap(), of_bytes(b"abcd"));
        assert!(of_file(folder.path()).is_err());
    }
}
