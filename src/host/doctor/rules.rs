//! Judges what the environment record tells. Pure.

use super::{
    Finding,
    Status::{Cannot, Good, Note, Warn},
};
use crate::record::{Reading, Snapshot};

/// One rule for each topic, in the order of the output.
const RULES: [fn(&Facts) -> Finding; 20] = [
    quota,
    smt,
    governor,
    turbo,
    load,
    memory,
    swap,
    huge_pages,
    numa,
    clock,
    virtualisation,
    nice,
    autogroup,
    perf_permission,
    watchdog,
    space,
    valgrind,
    perf,
    hyperfine,
    chromium,
];

pub(super) fn judge(snapshot: &Snapshot) -> Vec<Finding> {
    RULES.iter().map(|rule| rule(&Facts(snapshot))).collect()
}

/// The record, asked by key.
struct Facts<'s>(&'s Snapshot);

impl Facts<'_> {
    fn get(&self, key: &str) -> Result<&str, &str> {
        let entry = self.0.entries.iter().find(|entry| entry.key == key);
        match entry.map(|entry| &entry.reading) {
            Some(Reading::Value(value)) => Ok(value),
            Some(Reading::Unreadable(reason)) => Err(reason),
            None => Err("not in the record"),
        }
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).ok()?.parse().ok()
    }
}

fn unknown(topic: &'static str, reason: &str) -> Finding {
    Finding::new(topic, Note, format!("unknown: {reason}"))
}

fn quota(facts: &Facts) -> Finding {
    match facts.get("cgroup.cpu_max") {
        Ok("max") => Finding::new("CPU quota", Good, "none"),
        Ok(quota) => Finding::new("CPU quota", Warn, format!("{quota} (microseconds: quota, period)"))
            .advise("when the quota of a period is used up all threads stop: run outside the quota"),
        Err(reason) => unknown("CPU quota", reason),
    }
}

fn smt(facts: &Facts) -> Finding {
    match (facts.number("cpu.threads"), facts.number("cpu.cores")) {
        (Some(threads), Some(cores)) if threads > cores => {
            Finding::new("SMT", Note, format!("on: {threads} hardware threads on {cores} cores"))
                .advise("siblings share a core: `compact` and `scatter` give out whole cores first")
        }
        (Some(_), Some(cores)) => Finding::new("SMT", Good, format!("off: {cores} cores")),
        _ => unknown("SMT", facts.get("cpu.cores").err().unwrap_or("the counts are not numbers")),
    }
}

fn governor(facts: &Facts) -> Finding {
    match facts.get("frequency.governor") {
        Ok("performance") => Finding::new("governor", Good, "performance"),
        Ok(governor) => Finding::new("governor", Warn, governor)
            .advise("the frequency follows the load: `cpupower frequency-set -g performance`"),
        Err(reason) => unknown("governor", reason).advise("the frequency may change unseen, as it does for a guest"),
    }
}

fn turbo(facts: &Facts) -> Finding {
    let on =
        match (facts.get("frequency.no_turbo"), facts.get("frequency.boost"), facts.get("frequency.turbo_register")) {
            (Ok(word), ..) => Ok(word == "0"),
            (_, Ok(word), _) => Ok(word == "1"),
            (.., Ok(word)) => Ok(word != "off"),
            (Err(reason), ..) => Err(reason),
        };
    match on {
        Ok(false) => Finding::new("turbo", Good, "off"),
        Ok(true) => Finding::new("turbo", Warn, "on: the frequency depends on heat and on how many cores are busy")
            .advise("write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo or 0 to /sys/devices/system/cpu/cpufreq/boost"),
        Err(reason) => unknown("turbo", reason),
    }
}

fn load(facts: &Facts) -> Finding {
    /// In hundredths: a tenth of a CPU is what an idle desktop takes.
    const QUIET: u64 = 10;
    let average = facts.get("load.average").map(|text| text.split(' ').next().unwrap_or_default());
    let hundredths = average.map(|text| text.replace('.', "").parse::<u64>());
    match (average, hundredths) {
        (Ok(text), Ok(Ok(load))) if load <= QUIET => {
            Finding::new("load", Good, format!("{text} threads over a minute"))
        }
        (Ok(text), Ok(Ok(_))) => {
            Finding::new("load", Warn, format!("{text} threads ran or waited over the last minute"))
                .advise("stop other programs, or wait for them")
        }
        (Ok(text), _) => unknown("load", text),
        (Err(reason), _) => unknown("load", reason),
    }
}

fn memory(facts: &Facts) -> Finding {
    /// Less leaves no room for large key ranges beside the system.
    const SMALL_KIB: u64 = 1 << 20;
    let (Some(total), Some(free)) = (facts.number("memory.total"), facts.number("memory.available")) else {
        return unknown("memory", facts.get("memory.available").err().unwrap_or("not a number"));
    };
    let what = format!("{} MiB of {total} MiB available", free / 1024);
    let limit = facts.get("cgroup.memory_max").ok().filter(|limit| *limit != "max");
    match limit {
        Some(limit) => Finding::new("memory", Note, format!("{what}; the control group is limited to {limit} bytes"))
            .advise("a trial that exceeds the limit is killed"),
        None if free < SMALL_KIB => Finding::new("memory", Warn, what).advise("free some memory"),
        None => Finding::new("memory", Good, what),
    }
}

