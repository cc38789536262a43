//! What checks that compare probes with each other or with the cells of the plan have in common.

use super::{Grade, Info, Verdict};
use crate::{
    plan::{Cell, Plan, probe::Setting},
    spec::value::Parameter,
    stats::validity,
};

/// Returns the bases of the structures that store something: the others bound the harness and do not compete.
pub(crate) fn competing(plan: &Plan) -> Vec<Setting> {
    let stores = |setting: &Setting| !validity::stores_nothing(&Cell::of_setting(setting).structure().name);
    plan.bases().into_iter().filter(stores).collect()
}

/// Returns the first cell of the plan that has the values of `cell`, but for the parameters of `besides`.
pub(crate) fn own_cell(plan: &Plan, cell: Cell<'_>, besides: &[Parameter]) -> Option<u32> {
    let counts = || Parameter::ALL.into_iter().filter(|parameter| !besides.contains(parameter));
    let same = |&own: &u32| counts().all(|parameter| plan.cell(own).value(parameter) == cell.value(parameter));
    (0..plan.n_cells()).find(same)
}

/// Returns the heads of an exhibit: of numbers with their unit, which may be empty, of texts with none.
pub(crate) fn columns(heads: &[(&str, Option<&'static str>)]) -> Vec<(String, Option<&'static str>)> {
    heads.iter().map(|&(head, unit)| (head.to_owned(), unit)).collect()
}

/// Returns the verdict that something is missing.
pub(crate) fn unknown(info: &'static Info, missing: impl Into<String>) -> Verdict {
    Verdict { info, grade: Grade::Unknown, summary: missing.into(), rows: Vec::new(), exhibits: Vec::new() }
}
