//! Locks: one writer of a plan's folder, one measuring run of a machine.
//!
//! By `flock` on a file that also tells who holds it. The kernel releases the lock when the holder dies, however it
//! dies, so there are no stale locks; descriptors close on exec, so no worker inherits one.

use std::{
    env,
    fs::{File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::OFlags,
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::{Deserialize, Serialize};

use super::{StoreError, whole};

/// Environment variable that names another file for the machine's lock: for tests, and for containers that share CPUs
/// but not `/tmp`.
pub const MACHINE_LOCK_VARIABLE: &str = "RARE_MACHINE_LOCK";

/// Lock of the machine, where every user can reach it.
const MACHINE_LOCK: &str = "/tmp/rare-measuring.lock";

/// Lock of a plan's folder.
const FOLDER_LOCK: &str = ".lock";

/// The holder's name is shorter than this; what is longer was not written by us and is not read.
const HOLDER_BYTES: u64 = 4096;

/// Who holds a lock, as others are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process.
    pub pid: u32,
    /// What it does, such as `rare make specs/bst.yaml`.
    pub command: String,
    /// The plan it runs: 12 hexadecimal digits.
    pub plan: String,
    /// Since when, RFC 3339 UTC.
    pub since: String,
}

impl Holder {
    /// Names this process.
    pub fn this_process(command: &str, plan: &str, since: &str) -> Self {
        // A long command line must not push the rest out of what others read.
        let command = command.chars().take(500).collect();
        Self { pid: std::process::id(), command, plan: plan.to_owned(), since: since.to_owned() }
    }
}

/// A held lock; released on drop.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of the machine, under which trials are measured.
    ///
    /// # Errors
    /// [`StoreError::Locked`] naming the holder, at once; [`StoreError::Io`].
    pub fn machine(holder: &Holder) -> Result<Self, StoreError> {
        let path = env::var_os(MACHINE_LOCK_VARIABLE).map_or_else(|| PathBuf::from(MACHINE_LOCK), PathBuf::from);
        Self::take(&path, "this machine, where one run measures at a time,", holder)
    }

    /// Takes the lock of a plan's folder, under which its files are written, and removes what a killed writer left.
    ///
    /// # Errors
    /// As [`Lock::machine`].
    pub fn folder(folder: &Path, holder: &Holder) -> Result<Self, StoreError> {
        let lock = Self::take(&folder.join(FOLDER_LOCK), &format!("`{}`", folder.display()), holder)?;
        whole::sweep(folder)?;
        Ok(lock)
    }

    fn take(path: &Path, what: &str, holder: &Holder) -> Result<Self, StoreError> {
        let mut file = open(path).map_err(StoreError::io("open the lock", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Locked { what: what.to_owned(), holder: describe(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("take the lock", path)(error)),
        }
        // The name is a courtesy: a second user may lock a file that only its owner may write.
        let _ = write_holder(&mut file, holder);
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file releases the lock; an old name must not be taken for the next holder's.
        let _ = self.file.set_len(0);
    }
}

/// Opens a lock file for as much as this user may, and creates it if it is not there.
///
/// Never follows a link and never opens with `O_CREAT` what is there: in `/tmp` a link could be another user's trap, and
/// the kernel (`fs.protected_regular`) refuses `O_CREAT` on another user's file even if anyone may write it.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let existing = |write: bool| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let opened = match existing(true) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match create(path) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing(true),
            created => created,
        },
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
            existing(false)
        }
        opened => opened,
    }?;
    if !opened.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(opened)
}

/// Creates a lock file that anyone may lock and sign.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    // Not by the mode of the creation, which the umask would narrow.
    file.set_permissions(Permissions::from_mode(0o666))?;
    Ok(file)
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(holder)?)
}

/// Tells who holds a lock.
fn describe(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(HOLDER_BYTES).read_to_string(&mut text));
    let Some(holder) = read.ok().and_then(|_| serde_json::from_str::<Holder>(&text).ok()) else {
        return "a process that left no name".to_owned();
    };
    let ended = Pid::from_raw(holder.pid.cast_signed()).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    let Holder { pid, command, plan, since } = holder;
    if ended {
        return format!("a process that left no name, after process {pid} (`{command}`), which has ended");
    }
    format!("process {pid} (`{command}`, plan {plan}, since {since})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        Holder::this_process("rare make bst.yaml", "0123456789ab", "2026-01-02T03:04:05Z")
    }

    #[test]
    fn a_second_taker_is_told_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::folder(folder.path(), &holder()).unwrap();
        let error = Lock::folder(folder.path(), &holder()).unwrap_err().to_string();
        let expected = format!(
            "`{}` is in use by process {} (`rare make bst.yaml`, plan 0123456789ab, since 2026-01-02T03:04:05Z)",
            folder.path().display(),
            std::process::id()
        );
        assert_eq!(error, expected);
        drop(lock);
        Lock::folder(folder.path(), &holder()).unwrap();
    }

    #[test]
    fn anyone_may_lock_and_a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        Lock::take(&path, "it", &holder()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Lock::take(&link, "it", &holder()), Err(StoreError::Io { .. })));
    }

    #[test]
    fn a_dead_name_is_not_taken_for_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine");
        let _lock = Lock::take(&path, "it", &holder()).unwrap();
        // Above the largest pid that Linux gives out.
        let dead = Holder { pid: 1 << 30, ..holder() };
        std::fs::write(&path, serde_json::to_vec(&dead).unwrap()).unwrap();
        let error = Lock::take(&path, "it", &holder()).unwrap_err().to_string();
        assert!(error.contains("left no name") && error.contains("has ended"), "{error}");
        std::fs::write(&path, "gibberish").unwrap();
        let error = Lock::take(&path, "it", &holder()).unwrap_err().to_string();
        assert_eq!(error, "it is in use by a process that left no name");
    }
}