fn swap(facts: &Facts) -> Finding {
    match facts.number("swap.total") {
        Some(0) => Finding::new("swap", Good, "none"),
        Some(total) => Finding::new("swap", Note, format!("{} MiB", total / 1024))
            .advise("swapping during a trial is recorded with it; `swapoff -a` rules it out"),
        None => unknown("swap", facts.get("swap.total").err().unwrap_or("not a number")),
    }
}

fn huge_pages(facts: &Facts) -> Finding {
    match facts.get("thp.enabled") {
        Ok("always") => {
            Finding::new("huge pages", Note, "always: allocators get them where memory happens to be whole")
                .advise("compare with `huge_pages: never`")
        }
        Ok(word) => Finding::new("huge pages", Good, word),
        Err(reason) => unknown("huge pages", reason),
    }
}

fn numa(facts: &Facts) -> Finding {
    match (facts.get("numa.nodes"), facts.get("numa.balancing")) {
        (Ok("0"), _) => Finding::new("NUMA", Good, "one node"),
        (Ok(nodes), Ok("0")) => Finding::new("NUMA", Good, format!("nodes {nodes}, pages stay where they are")),
        (Ok(nodes), Ok(_)) => {
            Finding::new("NUMA", Warn, format!("nodes {nodes}, and the kernel moves pages between them"))
                .advise("`sysctl kernel.numa_balancing=0`")
        }
        (Ok(nodes), Err(_)) => Finding::new("NUMA", Note, format!("nodes {nodes}")),
        (Err(reason), _) => unknown("NUMA", reason),
    }
}

fn clock(facts: &Facts) -> Finding {
    match (facts.get("clock.source"), facts.get("clock.read_cost")) {
        (Ok("tsc"), Ok(cost)) => Finding::new("clock", Good, format!("tsc, {cost} ns a read")),
        (Ok(source), Ok(cost)) => Finding::new("clock", Note, format!("{source}, {cost} ns a read"))
            .advise("reads may be slow; only the time check of the loop on every operation would feel it"),
        (Ok(source), Err(_)) => Finding::new("clock", Note, source),
        (Err(reason), _) => unknown("clock", reason),
    }
}

fn virtualisation(facts: &Facts) -> Finding {
    let container = facts.get("virtualisation.container").ok().filter(|name| *name != "no mark of one");
    let inside = container.map_or_else(String::new, |name| format!(", in a container ({name})"));
    match (facts.get("virtualisation.flag"), facts.get("virtualisation.hypervisor")) {
        (Ok("yes"), hypervisor) => {
            let name = hypervisor.unwrap_or("unknown");
            Finding::new("virtualisation", Note, format!("a guest of {name}{inside}"))
                .advise("neighbours are invisible; stolen time is recorded with each trial")
        }
        (Ok(_), _) => Finding::new("virtualisation", Good, format!("none{inside}")),
        (Err(reason), _) => unknown("virtualisation", reason),
    }
}

fn nice(facts: &Facts) -> Finding {
    /// CAP_SYS_NICE.
    const RIGHT: u64 = 1 << 23;
    let rights = facts.get("process.capabilities").ok().and_then(|mask| u64::from_str_radix(mask, 16).ok());
    if rights.is_some_and(|rights| rights & RIGHT != 0) {
        return Finding::new("priority", Good, "every nice level may be set");
    }
    let limit = facts.get("process.limit_nice").ok().and_then(|text| text.split(',').next()?.parse::<i64>().ok());
    let level = facts.get("process.nice").ok().and_then(|text| text.parse::<i64>().ok());
    match (limit, level) {
        (Some(limit), Some(level)) => {
            let lowest = level.min(20 - limit);
            Finding::new("priority", Cannot, format!("nice levels below {lowest} may not be set"))
                .advise("run as root, or raise the `nice` limit in /etc/security/limits.conf")
        }
        _ => unknown("priority", facts.get("process.limit_nice").err().unwrap_or("not a number")),
    }
}

fn autogroup(facts: &Facts) -> Finding {
    match facts.get("sched.autogroup") {
        Ok("1") => Finding::new("autogroup", Note, "on: a nice level counts only within its own session")
            .advise("`sysctl kernel.sched_autogroup_enabled=0` lets `priority` count against other sessions"),
        Ok(_) => Finding::new("autogroup", Good, "off"),
        Err(reason) => unknown("autogroup", reason),
    }
}

fn perf_permission(facts: &Facts) -> Finding {
    let level = facts.get("perf.paranoid").map(str::parse::<i64>);
    match level {
        Ok(Ok(..=1)) => Finding::new("event permissions", Good, "threads may be counted in user and kernel code"),
        Ok(Ok(2)) => Finding::new("event permissions", Note, "2: without root, user code only")
            .advise("`sysctl kernel.perf_event_paranoid=1`"),
        Ok(Ok(level)) => Finding::new("event permissions", Warn, format!("{level}: without root, nothing"))
            .advise("`sysctl kernel.perf_event_paranoid=1`"),
        Ok(Err(_)) => unknown("event permissions", "not a number"),
        Err(reason) => unknown("event permissions", reason),
    }
}

