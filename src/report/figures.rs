//! The figures of a report: throughput by structure, and drift over the run.

use super::{
    block::{Block, Figure},
    grid::{self, Sheet},
    number::{self, counted},
    plot::{Drawing, Drift, Panel, Point, Row, Sketch, draw},
    text,
};
use crate::{
    spec::value::Parameter,
    stats::{Interval, Standing, describe::median, validity},
    verdict::{Evidence, evidence::title},
};

/// Figures of a report; a reader of more looks for a configuration, and finds it in the table.
const MAX_FIGURES: usize = 6;

/// Trials of a figure of drift; more would hide each other and make the page heavy.
const MAX_POINTS: usize = 4000;

/// Panels share an axis unless the smallest would shrink below this share of it.
const MIN_SHARED: f64 = 0.25;

/// Returns the figures with every trial of every configuration.
pub(crate) fn throughput(evidence: &Evidence) -> Vec<Block> {
    let (mut keys, mut panels) = (Vec::new(), Vec::new());
    for group in &evidence.summary.groups {
        let (Some(&cell), rows) = (group.first(), rows(evidence, group)) else { continue };
        if !rows.is_empty() {
            keys.push(evidence.plan.cells[cell as usize]);
            panels.push((cell, rows));
        }
    }
    let sheets = grid::sheets(evidence.plan, &keys);
    let mut blocks: Vec<Block> =
        sheets.iter().take(MAX_FIGURES).enumerate().map(|(idx, sheet)| figure(evidence, sheet, &panels, idx)).collect();
    let left_out: usize =
        sheets.iter().skip(MAX_FIGURES).map(|sheet| sheet.rows.iter().flatten().flatten().count()).sum();
    if left_out > 0 {
        blocks.push(Block::paragraph(format!(
            "{} are left out of the figures for want of space; all are in the table and in data.csv.",
            counted(left_out, "configuration")
        )));
    }
    blocks
}

fn figure(evidence: &Evidence, sheet: &Sheet, panels: &[(u32, Vec<Row>)], figure_idx: usize) -> Block {
    let distinct = sheet.distinct(evidence.plan);
    let max_of = |rows: &[Row]| rows.iter().flat_map(|row| row.values.iter().copied()).fold(0.0, f64::max);
    let panel = |idx: usize| {
        let (cell, rows) = &panels[idx];
        let title = match phrases(evidence, *cell, &distinct).join(" · ") {
            title if title.is_empty() => "the only configuration".to_owned(),
            title => title,
        };
        Panel { title: text::visible(&title), rows: rows.clone(), max: max_of(rows) }
    };
    let mut grid: Vec<Vec<Option<Panel>>> =
        sheet.rows.iter().map(|row| row.iter().map(|place| place.map(panel)).collect()).collect();
    let axes = share_axes(&mut grid, sheet.across.is_some());
    let names = |parameters: &[Parameter]| parameters.iter().map(|&one| title(one)).collect::<Vec<String>>().join(", ");
    let layout = match sheet.across {
        Some(across) if sheet.down.is_empty() => format!(" Columns: {}.", title(across)),
        Some(across) => format!(" Columns: {}; rows: {}.", title(across), names(&sheet.down)),
        None => String::new(),
    };
    let shared = grid.iter().zip(&sheet.rows).find_map(|(_, row)| row.iter().flatten().next());
    let shared = shared.map_or(Vec::new(), |&idx| phrases(evidence, panels[idx].0, &sheet.shared));
    let of = if shared.is_empty() { String::new() } else { format!(": {}", shared.join(" · ")) };
    let title = format!("Throughput by structure{of}");
    let caption = format!(
        "Each mark is one trial; the upright bar and the number are the median, the line is its 95 % interval where there \
         are more than five trials.{layout} {axes} Further right is faster.{}",
        quick(evidence)
    );
    drawn(format!("throughput-{}.svg", figure_idx + 1), title, caption, &grid)
}

