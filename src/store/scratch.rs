//! A folder that lasts as long as one trial: what a tool is given to read, and where it writes.

use std::{fs, io, path::PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::StoreError;

/// The longest output of a tool that is read back. What is longer was not written by a trial of ours.
const LONGEST: u64 = 256 << 20;

/// A folder of temporary files, removed when dropped.
#[derive(Debug)]
pub struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Creates one in the system's folder of temporary files: fifos need a local file system, reports may lie elsewhere.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn new() -> Result<Self, StoreError> {
        let folder = tempfile::Builder::new().prefix("rare-").tempdir();
        folder.map(Self).map_err(StoreError::io("create a folder in", &std::env::temp_dir()))
    }

    /// Returns the path of a file in it, whether or not it exists.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file for a tool.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path(name);
        fs::write(&path, content).map_err(StoreError::io("write", &path))
    }

    /// Makes a fifo that this user alone may open.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn fifo(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name);
        let made = mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
        made.map_err(|error| StoreError::io("make the fifo", &path)(error.into()))
    }

    /// Reads what a tool wrote.
    ///
    /// # Errors
    /// As reading a file; [`io::ErrorKind::FileTooLarge`] when it is longer than any honest output.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let path = self.path(name);
        if path.metadata()?.len() > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::read(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    #[test]
    fn everything_goes_with_the_folder() {
        let scratch = Scratch::new().unwrap();
        scratch.write("a", b"content").unwrap();
        scratch.fifo("b").unwrap();
        assert_eq!(scratch.read("a").unwrap(), b"content");
        assert!(scratch.path("b").metadata().unwrap().file_type().is_fifo());
        assert!(scratch.read("c").is_err());
        let path = scratch.path("a");
        drop(scratch);
        assert!(!path.parent().unwrap().exists());
    }
}
