//! Section `drift`: whether the machine ran at one speed during the run.

use super::{Context, Section};
use crate::{
    report::{
        block::Block,
        figures::{self, Track},
        number::{self, counted},
    },
    stats::Standing,
};

pub(super) const SECTION: Section = Section { id: "drift", title: "Drift during the run", build };

/// Fewest trials that can show a drift: four quarters of ten.
const MIN_TRIALS: usize = 40;

/// Fewest trials of a cell whose median says what is usual for it.
const MIN_N: usize = 5;

/// A change between the quarters that is worth a warning: as much as the spread of a cell that is called noisy.
const LARGE: f64 = 0.05;

fn build(context: &Context) -> Vec<Block> {
    let tracks = figures::tracks(context.evidence, MIN_N);
    let n_points: usize = tracks.iter().map(|track| track.points.len()).sum();
    if n_points < MIN_TRIALS {
        let n_counted = context.evidence.summary.n_standing(Standing::Counted);
        return vec![Block::paragraph(format!(
            "{} in cells of {MIN_N} or more are too few to see whether the machine changed its speed during the run; it \
             takes {MIN_TRIALS}. {} in all.",
            counted(n_points, "trial that counts").replace("counts", if n_points == 1 { "counts" } else { "count" }),
            counted(n_counted, "trial"),
        ))];
    }
    vec![Block::paragraph(words(&tracks)), figures::drift(context.evidence, &tracks)]
}

/// First and last quarter in numbers.
fn words(tracks: &[Track]) -> String {
    format!(
        "Relative to the median of its cell, the median trial of the first and of the last quarter of the run: {}. Without \
         a drift both are about 1.00×.",
        tracks.iter().map(quarters).collect::<Vec<String>>().join("; ")
    )
}

fn quarters(track: &Track) -> String {
    let (first, last) = track.ends();
    let name = if track.name.is_empty() { String::new() } else { format!("with {} ", track.name) };
    format!("{name}{} and {}", number::ratio(first), number::ratio(last))
}

/// Says so where the last quarter of the run was much faster or slower than the first.
pub(super) fn limit(context: &Context) -> Option<String> {
    let tracks = figures::tracks(context.evidence, MIN_N);
    let n_points: usize = tracks.iter().map(|track| track.points.len()).sum();
    let drifted = |track: &&Track| {
        let (first, last) = track.ends();
        (last / first - 1.0).abs() > LARGE
    };
    let drifted: Vec<String> = tracks.iter().filter(drifted).map(quarters).collect();
    (n_points >= MIN_TRIALS && !drifted.is_empty()).then(|| {
        format!(
            "The speed changed during the run (first and last quarter, relative to each cell's median): {}. Blocks spread \
             this over all cells, and it widens their intervals.",
            drifted.join("; ")
        )
    })
}
