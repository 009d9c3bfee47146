//! What the FTL holds in RAM, and where it writes.

use crate::report::ram::meaning;
use crate::units::bytes;
use crate::watch::pages::Look;
use crate::watch::show::Show;
use ftl::Purpose;
use ftl::inspect::{BlockUse, LevelView, RunView, StreamView};
use nand::{BlockId, PageKind, Ppn};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::fmt::Write as _;

/// Draws the panel.
pub fn draw(frame: &mut Frame, area: Rect, show: &Show) {
    let mut lines = Vec::new();
    counts(&mut lines, show);
    lines.extend(show.seen.levels.iter().map(level));
    runs(&mut lines, &show.seen.runs);
    lines.push(write_points(&show.seen.streams));
    lines.push(Line::from(format!("Free    {} blocks", show.seen.free_blocks)));
    lines.push(programs(show));
    lines.push(heading("RAM by structure"));
    let mut ram = show.seen.ram.clone();
    ram.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.name.cmp(b.name)));
    let total: u64 = ram.iter().map(|item| item.bytes).sum();
    lines.push(Line::from(format!("{:>9}  in all", bytes(total))));
    for item in ram.iter().filter(|item| item.bytes > 0) {
        let what = meaning(item.name).map_or_else(String::new, |what| format!(": {what}"));
        lines.push(Line::from(format!("{:>9}  {}{what}", bytes(item.bytes), item.name)));
    }
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" The FTL ")), area);
}

fn heading(text: &str) -> Line<'static> {
    Line::from(Span::styled(text.to_owned(), Style::new().add_modifier(Modifier::BOLD)))
}

/// Live, dead and free pages, and the victim.
fn counts(lines: &mut Vec<Line<'static>>, show: &Show) {
    let geometry = show.geometry();
    let (mut live, mut dead) = (0_u32, 0_u32);
    for ppn in (0..geometry.pages()).map(Ppn) {
        match show.pages.look(ppn) {
            Look::Live(_) => live += 1,
            Look::Dead(_) => dead += 1,
            Look::Free => {}
        }
    }
    let free = geometry.pages() - live - dead;
    lines.push(Line::from(format!("Pages   {live} live, {dead} dead, {free} free")));
    if show.between_requests() {
        let unknown = unknown(show);
        if unknown > 0 {
            lines.push(Line::from(format!("        {unknown} of the dead not known yet")));
        }
    }
    let victim = show.victim.map_or_else(
        || format!("none now; {} collected so far", show.collections),
        |block| format!("block {}, {} live pages to move", block.0, show.pages.live(block)),
    );
    lines.push(Line::from(vec![Span::from("Victim  "), Span::styled(victim, Style::new().fg(Color::Yellow))]));
}

/// Dead pages of host data that the FTL counts as live.
fn unknown(show: &Show) -> u32 {
    let geometry = show.geometry();
    let is_live = |ppn: &Ppn| show.pages.look(*ppn) == Look::Live(PageKind::User);
    let counted = show.seen.blocks.iter().filter(|view| view.used_for == BlockUse::Host);
    counted
        .map(|view| {
            let block: BlockId = view.block;
            let pages = (0..geometry.pages_per_block()).map(|offset| geometry.page_at(block, offset));
            view.live.saturating_sub(pages.filter(is_live).count() as u32)
        })
        .sum()
}

/// How full a structure is.
fn level(level: &LevelView) -> Line<'static> {
    const WIDTH: u32 = 16;
    let LevelView { name, entries, capacity, dirty } = *level;
    let share =
        |part: u32| (u64::from(part) * u64::from(WIDTH) / u64::from(capacity.max(1))).min(WIDTH.into()) as usize;
    let clean = share(entries).saturating_sub(share(dirty));
    let rest = WIDTH as usize - share(dirty) - clean;
    let bar = [
        Span::styled("#".repeat(share(dirty)), Style::new().fg(Color::Yellow)),
        Span::styled("=".repeat(clean), Style::new().fg(Color::Green)),
        Span::from(".".repeat(rest)),
    ];
    let (what, tail) = match name {
        "cmt" => ("Cache ", format!("{entries}/{capacity}, {dirty} dirty")),
        "gecko_buffer" => ("Buffer", format!("{entries}/{capacity} entries")),
        name => (name, format!("{entries}/{capacity}, {dirty} not in flash")),
    };
    let mut spans = vec![Span::from(format!("{what}  "))];
    spans.extend(bar);
    spans.push(Span::from(format!("  {tail}")));
    Line::from(spans)
}

/// The runs, youngest first, as queries read them.
fn runs(lines: &mut Vec<Line<'static>>, runs: &[RunView]) {
    for run in runs.iter().rev() {
        let RunView { number, level, entries, pages } = *run;
        let bar = "V".repeat(pages.min(24) as usize);
        lines.push(Line::from(vec![
            Span::from(format!("Run {number:<4}level {level}  ")),
            Span::styled(bar, Style::new().fg(Color::Magenta)),
            Span::from(format!("  {entries} entries in {pages} page{}", if pages == 1 { "" } else { "s" })),
        ]));
    }
}

/// The sign of a write point.
pub fn sign(stream: &StreamView) -> char {
    match (stream.used_for, stream.stream) {
        (BlockUse::Host, 0) => 'h',
        (BlockUse::Host, 1) => 'g',
        (BlockUse::Host, other) => char::from_digit(other % 36, 36).unwrap_or('+'),
        (BlockUse::Translation, _) => 't',
        (BlockUse::Validity, _) => 'v',
        (BlockUse::Data | BlockUse::Log | BlockUse::Checkpoint | BlockUse::Free | BlockUse::Bad, _) => '+',
    }
}

fn write_points(streams: &[StreamView]) -> Line<'static> {
    let mut text = String::from("Write points ");
    for stream in streams {
        let place = if stream.block.is_some() { stream.block.0.to_string() } else { "-".to_owned() };
        let _ = write!(text, " {} {place}", sign(stream));
    }
    if streams.is_empty() {
        text.push_str(" in data blocks (d) and log blocks (l)");
    }
    Line::from(text)
}

fn programs(show: &Show) -> Line<'static> {
    let mut text = String::from("Programs");
    for purpose in Purpose::ALL {
        let count = show.programs[purpose as usize];
        if count > 0 {
            let _ = write!(text, "  {} {count}", purpose.name());
        }
    }
    Line::from(text)
}
