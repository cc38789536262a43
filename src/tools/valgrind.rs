//! How valgrind is told to run a worker under memcheck or callgrind.
//!
//! The options were chosen for what `rare` asks of them: each that is not obvious says why.

use super::found::{self, Answer, Missing};

/// Stacks that need no more frames than this are whole: a worker's threads are some twenty frames deep.
const CALLERS: u32 = 40;

/// What memcheck says of every worker and what is no fault of a structure, each entry with its reason.
pub const SUPPRESSIONS: &str = include_str!("valgrind.supp");

/// Valgrind, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Valgrind {
    /// Absolute path.
    pub path: String,
    /// Its own word, such as `3.19.0`.
    pub version: String,
}

/// Judges what was found in the search path and what it answered to `--version`.
///
/// # Errors
/// [`Missing`] when there is none, or when it does not tell a version.
pub fn judge(answer: Option<&Answer>) -> Result<Valgrind, Missing> {
    let (path, version) = found::version("valgrind", "valgrind-", "valgrind", answer)?;
    Ok(Valgrind { path, version })
}

impl Valgrind {
    /// Returns the command line before the worker's own, for memcheck.
    ///
    /// `output` is the file that it writes, `suppressions` one that holds [`SUPPRESSIONS`].
    pub fn memcheck(&self, output: &str, suppressions: &str, n_threads: usize) -> Vec<String> {
        let mut words = self.common("memcheck", n_threads);
        words.extend([
            "--xml=yes".to_owned(),
            format!("--xml-file={}", literal(output)),
            "--leak-check=full".to_owned(),
            "--show-leak-kinds=all".to_owned(),
            "--errors-for-leak-kinds=definite,possible".to_owned(),
            format!("--num-callers={CALLERS}"),
            // Else counting stops after some thousand errors, and what was counted is wrong.
            "--error-limit=no".to_owned(),
            // A child would write its own end into the file of its parent.
            "--child-silent-after-fork=yes".to_owned(),
            // Not expanded, unlike the file of the output.
            format!("--suppressions={suppressions}"),
        ]);
        words
    }

    /// Returns the command line before the worker's own, for callgrind, which collects nothing until the worker asks.
    ///
    /// `output` is the file that it writes. Of `caches` those are simulated that valgrind can simulate; where there is
    /// none, valgrind takes what the processor tells.
    pub fn callgrind(&self, output: &str, caches: &Caches, n_threads: usize) -> Vec<String> {
        let mut words = self.common("callgrind", n_threads);
        words.extend([
            format!("--callgrind-out-file={}", literal(output)),
            "--collect-atstart=no".to_owned(),
            "--cache-sim=yes".to_owned(),
            "--branch-sim=yes".to_owned(),
            "--dump-line=yes".to_owned(),
            "--dump-instr=no".to_owned(),
            "--compress-strings=no".to_owned(),
            "--compress-pos=no".to_owned(),
            // What a client request dumps and what is dumped at the end are parts of one file.
            "--combine-dumps=yes".to_owned(),
        ]);
        let given = [("I1", caches.instructions), ("D1", caches.data), ("LL", caches.last)];
        for (name, cache) in given {
            if let Some(Cache { bytes, ways, line_bytes }) = cache.filter(|cache| cache.can_be_simulated()) {
                words.push(format!("--{name}={bytes},{ways},{line_bytes}"));
            }
        }
        words
    }

    fn common(&self, tool: &str, n_threads: usize) -> Vec<String> {
        /// Valgrind's own bound, main thread included.
        const DEFAULT_THREADS: usize = 500;
        /// Main thread, helpers of the worker.
        const BESIDE: usize = 16;
        let mut words = vec![
            self.path.clone(),
            format!("--tool={tool}"),
            // Threads take turns. Without it one may keep the only lock for seconds.
            "--fair-sched=yes".to_owned(),
            // Names are demangled here, in the same way whatever tool they come from.
            "--demangle=no".to_owned(),
            // No pipes in the folder of temporary files for a debugger to come.
            "--vgdb=no".to_owned(),
        ];
        if n_threads + BESIDE > DEFAULT_THREADS {
            words.push(format!("--max-threads={}", n_threads + BESIDE));
        }
        words
    }
}

