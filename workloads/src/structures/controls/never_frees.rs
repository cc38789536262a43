//! Control: claims a reclamation scheme, and retires without ever freeing.
//!
//! Must be caught by what watches memory: unreclaimed objects grow without bound while the trial lasts, and after the
//! drop they are still allocated, which accounting counts to the object. Nothing else should: it is nm14 under no
//! reclamation, which is sound, under the name of a scheme. Not listed under `none`, where it would be no fault.

use crate::{
    harness::SetDriver,
    protocol::Reclamation,
    reclaim::NoReclamation,
    structures::{
        Info, Structure,
        nm14::{self, Nm14},
    },
};

/// Registry entry.
pub static CONTROL: Structure = Structure {
    info: Info {
        name: "control-never-frees",
        title: "control: never frees",
        source: "none: nm14 with a planted fault",
        deviations: &["retired nodes are never freed, whatever scheme is claimed"],
        ..nm14::STRUCTURE.info
    },
    drivers: &[(Reclamation::Epoch, &SetDriver::<Nm14<NoReclamation>>::NEW)],
};
