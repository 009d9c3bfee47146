//! The pages of the device, block by block.

use super::View;
use crate::watch::pages::Look;
use crate::watch::show::Show;
use ftl::inspect::BlockUse;
use nand::{BlockId, PageKind, Ppn};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Block, Widget};

/// Pages of a block that are drawn one by one; of larger blocks a cell stands for several.
const CELLS: u32 = 32;

/// How blocks are laid out.
#[derive(Clone, Copy)]
struct Grid {
    /// Cells of a block.
    cells: u32,
    /// Two cells share a character.
    dense: bool,
    /// Blocks in a line, and lines.
    across: u32,
    lines: u32,
}

impl Grid {
    fn new(pages: u32, area: Rect, dense: bool) -> Self {
        let cells = pages.min(CELLS);
        let width = if dense { cells.div_ceil(2) } else { cells } + 1;
        Self { cells, dense, across: (u32::from(area.width) / width).max(1), lines: u32::from(area.height) }
    }

    const fn blocks(self) -> u32 {
        self.across * self.lines
    }

    const fn width(self) -> u32 {
        if self.dense { self.cells.div_ceil(2) + 1 } else { self.cells + 1 }
    }
}

/// Columns of the panel: no more than it needs for all blocks, and at most 3 of 5.
pub fn width(area: Rect, view: &View) -> u16 {
    let (blocks, cells) = (view.show.geometry().blocks(), view.show.geometry().pages_per_block().min(CELLS));
    let lines = u32::from(area.height.saturating_sub(2)).max(1);
    let needed = blocks.div_ceil(lines) * (cells + 1) + 3;
    u16::try_from(needed.max(46)).unwrap_or(u16::MAX).min(area.width * 3 / 5)
}

/// Draws the panel.
pub fn draw(frame: &mut Frame, area: Rect, view: &View) {
    let (show, geometry) = (view.show, view.show.geometry());
    let (blocks, pages) = (geometry.blocks(), geometry.pages_per_block());
    let panel = Block::bordered();
    let inner = panel.inner(area);
    let mut grid = Grid::new(pages, inner, false);
    if grid.blocks() < blocks && view.colours {
        grid = Grid::new(pages, inner, true);
    }
    let first = first_block(show, grid, blocks);
    let last = (first + grid.blocks()).min(blocks);
    let each = if pages > CELLS { format!(", a letter for {} pages", pages.div_ceil(CELLS)) } else { String::new() };
    let title = format!(" Flash: blocks {first} to {} of {blocks}, {pages} pages each{each} ", last.max(1) - 1);
    let legend = " # live x dead . free  T table V validity C checkpoint ";
    panel.title(title).title_bottom(legend).render(area, frame.buffer_mut());
    for block in first..last {
        let at = block - first;
        let x = inner.x + (at % grid.across * grid.width()) as u16;
        let y = inner.y + (at / grid.across) as u16;
        draw_block(frame.buffer_mut(), inner, (x, y), view, grid, BlockId(block));
    }
}

/// The first block shown: 0 if all are, else one such that the last operation can be seen.
fn first_block(show: &Show, grid: Grid, blocks: u32) -> u32 {
    let busy = show.last.map_or(0, |op| show.geometry().block_of(op.page).0);
    if grid.blocks() >= blocks {
        return 0;
    }
    let shown = grid.blocks().max(1);
    busy / shown * shown
}

fn draw_block(buffer: &mut Buffer, inner: Rect, (x, y): (u16, u16), view: &View, grid: Grid, block: BlockId) {
    let mark = mark(view.show, block);
    if let Some(spot) = buffer.cell_mut((x, y)).filter(|_| x < inner.right()) {
        spot.set_char(mark).set_style(Style::new().add_modifier(Modifier::BOLD));
    }
    for cell in 0..grid.cells {
        let (letter, colour, touched) = cell_of(view.show, block, cell, grid.cells);
        let place = x + 1 + (if grid.dense { cell / 2 } else { cell }) as u16;
        let Some(spot) = buffer.cell_mut((place, y)).filter(|_| place < inner.right()) else { continue };
        if grid.dense {
            let colour = if touched { Color::White } else { colour };
            if cell % 2 == 0 {
                spot.set_char('▌').set_fg(colour)
            } else {
                spot.set_bg(colour)
            };
            continue;
        }
        let mut style = Style::new().fg(colour);
        if letter.is_ascii_uppercase() || letter == '#' {
            style = style.add_modifier(Modifier::BOLD);
        }
        if touched {
            style = style.add_modifier(Modifier::REVERSED);
        }
        spot.set_char(letter).set_style(style);
    }
}

/// The sign before a block.
fn mark(show: &Show, block: BlockId) -> char {
    if show.victim == Some(block) {
        return '>';
    }
    if let Some(stream) = show.seen.streams.iter().find(|stream| stream.block == block) {
        return super::structures::sign(stream);
    }
    match show.seen.blocks.get(block.index()).map(|view| view.used_for) {
        Some(BlockUse::Data) => 'd',
        Some(BlockUse::Log) => 'l',
        _ => ' ',
    }
}

/// The letter and colour of a cell, and whether the last operation was about a page in it.
fn cell_of(show: &Show, block: BlockId, cell: u32, cells: u32) -> (char, Color, bool) {
    let pages = show.geometry().pages_per_block();
    let range = cell * pages / cells..(cell + 1) * pages / cells;
    let ppns = range.map(|offset| show.geometry().page_at(block, offset));
    let touched = |ppn: Ppn| show.last.is_some_and(|op| op.page == ppn || op.from == ppn);
    let (mut best, mut is_touched) = (None, false);
    for ppn in ppns {
        is_touched |= touched(ppn);
        let look = show.pages.look(ppn);
        // Of several pages the one that tells most is shown.
        let rank = match look {
            Look::Live(_) => 2,
            Look::Dead(_) => 1,
            Look::Free => 0,
        };
        if best.is_none_or(|(before, _)| rank > before) {
            best = Some((rank, look));
        }
    }
    let (letter, colour) = letter(best.map_or(Look::Free, |(_, look)| look));
    (letter, colour, is_touched)
}

const fn letter(look: Look) -> (char, Color) {
    match look {
        Look::Free => ('.', Color::DarkGray),
        Look::Live(PageKind::User) => ('#', Color::Green),
        Look::Dead(PageKind::User) => ('x', Color::Red),
        Look::Live(PageKind::Translation) => ('T', Color::Cyan),
        Look::Dead(PageKind::Translation) => ('t', Color::Blue),
        Look::Live(PageKind::Validity) => ('V', Color::Magenta),
        Look::Dead(PageKind::Validity) => ('v', Color::LightRed),
        Look::Live(PageKind::Checkpoint) => ('C', Color::Yellow),
        Look::Dead(PageKind::Checkpoint) => ('c', Color::Gray),
    }
}
