//! Executables and libraries as files: digest, build id, and what they ask of the loader.
//!
//! Each is read once and remembered while its inode, size and times stay the same: a snapshot is taken before and after
//! a run, and executables are large.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    digest,
    elf::{Dynamic, Elf, ElfError},
};

/// What one file is.
#[derive(Debug)]
pub struct Artifact {
    /// SHA-256 of the file, 64 hexadecimal digits.
    pub sha256: String,
    /// Bytes of the file.
    pub size: u64,
    /// What the file says of itself, if it is an ELF file.
    pub object: Result<Object, ElfError>,
}

/// What an ELF file says of itself.
#[derive(Debug)]
pub struct Object {
    /// Build id, if the linker wrote one.
    pub build_id: Option<String>,
    /// Dynamic section, if it is linked dynamically.
    pub dynamic: Option<Dynamic>,
}

/// Device, inode, size, modification and change time with nanoseconds.
type Version = (u64, u64, u64, (i64, i64), (i64, i64));

/// One lock for each file, so that who asks for a file that is being read waits for it rather than reading it again.
type Slot = Arc<Mutex<Option<(Version, Arc<Artifact>)>>>;

static KNOWN: Mutex<BTreeMap<PathBuf, Slot>> = Mutex::new(BTreeMap::new());

impl Artifact {
    /// Reads a file, or remembers it.
    ///
    /// # Errors
    /// The error of opening or reading it. A file that is no ELF file is not an error here.
    pub fn read(path: &Path) -> io::Result<Arc<Self>> {
        let slot = Arc::clone(lock(&KNOWN).entry(path.to_owned()).or_default());
        let mut slot = lock(&slot);
        let mut file = File::open(path)?;
        let version = version(&file.metadata()?);
        if let Some((known, artifact)) = &*slot
            && *known == version
        {
            return Ok(Arc::clone(artifact));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let artifact = Arc::new(Self::of(&bytes));
        *slot = Some((version, Arc::clone(&artifact)));
        Ok(artifact)
    }

    fn of(bytes: &[u8]) -> Self {
        let object = Elf::parse(bytes).and_then(|elf| Ok(Object { build_id: elf.build_id(), dynamic: elf.dynamic()? }));
        Self { sha256: digest::of_bytes(bytes), size: bytes.len() as u64, object }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no code panics while it holds an artifact")
}

fn version(file: &Metadata) -> Version {
    (file.dev(), file.ino(), file.size(), (file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        let first = Artifact::read(&path).unwrap();
        assert_eq!((first.sha256.as_str(), first.size), (digest::of_bytes(b"abc").as_str(), 3));
        assert_eq!(first.object.as_ref().err(), Some(&ElfError::NotElf));
        assert!(Arc::ptr_eq(&first, &Artifact::read(&path).unwrap()), "an unchanged file is remembered");
        fs::write(&path, "abcd").unwrap();
        assert_eq!(Artifact::read(&path).unwrap().sha256, digest::of_bytes(b"abcd"));
        assert!(Artifact::read(folder.path()).is_err());
    }

    #[test]
    fn reads_this_test() {
        let artifact = Artifact::read(Path::new("/proc/self/exe")).unwrap();
        let object = artifact.object.as_ref().unwrap();
        assert!(object.dynamic.as_ref().unwrap().is_executable);
    }
}