/// Returns a file name in which valgrind expands nothing.
fn literal(path: &str) -> String {
    path.replace('%', "%%")
}

/// The caches to simulate, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Level 1, instructions.
    pub instructions: Option<Cache>,
    /// Level 1, data.
    pub data: Option<Cache>,
    /// The last level.
    pub last: Option<Cache>,
}

/// One cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Its size in bytes.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u64,
    /// Bytes in a line.
    pub line_bytes: u64,
}

impl Cache {
    /// Reads a description of the environment record, such as `48 KiB, 64 B lines, 12 ways`; `None` for any other text,
    /// as of machines whose cores differ.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(", ");
        let (size, line, ways) = (parts.next()?, parts.next()?, parts.next()?);
        let (number, unit) = size.split_once(' ')?;
        let scale = match unit {
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            _ => return None,
        };
        let bytes = number.parse::<u64>().ok()?.checked_mul(scale)?;
        let line_bytes = line.strip_suffix(" B lines")?.parse().ok()?;
        let ways = ways.strip_suffix(" ways")?.parse().ok()?;
        parts.next().is_none().then_some(Self { bytes, ways, line_bytes })
    }

    /// Tells whether valgrind accepts it: it refuses to start when the number of sets is not a power of two, as that of
    /// many last levels is not.
    fn can_be_simulated(&self) -> bool {
        const SHORTEST_LINE: u64 = 16;
        let Self { bytes, ways, line_bytes } = *self;
        let set_bytes = ways.saturating_mul(line_bytes);
        line_bytes.is_power_of_two()
            && line_bytes >= SHORTEST_LINE
            && set_bytes > 0
            && bytes.is_multiple_of(set_bytes)
            && (bytes / set_bytes).is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valgrind() -> Valgrind {
        Valgrind { path: "/usr/bin/valgrind".to_owned(), version: "3.19.0".to_owned() }
    }

    #[test]
    fn caches_are_read_as_the_environment_tells_them() {
        let cache = Cache { bytes: 48 << 10, ways: 12, line_bytes: 64 };
        assert_eq!(Cache::parse("48 KiB, 64 B lines, 12 ways"), Some(cache));
        for odd in [
            "48 KiB, 64 B lines, ? ways",
            "48 KiB, 64 B lines, 12 ways on 0-3; 32 KiB",
            "",
            "48 GiB, 64 B lines, 1 ways",
        ] {
            assert_eq!(Cache::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_caches_that_valgrind_accepts_are_named() {
        let caches = Caches {
            instructions: Some(Cache { bytes: 32 << 10, ways: 8, line_bytes: 64 }),
            data: Some(Cache { bytes: 0, ways: 0, line_bytes: 64 }),
            last: Some(Cache { bytes: 36 << 20, ways: 12, line_bytes: 64 }),
        };
        let words = valgrind().callgrind("/tmp/50%", &caches, 2);
        assert!(words.contains(&"--I1=32768,8,64".to_owned()), "{words:?}");
        assert!(words.contains(&"--callgrind-out-file=/tmp/50%%".to_owned()), "{words:?}");
        // 36 MiB in 12 ways of 64 bytes are 49,152 sets.
        assert!(!words.iter().any(|word| word.starts_with("--LL=") || word.starts_with("--D1=")), "{words:?}");
    }

    #[test]
    fn many_threads_are_announced() {
        let has =
            |n_threads| valgrind().memcheck("x", "y", n_threads).iter().any(|word| word.starts_with("--max-threads="));
        assert!(!has(400));
        assert!(has(490));
    }
}
