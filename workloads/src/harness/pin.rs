//! Pins threads, and reads back from the kernel what came of it.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that the kernel allows the calling thread.
#[derive(Clone)]
pub struct AllowedCpus(CpuSet);

impl AllowedCpus {
    /// Reads them back from the kernel.
    ///
    /// # Errors
    /// In words, with the kernel's error; machines with more CPUs than a fixed set holds among them.
    pub fn of_this_thread() -> Result<Self, String> {
        sched_getaffinity(None).map(Self).map_err(|error| format!("cannot read the allowed CPUs: {error}"))
    }

    /// Returns their numbers, ascending.
    pub fn numbers(&self) -> Vec<u32> {
        (0..CpuSet::MAX_CPU).filter(|&cpu| self.0.is_set(cpu)).map(|cpu| cpu as u32).collect()
    }

    /// Allows the calling thread, and threads that it starts, these CPUs again.
    ///
    /// # Errors
    /// In words, with the kernel's error.
    pub fn restore(&self) -> Result<(), String> {
        sched_setaffinity(None, &self.0).map_err(|error| format!("cannot restore the allowed CPUs: {error}"))
    }
}

/// Pins the calling thread, and threads that it starts from now on, to one CPU.
///
/// # Errors
/// In words, with the CPU and the kernel's error.
pub fn pin_to(cpu: u32) -> Result<(), String> {
    let index = usize::try_from(cpu).expect("a u32 fits a usize on Linux");
    if index >= CpuSet::MAX_CPU {
        return Err(format!("cannot pin to CPU {cpu}: sets hold CPUs 0 to {}", CpuSet::MAX_CPU - 1));
    }
    let mut cpus = CpuSet::new();
    cpus.set(index);
    sched_setaffinity(None, &cpus)
        .map_err(|error| format!("the kernel refuses to pin to CPU {cpu}: {error} (errno {})", error.raw_os_error()))
}

/// Returns the CPU on which the calling thread runs at this moment.
pub fn current_cpu() -> u32 {
    u32::try_from(rustix::thread::sched_getcpu()).expect("CPU numbers fit 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_back_and_undone() {
        let before = AllowedCpus::of_this_thread().unwrap();
        let cpu = *before.numbers().last().unwrap();
        pin_to(cpu).unwrap();
        assert_eq!(AllowedCpus::of_this_thread().unwrap().numbers(), [cpu]);
        assert_eq!(current_cpu(), cpu);
        before.restore().unwrap();
        assert_eq!(AllowedCpus::of_this_thread().unwrap().numbers(), before.numbers());
    }

    #[test]
    fn refusals_name_the_cpu() {
        let refused = pin_to(1_023).unwrap_err();
        assert!(refused.contains("CPU 1023") && refused.contains("errno 22"), "{refused}");
        assert!(pin_to(1_024).unwrap_err().contains("CPU 1024"));
    }
}
