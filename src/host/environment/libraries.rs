//! Executables and the libraries that the loader gives them, each named by its content.

use std::{
    collections::VecDeque,
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::source::{Probe, or_none};
use crate::host::{
    artifact::Artifact,
    machine::{Machine, Told, reason},
};

pub(super) fn worker_path(probe: &Probe) -> Told {
    Ok(worker(probe)?.display().to_string())
}

pub(super) fn worker_digest(probe: &Probe) -> Told {
    Ok(artifact(worker(probe)?)?.sha256.clone())
}

pub(super) fn worker_libraries(probe: &Probe) -> Told {
    libraries(probe, worker(probe)?)
}

pub(super) fn worker_build_id(probe: &Probe) -> Told {
    build_id(worker(probe)?)
}

pub(super) fn own_path(probe: &Probe) -> Told {
    Ok(own(probe)?.display().to_string())
}

pub(super) fn own_size(probe: &Probe) -> Told {
    Ok(artifact(&own(probe)?)?.size.to_string())
}

pub(super) fn own_digest(probe: &Probe) -> Told {
    Ok(artifact(&own(probe)?)?.sha256.clone())
}

pub(super) fn own_build_id(probe: &Probe) -> Told {
    build_id(&own(probe)?)
}

pub(super) fn own_libraries(probe: &Probe) -> Told {
    libraries(probe, &own(probe)?)
}

#[cfg(target_env = "gnu")]
pub(super) fn libc_version(probe: &Probe) -> Told {
    probe.live()?;
    // SAFETY: the call takes nothing and returns a pointer to a constant of the C library.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: that constant is a text with a terminating zero, and lives as long as the process.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    Ok(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn libc_version(_: &Probe) -> Told {
    Err("not glibc: this C library does not tell its version".into())
}

/// Returns the executables whose rows read them whole.
pub(super) fn executables(machine: &Machine) -> Vec<PathBuf> {
    let own = machine.is_live().then(env::current_exe).and_then(Result::ok);
    machine.worker.map(Path::to_owned).into_iter().chain(own).collect()
}

fn worker<'m>(probe: &Probe<'m>) -> Result<&'m Path, String> {
    probe.machine.worker.ok_or_else(|| "no worker was named".into())
}

/// Returns the path of this executable; not the worker's.
fn own(probe: &Probe) -> Result<PathBuf, String> {
    probe.live()?;
    env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))
}

fn artifact(path: &Path) -> Result<Arc<Artifact>, String> {
    Artifact::read(path).map_err(|error| reason(&path.display().to_string(), &error))
}

fn build_id(path: &Path) -> Told {
    let artifact = artifact(path)?;
    let object = artifact.object.as_ref().map_err(|error| format!("{}: {error}", path.display()))?;
    object.build_id.clone().ok_or_else(|| "the linker wrote none".into())
}

/// Lists what the executable needs, directly or through another library: path and digest.
///
/// Found as the loader finds them, but for its cache: the file's own search path, the configured and the usual folders.
fn libraries(probe: &Probe, executable: &Path) -> Told {
    let folders = folders(probe);
    let mut queue = VecDeque::from(needed(executable)?);
    let mut seen: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    while let Some((name, search)) = queue.pop_front() {
        if seen.contains(&name) {
            continue;
        }
        let found = search.iter().chain(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file());
        match found {
            Some(path) => {
                lines.push(format!("{} sha256 {}", path.display(), artifact(&path)?.sha256));
                queue.extend(needed(&path)?);
            }
            None => lines.push(format!("{name}: not found")),
        }
        seen.push(name);
    }
    lines.sort();
    Ok(or_none(lines.join("; ")))
}

/// Returns the libraries that a file names, each with the folders that the file itself wants searched.
fn needed(path: &Path) -> Result<Vec<(String, Vec<PathBuf>)>, String> {
    let artifact = artifact(path)?;
    let object = artifact.object.as_ref().map_err(|error| format!("{}: {error}", path.display()))?;
    let Some(dynamic) = &object.dynamic else { return Ok(Vec::new()) };
    let origin = path.parent().unwrap_or(Path::new("/")).display().to_string();
    let expand = |folder: &String| PathBuf::from(folder.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin));
    let search: Vec<PathBuf> = dynamic.search.iter().map(expand).collect();
    Ok(dynamic.needed.iter().map(|name| (name.clone(), search.clone())).collect())
}

fn folders(probe: &Probe) -> Vec<PathBuf> {
    let configured = probe.tree.glob("/etc/ld.so.conf.d/*.conf").into_iter().map(|(_, path)| path);
    let configured = configured.chain(["/etc/ld.so.conf".to_owned()]).filter_map(|path| {
        let text = probe.tree.text(&path).ok()?;
        Some(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from).collect::<Vec<_>>())
    });
    let usual = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from);
    configured.flatten().chain(usual).collect()
}
