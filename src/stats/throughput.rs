//! The throughput of a trial.

use rare_workloads::protocol::{Reply, ThreadReply};

/// Returns the throughput of a trial in operations per second; `None` if there is no thread or one has no measured time.
///
/// It is the sum over the threads of a thread's operations over that thread's own measured time. Neither the nominal
/// length (threads overrun it by what the scheduler makes of the stop flag) nor the span from the first start to the
/// last stop (one late thread would thin out the operations of all) is the time in which the operations were done.
pub fn throughput(reply: &Reply) -> Option<f64> {
    let rates: Option<Vec<f64>> = reply.threads.iter().map(thread_rate).collect();
    rates.filter(|rates| !rates.is_empty()).map(|rates| rates.iter().sum())
}

/// Returns one thread's operations per second of its own measured time.
pub fn thread_rate(thread: &ThreadReply) -> Option<f64> {
    let measured_ns = thread.stop_ns.checked_sub(thread.start_ns).filter(|&measured_ns| measured_ns > 0)?;
    Some(thread.operations.attempted() as f64 * 1e9 / measured_ns as f64)
}
