//! How `perf record` is told to sample a worker, and `perf script` to print the samples.

use super::found::{self, Answer, Missing};

/// Samples a second: a prime-like number next to 1,000, so that samples do not keep step with the timer.
const FREQUENCY: u32 = 999;

/// First version that takes commands on a fifo (`--control fifo:`).
const FIRST_VERSION: (u32, u32) = (5, 11);

/// Perf, found and allowed to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    /// Absolute path.
    pub path: String,
    /// Its own word, such as `6.1.187`.
    pub version: String,
    /// The most precise event that can be asked for here. Which one was recorded, the data tells.
    pub event: Event,
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Cycles of the processor, as precisely as it can.
    Cycles,
    /// A timer of the kernel, where the machine has no counter of cycles or hides it.
    CpuClock,
}

impl Event {
    /// Returns perf's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cycles => "cycles:P",
            Self::CpuClock => "cpu-clock",
        }
    }
}

/// What the kernel lets this user do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// `kernel.perf_event_paranoid`, or why it cannot be read.
    pub paranoid: Result<i64, String>,
    /// Whether an event of the kernel's timer can be opened.
    pub clock: Attempt,
    /// Whether an event of the processor's cycles can be opened.
    pub cycles: Attempt,
}

/// What became of the opening of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It works.
    Works,
    /// The kernel forbids it.
    Forbidden,
    /// It failed otherwise, in words.
    Fails(String),
}

/// Judges what was found in the search path, what it answered to `--version`, and what the kernel permits.
///
/// # Errors
/// [`Missing`] when there is none, when it does not tell a version or is too old, or when this user may not sample: then
/// with the name and the level of the setting that forbids it.
pub fn judge(answer: Option<&Answer>, permission: &Permission) -> Result<Perf, Missing> {
    let (path, version) = found::version("perf", "perf version ", "linux-perf", answer)?;
    if found::numbers(&version) < Some(FIRST_VERSION) {
        let (major, minor) = FIRST_VERSION;
        let what = format!("perf {version} takes no commands on a fifo, as perf {major}.{minor} and later do");
        return Err(Missing::new(what, "`apt install linux-perf` of a newer release"));
    }
    match &permission.clock {
        Attempt::Works => {}
        Attempt::Forbidden => return Err(forbidden(&permission.paranoid)),
        Attempt::Fails(why) => {
            let what = format!("the kernel cannot sample: {why}");
            return Err(Missing::new(what, "use a kernel with CONFIG_PERF_EVENTS"));
        }
    }
    let event = if permission.cycles == Attempt::Works { Event::Cycles } else { Event::CpuClock };
    Ok(Perf { path, version, event })
}

fn forbidden(paranoid: &Result<i64, String>) -> Missing {
    /// Up to here a user may sample processes of his own, in user code.
    const HIGHEST: i64 = 2;
    match paranoid {
        Ok(level) if *level > HIGHEST => Missing::new(
            format!(
                "perf may not sample: kernel.perf_event_paranoid is {level}, and above {HIGHEST} that takes CAP_PERFMON"
            ),
            "`sysctl kernel.perf_event_paranoid=1`",
        ),
        Ok(level) => Missing::new(
            format!(
                "perf may not sample although kernel.perf_event_paranoid is {level}: a filter forbids perf_event_open"
            ),
            "allow perf_event_open in the container, or run outside of it",
        ),
        Err(why) => Missing::new(
            format!("perf may not sample, and kernel.perf_event_paranoid cannot be read: {why}"),
            "`sysctl kernel.perf_event_paranoid=1`; in a container also allow perf_event_open",
        ),
    }
}

impl Perf {
    /// Returns the command line before the worker's own. Nothing is sampled until the worker asks for it.
    ///
    /// `output` is the file that perf writes; `control` and `acknowledgement` are the fifos on which it takes commands and
    /// answers them, and must exist.
    pub fn record(&self, output: &str, control: &str, acknowledgement: &str) -> Vec<String> {
        let frequency = FREQUENCY.to_string();
        let fifos = format!("fifo:{control},{acknowledgement}");
        let words = [
            &self.path,
            "record",
            "-o",
            output,
            "-e",
            self.event.word(),
            "--call-graph",
            "fp",
            "-F",
            &frequency,
            "-D",
            "-1",
            "--control",
            &fifos,
            // Programs are neither copied to the user's home nor read for their identity, which takes a second: the
            // samples are printed at once, and from the same files.
            "--no-buildid",
            "--no-buildid-cache",
            "--",
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Returns the whole command line that prints the samples as [`super::profile::read`] reads them.
    ///
    /// Without the name of the thread, which may hold anything, and with mangled names, which hold no blanks. Without
    /// source lines and inlined functions: some versions start another program for each of them, for minutes in all.
    pub fn script(&self, data: &str) -> Vec<String> {
        let words = [
            &self.path,
            "script",
            "-i",
            data,
            "--force",
            "--no-demangle",
            "--no-inline",
            "--show-lost-events",
            "-F",
            "tid,time,event,period,ip,sym,symoff,dso",
        ];
        words.map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(printed: &str, permission: &Permission) -> Result<Event, String> {
        let answer = Answer { path: "/usr/bin/perf".into(), printed: Ok(printed.to_owned()) };
        judge(Some(&answer), permission).map(|perf| perf.event).map_err(|missing| missing.to_string())
    }

    fn permission(level: i64, clock: Attempt, cycles: Attempt) -> Permission {
        Permission { paranoid: Ok(level), clock, cycles }
    }

    #[test]
    fn the_most_precise_event_is_taken() {
        let no_counter = Attempt::Fails("no such device".to_owned());
        assert_eq!(check("perf version 6.1.187\n", &permission(2, Attempt::Works, Attempt::Works)), Ok(Event::Cycles));
        assert_eq!(check("perf version 5.11\n", &permission(2, Attempt::Works, no_counter)), Ok(Event::CpuClock));
    }

    #[test]
    fn what_forbids_it_is_named() {
        let said = check("perf version 6.1", &permission(3, Attempt::Forbidden, Attempt::Forbidden)).unwrap_err();
        assert_eq!(
            said,
            "perf may not sample: kernel.perf_event_paranoid is 3, and above 2 that takes CAP_PERFMON; \
             `sysctl kernel.perf_event_paranoid=1`"
        );
        let said = check("perf version 6.1", &permission(1, Attempt::Forbidden, Attempt::Forbidden)).unwrap_err();
        assert!(said.contains("is 1: a filter forbids perf_event_open"), "{said}");
        let said = check("perf version 5.4.0", &permission(1, Attempt::Works, Attempt::Works)).unwrap_err();
        assert!(said.contains("5.4.0 takes no commands on a fifo"), "{said}");
    }
}
