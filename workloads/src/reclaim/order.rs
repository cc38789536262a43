//! The order that every guard promises between a thread's updates and its later loads.

use crate::sync::atomic::{Ordering, compiler_fence, fence};

/// Orders this thread's earlier updates before its later loads, as [`super::Local::pin`] promises, for a scheme whose
/// guards do not fence by themselves.
pub(super) fn order_after_updates() {
    // Every update of a structure executes a read-modify-write when it takes effect or later, which on x86-64 is a full
    // barrier by itself: only the compiler must be held. Elsewhere the fence is needed and costs what it costs.
    if cfg!(target_arch = "x86_64") {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}
