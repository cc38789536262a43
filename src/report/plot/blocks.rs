//! One panel: where the blocks of memory of each thread lie, line by line of the cache.
//!
//! Kinds are told apart by letters and by colours. What is between lines is not drawn to scale: it would be most of it.

use plotters::style::{Color, text_anchor::HPos};

use super::{
    palette::{self, Ink},
    pen::{Area, Drawn, MARGIN, Pen, Sketch, TITLE_CHARS, TITLE_LINE, UNIT, WIDTH, wrap},
};

/// Bytes of a cache line.
pub(crate) const LINE: u64 = 64;

/// Width of a line in points: eight of them and a gap in a row.
const LINE_WIDTH: i32 = 44;
/// Width of what stands for a gap.
const GAP_WIDTH: i32 = 12;
/// Height of a row of lines, and of the blocks in it.
const ROW: i32 = 24;
const BLOCK: i32 = 15;
const LABEL: i32 = 19;
const LEGEND_LINE: i32 = 17;
/// Rows of a thread; more would make the page long and teach nothing new.
const MAX_ROWS: usize = 4;
/// Narrowest part of a block that holds its letter, in units.
const LETTER_MIN: i32 = 7 * UNIT;

/// What a panel of blocks shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// What tells it from the other panels.
    pub heading: String,
    /// The same with what it shows, for those who cannot see it.
    pub told: String,
    /// Each kind of block.
    pub kinds: Vec<Kind>,
    /// One a thread.
    pub lanes: Vec<Lane>,
}

/// A kind of block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kind {
    pub letter: char,
    pub name: String,
}

/// The blocks of one thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    pub name: String,
    /// Sorted by address.
    pub blocks: Vec<Placed>,
}

/// A block in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub address: u64,
    /// At least 1.
    pub size: u64,
    /// Index into [`Blocks::kinds`].
    pub kind_idx: usize,
    /// It belongs to the thread of its lane, and not to another that has blocks on the same lines.
    pub is_own: bool,
}

impl Placed {
    /// Returns the first and the last line on which it lies.
    pub(crate) fn lines(&self) -> (u64, u64) {
        (self.address / LINE, (self.address + self.size - 1) / LINE)
    }
}

/// A line in its place within a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    line: u64,
    /// Left end in points.
    left: i32,
    row: usize,
    /// A gap is before it, in the same row.
    after_gap: bool,
}

impl Lane {
    /// Returns the lines on which blocks of the thread begin or end, ascending.
    fn lines(&self) -> Vec<u64> {
        let own = self.blocks.iter().filter(|block| block.is_own);
        // Of a block of many lines the inner ones look all the same.
        let mut lines: Vec<u64> = own.flat_map(|block| <[u64; 2]>::from(block.lines())).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    fn slots(&self) -> Vec<Slot> {
        let (mut slots, mut left, mut row): (Vec<Slot>, i32, usize) = (Vec::new(), 0, 0);
        for line in self.lines() {
            let after_gap = slots.last().is_some_and(|last| last.line + 1 != line);
            let width = if after_gap { GAP_WIDTH } else { 0 };
            if left + width + LINE_WIDTH > WIDTH - 2 * MARGIN {
                (left, row) = (0, row + 1);
            }
            if row == MAX_ROWS {
                break;
            }
            left += width;
            slots.push(Slot { line, left: MARGIN + left, row, after_gap });
            left += LINE_WIDTH;
        }
        slots
    }

    fn height(&self) -> i32 {
        let n_rows = self.slots().last().map_or(0, |slot| slot.row + 1);
        LABEL + ROW * points(n_rows)
    }

    fn draw(&self, pen: &Pen, top: i32, kinds: &[Kind]) -> Drawn {
        pen.text(&self.name, (MARGIN, top + LABEL / 2), 11, palette::MUTED, HPos::Left)?;
        for slot in self.slots() {
            let top = top + LABEL + ROW * points(slot.row);
            slot.frame(pen, top)?;
            // Those of others first, so that what is the thread's own is seen whole.
            let on_line = |block: &&Placed| (block.lines().0..=block.lines().1).contains(&slot.line);
            for is_own in [false, true] {
                for block in self.blocks.iter().filter(|block| block.is_own == is_own).filter(on_line) {
                    slot.block(pen, top, block, &kinds[block.kind_idx])?;
                }
            }
        }
        Ok(())
    }
}

impl Slot {
    /// Draws the ends of the line, and the gap before it.
    fn frame(&self, pen: &Pen, top: i32) -> Drawn {
        let (left, right) = (self.left, self.left + LINE_WIDTH);
        for x in [left, right] {
            pen.line(pen.at((x, top)), pen.at((x, top + BLOCK + 6)), UNIT, palette::MUTED)?;
        }
        if self.after_gap {
            pen.text("…", (left - GAP_WIDTH / 2, top + BLOCK / 2), 11, palette::MUTED, HPos::Center)?;
        }
        Ok(())
    }

