//! Requests to the tool of valgrind under which the process runs.
//!
//! A request is a sequence of instructions that does nothing on a processor, and that valgrind recognises when it
//! translates the program: no library and no header is needed. The sequence and the numbers are those that `valgrind.h`
//! and `callgrind.h` promise never to change.

/// Asks valgrind itself whether it is there.
const RUNNING_ON_VALGRIND: u64 = 0x1001;

/// Asks callgrind to begin or to stop counting the calling thread. Other tools do not know it and ignore it.
///
/// The state is each thread's own: callgrind saves and restores it with the thread, and a new thread begins as
/// `--collect-atstart` says.
const TOGGLE_COLLECT: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16 | 2;

/// Refuses where there is nothing to talk to.
///
/// # Errors
/// In words: the process does not run under valgrind, or this program cannot tell.
pub(super) fn admit() -> Result<(), String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("the request cannot be run: this worker talks to valgrind on x86-64 only".to_owned());
    }
    match ask(RUNNING_ON_VALGRIND) {
        0 => {
            Err("the request cannot be run: valgrind is to watch it, and the worker does not run under valgrind".into())
        }
        _ => Ok(()),
    }
}

/// Has callgrind count what the calling thread does in `action`, and nothing else, if it was started with
/// `--collect-atstart=no`.
pub(super) fn collect<T>(action: impl FnOnce() -> T) -> T {
    ask(TOGGLE_COLLECT);
    let result = action();
    ask(TOGGLE_COLLECT);
    result
}

/// Makes a request without arguments; 0 is the answer of a processor.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ask(request: u64) -> u64 {
    let arguments = [request, 0, 0, 0, 0, 0];
    let mut answer = 0_u64;
    // SAFETY: on a processor the rotations add up to two whole turns and the exchange is of a register with itself, so
    // only the flags change, which are not declared as kept. Valgrind reads six live words at `rax`, writes its answer to
    // `rdx`, and leaves the rest alone.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// There is no valgrind that listens.
#[cfg(not(target_arch = "x86_64"))]
fn ask(_request: u64) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_answers_nothing() {
        assert_eq!(ask(RUNNING_ON_VALGRIND), 0);
        assert!(admit().expect_err("no test runs under valgrind").contains("valgrind"));
        assert_eq!(collect(|| 7), 7);
    }
}