/// Lets panels share an axis, all of them or those of a row, unless that would press one together.
fn share_axes(grid: &mut [Vec<Option<Panel>>], rows_compare: bool) -> &'static str {
    fn share(panels: Vec<&mut Panel>) {
        let largest = panels.iter().map(|panel| panel.max).fold(0.0, f64::max);
        panels.into_iter().for_each(|panel| panel.max = largest);
    }
    let fits = |panels: Vec<&Panel>| {
        let largest = panels.iter().map(|panel| panel.max).fold(0.0, f64::max);
        panels.iter().all(|panel| panel.max >= MIN_SHARED * largest)
    };
    if grid.iter().flatten().flatten().count() < 2 {
        return "The axis starts at zero.";
    }
    if fits(grid.iter().flatten().flatten().collect()) {
        share(grid.iter_mut().flatten().flatten().collect());
        return "All axes start at zero and are the same.";
    }
    if rows_compare && grid.iter().all(|row| fits(row.iter().flatten().collect())) {
        grid.iter_mut().for_each(|row| share(row.iter_mut().flatten().collect()));
        return "All axes start at zero; they are the same within a row and differ between rows.";
    }
    "All axes start at zero; they differ between panels."
}

fn rows(evidence: &Evidence, group: &[u32]) -> Vec<Row> {
    let competing =
        group.iter().copied().filter(|&cell| !validity::stores_nothing(&evidence.plan.cell(cell).structure().name));
    let row = |cell| {
        let summary = evidence.summary.cell(cell);
        let described = summary.description.as_ref();
        Row {
            label: text::visible(&evidence.plan.cell(cell).structure().label),
            series_idx: series_idx(evidence, cell),
            values: summary.values.iter().map(|value| value / 1e6).collect(),
            median: described.map(|described| (described.median / 1e6, number::mops(described.median))),
            interval: described
                .and_then(|described| described.interval)
                .map(|interval| Interval { low: interval.low / 1e6, high: interval.high / 1e6 }),
        }
    };
    competing.map(row).collect()
}

/// Returns the index of a cell's structure, which gives it colour and shape.
pub(crate) fn series_idx(evidence: &Evidence, cell: u32) -> usize {
    evidence.plan.cells[cell as usize][Parameter::Structure as usize] as usize
}

fn phrases(evidence: &Evidence, cell: u32, parameters: &[Parameter]) -> Vec<String> {
    let cell = evidence.plan.cell(cell);
    parameters.iter().map(|&parameter| evidence.phrase(parameter, cell.value(parameter))).collect()
}

fn quick(evidence: &Evidence) -> &'static str {
    if evidence.quick { " Quick run: do not publish." } else { "" }
}

/// Draws panels in rows of equal lengths.
pub(crate) fn drawn<S: Sketch>(file: String, title: String, caption: String, grid: &[Vec<Option<S>>]) -> Block {
    let grid: Vec<Vec<Option<&dyn Sketch>>> = grid
        .iter()
        .map(|row| row.iter().map(|place| place.as_ref().map(|sketch| -> &dyn Sketch { sketch })).collect())
        .collect();
    let n_columns = grid.iter().map(Vec::len).max().unwrap_or(1);
    let Drawing { inline, standalone } = draw(&grid, &title);
    Block::Figure(Figure { file, title, caption, n_columns, inline, standalone })
}

/// Trials that ran under the same number of threads, in the order of the run.
pub(crate) struct Track {
    /// Their number of threads; empty if it is the same for all.
    pub name: String,
    /// One point a trial that counts.
    pub points: Vec<Point>,
    /// Index of the trial of its cell, for each point: the block.
    blocks: Vec<u32>,
}

impl Track {
    /// Returns the median ratio of the first and of the last quarter of its trials.
    pub(crate) fn ends(&self) -> (f64, f64) {
        let quarter = self.points.len().div_ceil(4);
        let median_of = |points: &[Point]| median(&points.iter().map(|point| point.ratio).collect::<Vec<f64>>());
        let last = &self.points[self.points.len() - quarter..];
        (median_of(&self.points[..quarter]).unwrap_or(1.0), median_of(last).unwrap_or(1.0))
    }
}