    /// Draws the part of a block that lies on the line.
    fn block(&self, pen: &Pen, top: i32, block: &Placed, kind: &Kind) -> Drawn {
        let start = self.line * LINE;
        let (from, to) = (block.address.max(start), (block.address + block.size).min(start + LINE));
        let x = |address: u64| {
            let bytes = i32::try_from(address - start).expect("a line has few bytes");
            pen.at((self.left, 0)).0 + bytes * LINE_WIDTH * UNIT / 64
        };
        let (left, right) = (x(from), x(to));
        let (upper, lower) = (pen.at((0, top + 3)).1, pen.at((0, top + 3 + BLOCK)).1);
        let ink = if block.is_own { ink(block.kind_idx) } else { palette::MUTED };
        let fill = ink.rgb.mix(if block.is_own { 0.35 } else { 0.12 }).filled();
        pen.area.draw(&plotters::element::Rectangle::new([(left, upper), (right, lower)], fill))?;
        if from == block.address {
            pen.line((left, upper), (left, lower), UNIT * 3 / 2, ink)?;
        }
        // The letter stands once, on the line that holds the most of the block.
        let is_most = (to - from) * 2 > block.size || (from == block.address && (to - from) * 2 == block.size);
        if block.is_own && (is_most || block.size > LINE) && right - left >= LETTER_MIN {
            let middle = ((left + right) / 2, (upper + lower) / 2);
            pen.text_at(&kind.letter.to_string(), middle, 10, palette::TEXT, HPos::Center)?;
        }
        Ok(())
    }
}

fn ink(kind_idx: usize) -> Ink {
    palette::series(kind_idx).0
}

fn points(count: usize) -> i32 {
    i32::try_from(count).expect("a panel has few rows")
}

impl Blocks {
    fn titles(&self) -> Vec<String> {
        wrap(&self.heading, TITLE_CHARS, 3)
    }

    fn legend_top(&self) -> i32 {
        11 + TITLE_LINE * points(self.titles().len())
    }
}

impl Sketch for Blocks {
    fn title(&self) -> &str {
        &self.told
    }

    fn height(&self) -> i32 {
        let lanes: i32 = self.lanes.iter().map(Lane::height).sum();
        self.legend_top() + LEGEND_LINE * points(self.kinds.len()) + lanes + MARGIN / 2
    }

    fn draw(&self, area: &Area, left: i32, top: i32) -> Drawn {
        let pen = Pen { area, left, top };
        pen.title(&self.titles())?;
        let mut y = self.legend_top();
        for (kind_idx, kind) in self.kinds.iter().enumerate() {
            let (upper, lower) = (pen.at((MARGIN, y)), pen.at((MARGIN + 14, y + 14)));
            let fill = ink(kind_idx).rgb.mix(0.35).filled();
            pen.area.draw(&plotters::element::Rectangle::new([upper, lower], fill))?;
            pen.line(upper, (upper.0, lower.1), UNIT * 3 / 2, ink(kind_idx))?;
            pen.text(&kind.letter.to_string(), (MARGIN + 7, y + 7), 10, palette::TEXT, HPos::Center)?;
            pen.text(&kind.name, (MARGIN + 20, y + 7), 11, palette::TEXT, HPos::Left)?;
            y += LEGEND_LINE;
        }
        for lane in &self.lanes {
            lane.draw(&pen, y, &self.kinds)?;
            y += lane.height();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(blocks: &[(u64, u64)]) -> Lane {
        let placed = |&(address, size): &(u64, u64)| Placed { address, size, kind_idx: 0, is_own: true };
        Lane { name: String::new(), blocks: blocks.iter().map(placed).collect() }
    }

    #[test]
    fn lines_without_blocks_are_gaps() {
        let slots = lane(&[(64, 32), (96, 64), (640, 8)]).slots();
        let shown: Vec<(u64, bool)> = slots.iter().map(|slot| (slot.line, slot.after_gap)).collect();
        assert_eq!(shown, [(1, false), (2, false), (10, true)], "the second block lies on two lines");
        assert_eq!(slots[2].left - slots[1].left, LINE_WIDTH + GAP_WIDTH);
    }

    #[test]
    fn rows_hold_what_the_panel_is_wide() {
        let many: Vec<(u64, u64)> = (0..1000).map(|idx| (idx * 64, 64)).collect();
        let slots = lane(&many).slots();
        assert_eq!(slots.len(), 8 * MAX_ROWS);
        assert!(slots.iter().all(|slot| slot.left + LINE_WIDTH <= WIDTH - MARGIN));
        let apart: Vec<(u64, u64)> = (0..1000).map(|idx| (idx * 640, 64)).collect();
        assert!(lane(&apart).slots().iter().all(|slot| slot.left + LINE_WIDTH <= WIDTH - MARGIN));
    }
}
