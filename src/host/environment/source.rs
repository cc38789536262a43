//! The ways in which a parameter is read, as data: a row of the table names one, [`Source::read`] carries it out.

use crate::host::{
    cpu_list::CpuList,
    machine::{Machine, Told, Tree},
};

/// Where a parameter is read and how its text becomes a value.
pub(crate) enum Source {
    /// The whole file, blanks folded.
    File(&'static str),
    /// A file in which an empty text means that there are none.
    List(&'static str),
    /// The bracketed word of a choice: `always [madvise] never`.
    Chosen(&'static str),
    /// What follows a key at the start of a line, with `:`, `=` or a blank between.
    Field(&'static str, &'static str),
    /// A field of each processor in `/proc/cpuinfo`, collapsed.
    CpuInfo(&'static str),
    /// A file of each online CPU below its folder, collapsed: `performance on 0-7; powersave on 8-15`.
    PerCpu(&'static str),
    /// A number of each online CPU, as least, median and greatest.
    Spread(&'static str),
    /// A number of each online CPU, added up.
    Sum(&'static str),
    /// Each file that a pattern names: `0: …; 1: …`.
    Each(&'static str),
    /// Like [`Source::Each`], the bracketed word of each.
    EachChosen(&'static str),
    /// Soft and hard limit of a row in `/proc/self/limits`.
    Limit(&'static str),
    /// What a word of the kernel command line was set to.
    BootOption(&'static str),
    /// A fact of the build; a text that begins with `?` says why it is unknown.
    Build(&'static str, &'static str),
    /// The first that can be read.
    FirstOf(&'static [Source]),
    /// Code; the first field says what it asks.
    Call(&'static str, fn(&Probe) -> Told),
}

use Source::*;

impl Source {
    /// Reads the value, or says why not.
    pub(crate) fn read(&self, probe: &Probe) -> Told {
        let tree = &probe.tree;
        match *self {
            File(path) => Ok(fold(&tree.text(path)?)),
            List(path) => Ok(or_none(fold(&tree.text(path)?))),
            Chosen(path) => Ok(chosen(&tree.text(path)?)),
            Field(path, key) => field(&tree.text(path)?, key).ok_or_else(|| format!("no line `{key}` in {path}")),
            CpuInfo(key) => cpu_info(probe, key),
            PerCpu(file) => per_cpu(probe, file),
            Spread(file) => Ok(spread(numbers(probe, file)?)),
            Sum(file) => Ok(numbers(probe, file)?.iter().sum::<i64>().to_string()),
            Each(pattern) => each(probe, pattern, fold),
            EachChosen(pattern) => each(probe, pattern, chosen),
            Limit(name) => limit(&tree.text("/proc/self/limits")?, name),
            BootOption(word) => Ok(boot_option(&tree.text("/proc/cmdline")?, word)),
            Build(_, text) => text.strip_prefix('?').map_or_else(|| Ok(text.to_owned()), |why| Err(why.to_owned())),
            FirstOf(sources) => first_of(probe, sources),
            Call(_, call) => call(probe),
        }
    }

    /// Names the source for the record: a path, a pattern, a system call.
    pub(crate) fn describe(&self) -> String {
        match *self {
            File(path) | List(path) | Chosen(path) | Each(path) | EachChosen(path) => path.to_owned(),
            Field(path, key) => format!("{path} {key}"),
            CpuInfo(key) => format!("/proc/cpuinfo {key}"),
            PerCpu(file) | Spread(file) | Sum(file) => of_each_cpu(file),
            Limit(name) => format!("/proc/self/limits {name}"),
            BootOption(word) => format!("/proc/cmdline {word}"),
            Build(what, _) | Call(what, _) => what.to_owned(),
            FirstOf(sources) => sources.iter().map(Self::describe).collect::<Vec<_>>().join(", else "),
        }
    }
}

/// One reading of one machine.
pub(crate) struct Probe<'m> {
    pub(crate) machine: &'m Machine<'m>,
    pub(crate) tree: Tree,
    /// Online CPUs, ascending; empty where `/sys` shows none.
    pub(crate) cpus: CpuList,
}

impl<'m> Probe<'m> {
    pub(crate) fn new(machine: &'m Machine<'m>) -> Self {
        let tree = Tree::new(machine.root);
        let online = tree.text("/sys/devices/system/cpu/online");
        let cpus = online.ok().and_then(|online| online.parse().ok()).unwrap_or_default();
        Self { machine, tree, cpus }
    }

    /// Refuses where the kernel of this machine would answer for another.
    pub(crate) fn live(&self) -> Result<(), String> {
        match self.machine.is_live() {
            true => Ok(()),
            false => Err("a recorded tree answers no system call".into()),
        }
    }

    /// Returns what a file below the folder of each online CPU holds, in order.
    fn each_cpu(&self, file: &str) -> Vec<(u32, Told)> {
        let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
        self.cpus.iter().map(|cpu| (cpu, self.tree.text(&path(cpu)).map(|text| fold(&text)))).collect()
    }
}

/// Folds equal values of CPUs: the bare value where all agree, else each value with its CPUs.
///
/// A CPU without a value is shown as such beside those that have one; `reason` is the answer where none has.
pub(crate) fn collapse(values: Vec<(u32, Told)>, reason: impl FnOnce(&str) -> String) -> Told {
    if let Some((_, Err(first))) = values.first()
        && values.iter().all(|(_, value)| value.is_err())
    {
        return Err(reason(first));
    }
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for (cpu, value) in values {
        let value = value.unwrap_or_else(|_| "unreadable".into());
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, cpus)) => cpus.push(cpu),
            None => groups.push((value, vec![cpu])),
        }
    }
    match groups.as_slice() {
        [] => Err("no online CPU in /sys/devices/system/cpu/online".into()),
        [(value, _)] => Ok(value.clone()),
        _ => {
            let with_cpus = |(value, cpus): (String, Vec<u32>)| format!("{value} on {}", CpuList::from_iter(cpus));
            Ok(groups.into_iter().map(with_cpus).collect::<Vec<_>>().join("; "))
        }
    }
}

/// Returns the text with every run of blanks and line ends as one space.
pub(crate) fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the text, or `none` if it is empty.
pub(crate) fn or_none(text: String) -> String {
    if text.is_empty() { "none".into() } else { text }
}

/// Returns what follows `key` in the first line that begins with it; quotes and the kernel's `kB` are taken off.
pub(crate) fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?.trim_start_matches([' ', '\t']);
        let separated = line.len() - key.len() > rest.len();
        let rest = rest.strip_prefix([':', '=']).or(separated.then_some(rest))?.trim();
        Some(rest.trim_matches('"').trim_end_matches(" kB").to_owned())
    })
}

fn chosen(text: &str) -> String {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    word.map_or_else(|| fold(text), |(word, _)| word.to_owned())
}

fn of_each_cpu(file: &str) -> String {
    format!("/sys/devices/system/cpu/cpu*/{file}")
}

fn per_cpu(probe: &Probe, file: &str) -> Told {
    collapse(probe.each_cpu(file), |first| general(first, file))
}

/// Says of all CPUs what was said of the first.
fn general(reason: &str, file: &str) -> String {
    match reason.starts_with("no such file") {
        true => format!("no such file: {}", of_each_cpu(file)),
        false => reason.to_owned(),
    }
}

fn numbers(probe: &Probe, file: &str) -> Result<Vec<i64>, String> {
    let each = probe.each_cpu(file);
    let Some((_, first)) = each.first() else { return Err("no online CPU in /sys/devices/system/cpu/online".into()) };
    let reason = first.as_ref().err().map_or_else(|| format!("not numbers: {file}"), |first| general(first, file));
    let numbers: Vec<i64> = each.iter().filter_map(|(_, text)| text.as_ref().ok()?.parse().ok()).collect();
    if numbers.is_empty() { Err(reason) } else { Ok(numbers) }
}

fn spread(mut numbers: Vec<i64>) -> String {
    numbers.sort_unstable();
    let (least, greatest) = (numbers[0], numbers[numbers.len() - 1]);
    match least == greatest {
        true => least.to_string(),
        false => format!("{least} to {greatest}, median {}", numbers[numbers.len() / 2]),
    }
}

fn each(probe: &Probe, pattern: &str, view: fn(&str) -> String) -> Told {
    let found = probe.tree.glob(pattern);
    if found.is_empty() {
        return Err(format!("no such file: {pattern}"));
    }
    let read = |path: &str| probe.tree.text(path).map_or_else(|reason| reason, |text| or_none(view(&text)));
    Ok(found.iter().map(|(label, path)| format!("{label}: {}", read(path))).collect::<Vec<_>>().join("; "))
}

fn cpu_info(probe: &Probe, key: &str) -> Told {
    let text = probe.tree.text("/proc/cpuinfo")?;
    let mut values = Vec::new();
    for block in text.split("\n\n") {
        let number = |block| info_field(block, "processor").and_then(|number| number.parse().ok());
        if let (Some(cpu), Some(value)) = (number(block), info_field(block, key)) {
            values.push((cpu, Ok(value.to_owned())));
        }
    }
    match values.is_empty() {
        true => Err(format!("no line `{key}` in /proc/cpuinfo")),
        false => collapse(values, str::to_owned),
    }
}

/// Returns the value of a line `key<blanks>: value`; `model` must not match `model name`.
fn info_field<'t>(block: &'t str, key: &str) -> Option<&'t str> {
    block.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key)).map(|(_, v)| v.trim())
}

fn limit(limits: &str, name: &str) -> Told {
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let mut columns = line.ok_or_else(|| format!("no line `{name}` in /proc/self/limits"))?.split_whitespace();
    match (columns.next(), columns.next()) {
        (Some(soft), Some(hard)) if soft == hard => Ok(soft.to_owned()),
        (Some(soft), Some(hard)) => Ok(format!("{soft}, hard {hard}")),
        _ => Err(format!("no columns after `{name}` in /proc/self/limits")),
    }
}

fn boot_option(command_line: &str, word: &str) -> String {
    let value = |part: &str| match part.split_once('=') {
        Some((name, value)) => (name == word).then(|| value.to_owned()),
        None => (part == word).then(|| "set".to_owned()),
    };
    command_line.split_whitespace().filter_map(value).next_back().unwrap_or_else(|| "not set".into())
}

fn first_of(probe: &Probe, sources: &[Source]) -> Told {
    let mut reasons = Vec::new();
    for source in sources {
        match source.read(probe) {
            Ok(value) => return Ok(value),
            Err(reason) => reasons.push(reason),
        }
    }
    reasons.dedup();
    Err(reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collapses_equal_values() {
        let told = |values: &[(u32, &str)]| {
            let values = values.iter().map(|&(cpu, value)| {
                (cpu, if value.is_empty() { Err("no such file: x".to_owned()) } else { Ok(value.to_owned()) })
            });
            collapse(values.collect(), str::to_owned)
        };
        assert_eq!(told(&[(0, "a"), (1, "a")]), Ok("a".into()));
        assert_eq!(told(&[(0, "a"), (1, "b"), (2, "a"), (3, "a")]), Ok("a on 0,2-3; b on 1".into()));
        assert_eq!(told(&[(0, "a"), (1, "")]), Ok("a on 0; unreadable on 1".into()));
        assert_eq!(told(&[(0, ""), (1, "")]), Err("no such file: x".into()));
        assert!(told(&[]).is_err());
    }

    #[test]
    fn finds_fields_by_their_whole_name() {
        let text = "MemTotal:  16 kB\nMemTotalish: 1\nNAME=\"Debian\"\npswpin 5\npswpinned 6\n";
        assert_eq!(field(text, "MemTotal").as_deref(), Some("16"));
        assert_eq!(field(text, "NAME").as_deref(), Some("Debian"));
        assert_eq!(field(text, "pswpin").as_deref(), Some("5"));
        assert_eq!(field(text, "Mem"), None);
        assert_eq!(info_field("model\t\t: 2\nmodel name\t: EPYC", "model"), Some("2"));
        assert_eq!(info_field("model name\t: EPYC\nmodel\t\t: 2", "model"), Some("2"));
    }

    #[test]
    fn reads_choices_limits_and_boot_options() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("1"), "1");
        let limits = "Max stack size  8388608  unlimited  bytes\nMax nice priority  0  0\n";
        assert_eq!(limit(limits, "Max stack size"), Ok("8388608, hard unlimited".into()));
        assert_eq!(limit(limits, "Max nice priority"), Ok("0".into()));
        assert!(limit(limits, "Max open files").is_err());
        assert_eq!(boot_option("quiet isolcpus=1-3 nohz", "isolcpus"), "1-3");
        assert_eq!(boot_option("quiet isolcpus=1-3 nohz", "nohz"), "set");
        assert_eq!(boot_option("quiet", "nohz"), "not set");
        assert_eq!(spread(vec![3, 1, 2]), "1 to 3, median 2");
    }
}