/// Returns the trials that count relative to the median of their cell, by number of threads. Cells with fewer than
/// `min_n` trials are left out: each of their trials makes half of the median that it is held against.
pub(crate) fn tracks(evidence: &Evidence, min_n: usize) -> Vec<Track> {
    let plan = evidence.plan;
    let values = &plan.values[Parameter::Threads as usize];
    let name = |value| if values.len() > 1 { evidence.phrase(Parameter::Threads, value) } else { String::new() };
    let mut tracks: Vec<Track> =
        values.iter().map(|value| Track { name: name(value), points: Vec::new(), blocks: Vec::new() }).collect();
    for (record_idx, (trial, summary)) in evidence.trials.iter().zip(&evidence.summary.trials).enumerate() {
        let (Standing::Counted, Some(throughput)) = (summary.standing, summary.throughput) else { continue };
        let cell = trial.trial.cell;
        let Some(described) = evidence.summary.cell(cell).description.as_ref().filter(|one| one.n >= min_n) else {
            continue;
        };
        if described.median > 0.0 {
            let track = &mut tracks[plan.cells[cell as usize][Parameter::Threads as usize] as usize];
            let position = u32::try_from(record_idx).expect("records are counted in u32 by the plan's limits");
            let series_idx = series_idx(evidence, cell);
            track.points.push(Point { position, ratio: throughput / described.median, series_idx });
            track.blocks.push(trial.trial.trial_idx);
        }
    }
    tracks.retain(|track| !track.points.is_empty());
    tracks
}

/// Draws the drift of tracks, one panel each.
pub(crate) fn drift(evidence: &Evidence, tracks: &[Track]) -> Block {
    let ratios = || tracks.iter().flat_map(|track| track.points.iter().map(|point| point.ratio));
    let range = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    let last_position =
        tracks.iter().filter_map(|track| track.points.last()).map(|point| point.position).max().unwrap_or(0);
    let n_points: usize = tracks.iter().map(|track| track.points.len()).sum();
    let panel = |track: &Track| {
        let mut series: Vec<usize> = track.points.iter().map(|point| point.series_idx).collect();
        series.sort_unstable();
        series.dedup();
        let label = |idx: usize| text::visible(&evidence.plan.values[Parameter::Structure as usize][idx].to_string());
        let title = if track.name.is_empty() { "all trials".to_owned() } else { text::visible(&track.name) };
        Drift {
            title,
            legend: series.into_iter().map(|idx| (idx, label(idx))).collect(),
            points: if n_points > MAX_POINTS { Vec::new() } else { track.points.clone() },
            steps: steps(track),
            last_position,
            range,
        }
    };
    let mut grid: Vec<Vec<Option<Drift>>> =
        tracks.chunks(2).map(|pair| pair.iter().map(|track| Some(panel(track))).collect()).collect();
    if let ([_, _, ..], Some(last)) = (tracks, grid.last_mut()) {
        last.resize(2, None);
    }
    let axis = if range.0 >= 0.1 { " The axis does not start at zero." } else { "" };
    let marks = if n_points > MAX_POINTS {
        format!(
            "{n_points} trials are too many to be drawn one by one; what counts is a trial's throughput over the median of its own cell."
        )
    } else {
        "Each mark is one trial, in the order in which they ran; its height is its throughput over the median of its own \
         cell.".to_owned()
    };
    let caption = format!(
        "{marks} The bars are the medians of the blocks, each of which holds one trial of every cell. Look for bars that climb or \
         fall together in all structures: then the machine changed during the run. Blocks spread that over all cells, so \
         that it widens the intervals rather than favours one.{axis}{}",
        quick(evidence)
    );
    drawn("drift.svg".to_owned(), "Trials relative to their cell, in order".to_owned(), caption, &grid)
}

/// First and last position and median of each block.
fn steps(track: &Track) -> Vec<(u32, u32, f64)> {
    let mut by_block = std::collections::BTreeMap::<u32, Vec<Point>>::new();
    for (point, &block) in track.points.iter().zip(&track.blocks) {
        by_block.entry(block).or_default().push(*point);
    }
    let step = |points: Vec<Point>| {
        let positions = || points.iter().map(|point| point.position);
        let ratios: Vec<f64> = points.iter().map(|point| point.ratio).collect();
        Some((positions().min()?, positions().max()?, median(&ratios)?))
    };
    by_block.into_values().filter_map(step).collect()
}
