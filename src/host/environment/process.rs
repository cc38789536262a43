//! This process: how it was started, with which rights, and in which environment.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
};

use super::source::{Probe, or_none};
use crate::host::{digest, machine::Told};

/// Variables whose values are recorded, by their beginnings: what allocators, loaders and runtimes read. Others may be
/// secret, so only their count and a common digest are kept.
const RECORDED: &[&str] = &[
    "MALLOC_",
    "MIMALLOC_",
    "SNMALLOC_",
    "TCMALLOC_",
    "_RJEM_MALLOC_CONF",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUST_MIN_STACK",
    "CARGO_PROFILE_",
    "OMP_",
    "KMP_",
    "GOMP_",
    "RARE_WORKER",
    "RARE_MACHINE_LOCK",
    "LC_ALL",
];

pub(super) fn arguments(probe: &Probe) -> Told {
    let bytes = probe.tree.bytes("/proc/self/cmdline")?;
    let arguments = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|&byte| byte == 0);
    Ok(arguments.map(|argument| quoted(&String::from_utf8_lossy(argument))).collect::<Vec<_>>().join(" "))
}

/// Quotes an argument that a shell would split.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

pub(super) fn working_folder(probe: &Probe) -> Told {
    probe.live()?;
    env::current_dir().map(|folder| folder.display().to_string()).map_err(|error| format!("getcwd: {error}"))
}

/// Name and number of the effective user.
pub(super) fn user(probe: &Probe) -> Told {
    probe.live()?;
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = probe.tree.text("/etc/passwd").unwrap_or_else(|_| "".into());
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number == id).then(|| name.to_owned())
    });
    Ok(name.map_or_else(|| id.clone(), |name| format!("{name} ({id})")))
}

pub(super) fn nice(probe: &Probe) -> Told {
    probe.live()?;
    let nice = rustix::process::getpriority_process(None);
    nice.map(|level| level.to_string()).map_err(|error| format!("getpriority: {error}"))
}

pub(super) fn scheduler(probe: &Probe) -> Told {
    const NAMES: [&str; 8] = ["other", "fifo", "rr", "batch", "iso", "idle", "deadline", "ext"];
    probe.live()?;
    // SAFETY: the call takes a process number, 0 for the caller, and touches no memory of ours.
    let policy = unsafe { libc::sched_getscheduler(0) };
    // A policy may carry the flag that children do not inherit it.
    let name = usize::try_from(policy & !libc::SCHED_RESET_ON_FORK).ok().and_then(|policy| NAMES.get(policy));
    match policy {
        -1 => Err(format!("sched_getscheduler: {}", std::io::Error::last_os_error())),
        _ => name.map_or_else(|| Err(format!("unknown policy {policy}")), |name| Ok((*name).into())),
    }
}

/// Deviations from the usual execution domain, such as switched off address randomisation.
pub(super) fn personality(probe: &Probe) -> Told {
    const FLAGS: [(u32, &str); 3] = [
        (0x004_0000, "no address randomisation"),
        (0x020_0000, "legacy memory layout"),
        (0x040_0000, "read implies exec"),
    ];
    let text = probe.tree.text("/proc/self/personality")?;
    let bits =
        u32::from_str_radix(&text, 16).map_err(|_| format!("not a number: `{text}` in /proc/self/personality"))?;
    let set = FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name);
    Ok(or_none(set.collect::<Vec<_>>().join(", ")))
}

pub(super) fn timer_slack(probe: &Probe) -> Told {
    probe.live()?;
    rustix::thread::current_timer_slack().map(|nanos| nanos.to_string()).map_err(|error| format!("prctl: {error}"))
}

pub(super) fn huge_pages_disabled(probe: &Probe) -> Told {
    probe.live()?;
    let disabled = rustix::thread::transparent_huge_pages_are_disabled();
    disabled.map(|off| if off { "yes" } else { "no" }.into()).map_err(|error| format!("prctl: {error}"))
}

pub(super) fn variable_count(probe: &Probe) -> Told {
    probe.live()?;
    Ok(env::vars_os().count().to_string())
}

/// Bytes that the environment takes on the stack: `NAME=VALUE` and a zero each.
pub(super) fn variable_bytes(probe: &Probe) -> Told {
    probe.live()?;
    Ok(env::vars_os().map(|(name, value)| name.len() + value.len() + 2).sum::<usize>().to_string())
}

/// Digest of the sorted environment, so that a change is seen without telling what may be secret.
pub(super) fn variable_digest(probe: &Probe) -> Told {
    probe.live()?;
    let mut variables: Vec<(OsString, OsString)> = env::vars_os().collect();
    variables.sort();
    let mut bytes = Vec::new();
    for (name, value) in variables {
        for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
            bytes.extend_from_slice(part);
        }
    }
    Ok(digest::of_bytes(&bytes))
}

pub(super) fn variables(probe: &Probe) -> Told {
    probe.live()?;
    let mut recorded: Vec<String> = env::vars_os()
        .filter(|(name, _)| is_recorded(name))
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
        .collect();
    recorded.sort();
    Ok(or_none(recorded.join(" ")))
}

fn is_recorded(name: &OsStr) -> bool {
    RECORDED.iter().any(|beginning| name.as_bytes().starts_with(beginning.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_variables_are_recorded() {
        for name in
            ["MALLOC_CONF", "MIMALLOC_LARGE_OS_PAGES", "GLIBC_TUNABLES", "LD_PRELOAD", "RUSTFLAGS", "OMP_NUM_THREADS"]
        {
            assert!(is_recorded(OsStr::new(name)), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "HOME", "GITHUB_TOKEN", "XMALLOC_CONF"] {
            assert!(!is_recorded(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("specs/bst.yaml"), "specs/bst.yaml");
        assert_eq!(quoted("it's a name"), "'it'\\''s a name'");
        assert_eq!(quoted(""), "''");
    }
}
