//! The last requests, and the flash operations that each caused.

use crate::watch::show::{Show, Told};
use ftl::{Op, OpKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use std::fmt::Write as _;

/// Draws the panel.
pub fn draw(frame: &mut Frame, area: Rect, show: &Show) {
    let room = usize::from(area.height.saturating_sub(3));
    let mut lines = vec![now(show)];
    lines.extend(show.told.iter().rev().take(room).map(|told| Line::from(line(told))));
    let title = " Requests, newest first: the flash operations of each by purpose ";
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}

/// The last operation in words.
fn now(show: &Show) -> Line<'static> {
    let text = show.last.map_or_else(|| "nothing was done yet".to_owned(), |op| told(show, &op));
    Line::from(vec![Span::styled("Last operation: ", Style::new().add_modifier(Modifier::BOLD)), Span::from(text)])
}

fn told(show: &Show, op: &Op) -> String {
    let geometry = show.geometry();
    let place = |ppn| format!("page {} of block {}", geometry.offset_of(ppn), geometry.block_of(ppn).0);
    let holds = show.pages.logical(op.page).map_or_else(String::new, |lpn| format!(" (LPN {lpn})"));
    let what = match op.kind {
        OpKind::Read => format!("read {}{holds}", place(op.page)),
        OpKind::SpareRead => format!("read the spare area of {}{holds}", place(op.page)),
        OpKind::Program => format!("program {}{holds}", place(op.page)),
        OpKind::Copy => format!("copy {} to {}{holds}", place(op.from), place(op.page)),
        OpKind::Erase => format!("erase block {}", geometry.block_of(op.page).0),
        OpKind::Flags => format!("set flags of {}{holds}", place(op.page)),
    };
    format!("{what}, for {}", op.purpose.name())
}

/// A request in a line.
fn line(told: &Told) -> String {
    let mut text = format!("{:>6}  {:<14}", told.number, told.asked);
    let mut ops = &told.ops[..];
    while let Some(first) = ops.first() {
        let alike = ops.iter().take_while(|op| op.purpose == first.purpose).count();
        let _ = write!(text, " {}", first.purpose.name());
        letters(&mut text, &ops[..alike]);
        text.push(' ');
        ops = &ops[alike..];
    }
    text
}

/// `R`, `P×3`, ….
fn letters(text: &mut String, mut ops: &[Op]) {
    while let Some(first) = ops.first() {
        let alike = ops.iter().take_while(|op| op.kind == first.kind).count();
        text.push(' ');
        text.push(match first.kind {
            OpKind::Read => 'R',
            OpKind::SpareRead => 'S',
            OpKind::Program => 'P',
            OpKind::Copy => 'C',
            OpKind::Erase => 'E',
            OpKind::Flags => 'F',
        });
        if alike > 1 {
            let _ = write!(text, "×{alike}");
        }
        ops = &ops[alike..];
    }
}
