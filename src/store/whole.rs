//! Files that appear whole or not at all.
//!
//! A temporary file beside the target is written and made durable, then takes the target's name, then the folder is
//! made durable. A crash leaves at most a hidden file, which [`sweep`] removes.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use super::StoreError;

/// Prefix of temporary files. Hidden files are no part of a run or report.
const TEMPORARY: &str = ".new-";

/// Writes a file whole: readers see the old content or the new one, also after a crash.
///
/// # Errors
/// [`StoreError::Io`] with the act that failed; the old content is then untouched.
pub fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().expect("every file of the store lies in a folder");
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY)
        // A report is there to be read by others; tempfile alone would make it 0600.
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(StoreError::io("create", path))?;
    // Not through the temporary file, whose errors repeat its passing name.
    file.as_file_mut().write_all(content).map_err(StoreError::io("write", path))?;
    file.as_file().sync_all().map_err(StoreError::io("make durable", path))?;
    file.persist(path).map_err(|error| StoreError::Io { act: "name", path: path.to_owned(), source: error.error })?;
    sync_folder(folder)
}

/// Creates a folder and its missing parents, durably.
///
/// # Errors
/// [`StoreError::Io`].
pub fn create_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_folder(parent)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::io("create", path)(error));
        }
        _ => {}
    }
    sync_folder(parent.unwrap_or(Path::new(".")))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::io("make durable", folder))
}

/// Reads a file.
///
/// # Errors
/// [`StoreError::Malformed`] for a device, which could go on for ever; [`StoreError::Io`].
pub fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    let metadata = fs::metadata(path).map_err(StoreError::io("read", path))?;
    if !metadata.is_file() {
        return Err(StoreError::Malformed { path: path.to_owned(), why: "it is not a regular file".to_owned() });
    }
    fs::read(path).map_err(StoreError::io("read", path))
}

/// Removes a file if it is there.
///
/// # Errors
/// [`StoreError::Io`].
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.map_err(StoreError::io("remove", path)),
    }
}

/// Makes a folder appear whole: `fill` writes into a hidden one, which then takes the name. The name must be free.
///
/// # Errors
/// [`StoreError::Io`], or that of `fill`.
pub(super) fn write_folder(path: &Path, fill: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let parent = path.parent().expect("every folder of the store lies in a folder");
    create_folder(parent)?;
    let hidden = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(StoreError::io("create", path))?;
    fill(hidden.path())?;
    fs::rename(hidden.path(), path).map_err(StoreError::io("name", path))?;
    // It has another name now; there is nothing left to remove.
    let _ = hidden.keep();
    sync_folder(parent)
}

/// Copies the files of a folder and of those below it, without hidden ones, into one that is there.
///
/// # Errors
/// [`StoreError::Io`], and [`StoreError::Malformed`] for what is no file.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    for name in names(from)?.into_iter().filter(|name| !name.starts_with('.')) {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            create_folder(&to)?;
            copy(&from, &to)?;
        } else {
            write(&to, &read(&from)?)?;
        }
    }
    Ok(())
}

/// Removes what killed writers left in a folder and below. Call it only while holding the folder's lock.
///
/// # Errors
/// [`StoreError::Io`].
pub fn sweep(folder: &Path) -> Result<(), StoreError> {
    for name in names(folder)? {
        let path = folder.join(&name);
        // A link is not followed: it is none of ours.
        let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        match (name.starts_with(TEMPORARY), is_folder) {
            (true, true) => fs::remove_dir_all(&path).map_err(StoreError::io("remove", &path))?,
            (true, false) => remove(&path)?,
            (false, true) => sweep(&path)?,
            (false, false) => {}
        }
    }
    Ok(())
}

/// Lists the names in a folder, sorted; none if it does not exist.
///
/// Names that are not UTF-8 are not ours and are left out.
///
/// # Errors
/// [`StoreError::Io`].
pub fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("list", folder))?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("list", folder))?;
        names.extend(entry.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_content_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.md");
        write(&path, b"old").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()).unwrap(), ["report.md"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o444, 0o444);
    }

    #[test]
    fn sweeps_only_its_own_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("runs/.new-run")).unwrap();
        for name in [".new-abc", ".lock", "trials.jsonl", "runs/.new-file", "runs/.new-run/trials.jsonl"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        sweep(folder.path()).unwrap();
        assert_eq!(names(folder.path()).unwrap(), [".lock", "runs", "trials.jsonl"]);
        assert_eq!(names(&folder.path().join("runs")).unwrap(), [] as [&str; 0]);
    }

    #[test]
    fn a_folder_that_cannot_be_filled_does_not_appear() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/run");
        write_folder(&path, |hidden| write(&hidden.join("missing/file"), b"")).unwrap_err();
        assert_eq!(names(&folder.path().join("runs")).unwrap(), [] as [&str; 0]);
        write_folder(&path, |hidden| write(&hidden.join("file"), b"")).unwrap();
        assert_eq!(names(&path).unwrap(), ["file"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o555, 0o555);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = write(Path::new("/nonexistent/folder/report.md"), b"").unwrap_err();
        assert_eq!(error.to_string(), "cannot create `/nonexistent/folder/report.md`");
    }
}