fn watchdog(facts: &Facts) -> Finding {
    match facts.get("kernel.watchdog") {
        Ok("1") => {
            Finding::new("watchdog", Note, "it occupies a hardware counter").advise("`sysctl kernel.nmi_watchdog=0`")
        }
        Ok(_) => Finding::new("watchdog", Good, "off"),
        Err(reason) => unknown("watchdog", reason),
    }
}

fn space(facts: &Facts) -> Finding {
    /// A run of many trials takes some hundred MiB with its artifacts.
    const SMALL_MIB: u64 = 1024;
    let kind = facts.get("storage.filesystem").unwrap_or("unknown");
    match facts.number("storage.free") {
        Some(free) if free < SMALL_MIB => Finding::new("disk", Warn, format!("{free} MiB free for reports ({kind})"))
            .advise("make room, or choose another reports folder"),
        Some(free) if kind == "tmpfs" => Finding::new("disk", Note, format!("{free} MiB free for reports on a tmpfs"))
            .advise("the reports are gone after the next boot"),
        Some(free) => Finding::new("disk", Good, format!("{free} MiB free for reports ({kind})")),
        None => unknown("disk", facts.get("storage.free").err().unwrap_or("not a number")),
    }
}

fn valgrind(facts: &Facts) -> Finding {
    tool(facts, "valgrind", "tools.valgrind", Cannot, "the check for leaks needs it: `apt install valgrind`")
}

fn perf(facts: &Facts) -> Finding {
    tool(facts, "perf", "tools.perf", Cannot, "profiles need it: `apt install linux-perf`")
}

fn hyperfine(facts: &Facts) -> Finding {
    tool(facts, "hyperfine", "tools.hyperfine", Note, "only the benchmark of rare itself compares with it")
}

fn chromium(facts: &Facts) -> Finding {
    tool(facts, "chromium", "tools.chromium", Note, "only tests of how reports look use it")
}

fn tool(facts: &Facts, name: &'static str, key: &str, without: super::Status, advice: &'static str) -> Finding {
    match facts.get(key) {
        Ok(path) => Finding::new(name, Good, path),
        Err(reason) => Finding::new(name, without, reason).advise(advice),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Entry, environment::Stability};

    fn status(rule: fn(&Facts) -> Finding, facts: &[(&str, &str)]) -> super::super::Status {
        let entry = |&(key, value): &(&str, &str)| Entry {
            key: key.into(),
            reading: Reading::Value(value.into()),
            unit: String::new(),
            source: String::new(),
            stability: Stability::Setting,
        };
        let snapshot = Snapshot { taken: String::new(), entries: facts.iter().map(entry).collect() };
        rule(&Facts(&snapshot)).status
    }

    #[test]
    fn each_rule_fires_and_stays_silent() {
        assert_eq!(status(governor, &[("frequency.governor", "performance")]), Good);
        assert_eq!(status(governor, &[("frequency.governor", "performance on 0-3; powersave on 4")]), Warn);
        assert_eq!(status(governor, &[]), Note);
        assert_eq!(status(turbo, &[("frequency.no_turbo", "1")]), Good);
        assert_eq!(status(turbo, &[("frequency.boost", "1")]), Warn);
        assert_eq!(status(turbo, &[("frequency.turbo_register", "off")]), Good);
        assert_eq!(status(quota, &[("cgroup.cpu_max", "200000 100000 at /a")]), Warn);
        assert_eq!(status(quota, &[("cgroup.cpu_max", "max")]), Good);
        assert_eq!(status(smt, &[("cpu.threads", "16"), ("cpu.cores", "8")]), Note);
        assert_eq!(status(smt, &[("cpu.threads", "8"), ("cpu.cores", "8")]), Good);
        assert_eq!(status(load, &[("load.average", "0.08 0.5 0.6 1/99 7")]), Good);
        assert_eq!(status(load, &[("load.average", "1.00 0.5 0.6 1/99 7")]), Warn);
        assert_eq!(status(numa, &[("numa.nodes", "0-1"), ("numa.balancing", "1")]), Warn);
        assert_eq!(status(numa, &[("numa.nodes", "0"), ("numa.balancing", "1")]), Good);
        assert_eq!(status(perf_permission, &[("perf.paranoid", "-1")]), Good);
        assert_eq!(status(perf_permission, &[("perf.paranoid", "4")]), Warn);
        assert_eq!(status(nice, &[("process.capabilities", "000001ffffffffff")]), Good);
        let user = [("process.capabilities", "0"), ("process.limit_nice", "0"), ("process.nice", "0")];
        assert_eq!(status(nice, &user), Cannot);
        assert_eq!(status(space, &[("storage.free", "100")]), Warn);
        assert_eq!(status(valgrind, &[]), Cannot);
    }
}
