//! What a worker leaves behind: processes that outlive it, also those that left its group and session.
//!
//! `rare` is a child subreaper, so orphans become its own children and cannot hide. One worker runs at a time, so every
//! child that was not there before the worker is the worker's. When `rare` itself is killed, the kernel kills the worker,
//! but not what has left the worker's session: nobody is left to look for it.

use std::{
    collections::BTreeSet,
    fs, io,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid, waitpid,
    },
};

/// A killed process is gone within this, unless it is stuck in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Makes orphaned descendants children of this process.
pub(super) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Children of this process that have nothing to do with the next worker.
pub(super) struct Others(BTreeSet<i32>);

impl Others {
    /// Notes the present children. Cheap when there are none.
    pub(super) fn now() -> Self {
        Self(if any_children() { children().into_iter().map(|child| child.pid).collect() } else { BTreeSet::new() })
    }

    /// Kills every descendant of the worker, after the worker itself was reaped. One by one and not by their group,
    /// whose number may be another's by now.
    ///
    /// Returns a word on each process that was still running, and on those that withstood.
    pub(super) fn kill_rest(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut named = BTreeSet::new();
        let deadline = Instant::now() + KILL_PATIENCE;
        while any_children() {
            let rest: Vec<Child> = children().into_iter().filter(|child| !self.0.contains(&child.pid)).collect();
            if rest.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                found.extend(rest.iter().map(|child| format!("{} does not die", child.describe())));
                break;
            }
            for child in rest {
                // One that had ended by itself, and that the worker had only not waited for, is no leftover.
                if named.insert(child.pid) && !child.dead {
                    found.push(child.describe());
                }
                child.end();
            }
            // The dead hand us their own children: look again.
            sleep(Duration::from_millis(1));
        }
        found
    }
}

/// A child of this process.
struct Child {
    pid: i32,
    name: String,
    /// A zombie: only its exit status is left.
    dead: bool,
}

impl Child {
    fn describe(&self) -> String {
        format!("process {} (`{}`)", self.pid, self.name)
    }

    /// Kills the process and reaps it if it is dead already.
    fn end(&self) {
        let pid = Pid::from_raw(self.pid).expect("a listed process has a positive number");
        let _ = kill_process(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Tells whether this process has any child, by one system call.
fn any_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Lists the children of this process, dead ones too.
fn children() -> Vec<Child> {
    let parent = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, state, of_parent) = parse_stat(&stat)?;
        (of_parent == parent).then(|| Child { pid, name: name.to_owned(), dead: state == "Z" })
    })
    .collect()
}

/// Returns the name, the state and the parent of a process from `/proc/<pid>/stat`.
fn parse_stat(stat: &str) -> Option<(&str, &str, u32)> {
    // The name may hold spaces and parentheses; only the last one closes it.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split_whitespace();
    Some((name, fields.next()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_hide_the_parent() {
        assert_eq!(parse_stat("12 (a) R 1 (b)) S 34 12 12 0"), Some(("a) R 1 (b)", "S", 34)));
        assert_eq!(parse_stat("12 (sh"), None);
    }
}
