//! One frame: guide, flash, structures, requests, keys.

mod flash;
mod requests;
mod structures;

use super::guide::Chapter;
use super::show::Show;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// Everything that a frame shows.
pub struct View<'a> {
    /// The run.
    pub show: &'a Show,
    /// What is run.
    pub title: &'a str,
    /// The chapter of the guide.
    pub chapter: &'a Chapter,
    /// Its place among the others, from 1, and how many there are.
    pub place: (usize, usize),
    /// How the run goes on: paused, or so many operations a second.
    pub pace: String,
    /// What the last key led to, if that needs words.
    pub message: Option<&'a str>,
    /// Whether help lies over everything.
    pub help: bool,
    /// Whether pages can be told apart by colour; by letters alone otherwise.
    pub colours: bool,
}

const KEYS: &str =
    "space run/pause  o operation  r request  c collection  n next chapter  p previous  +/- speed  ? help  q quit";

const HELP: &str = "\
space   run, or pause
o, →    show one flash operation
r, ↓    show one request of the host with all it causes
c       go on until a block was collected
n       go on to the next chapter of the guide
p       read the chapter before again
+ -     faster, slower
? h     this help
q Esc   quit

Pages       # live host data    x dead     . never programmed since the erase
            T translation page  V page of a validity store  C checkpoint
            small letters: dead
Blocks      the sign before a block: h the host writes here, g collected pages
            go here, t and v metadata, d data block, l log block, > it is collected
Operations  R read  S read of a spare area  P program  C copy  E erase  F flags
Purposes    host: asked for by the host; gc: moving live pages; translation: the
            mapping table; validity: which pages are dead; validity_query: asking
            that; …_gc: moving such pages; checkpoint, recovery: for power loss
";

/// Draws a frame.
pub fn draw(frame: &mut Frame, view: &View) {
    let area = frame.area();
    let tall = area.height >= 36;
    let [top, guide, middle, bottom, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(if tall { 7 } else { 5 }),
        Constraint::Min(5),
        Constraint::Length(if tall { 9 } else { 5 }),
        Constraint::Length(1),
    ])
    .areas(area);
    let width = flash::width(middle, view);
    let [left, right] = Layout::horizontal([Constraint::Length(width), Constraint::Min(10)]).areas(middle);
    frame.render_widget(Paragraph::new(header(view)), top);
    frame.render_widget(chapter(view), guide);
    flash::draw(frame, left, view);
    structures::draw(frame, right, view.show);
    requests::draw(frame, bottom, view.show);
    let last = view.message.map_or(KEYS, |message| message);
    frame.render_widget(Paragraph::new(last).style(Style::new().add_modifier(Modifier::DIM)), keys);
    if view.help {
        help(frame, area, HELP);
    }
}

/// Lays a text over a frame.
pub fn help(frame: &mut Frame, area: Rect, text: &str) {
    let lines = text.lines().count() as u16;
    let width = text.lines().map(|line| line.chars().count() as u16).max().unwrap_or(0);
    let over = area.centered(Constraint::Length((width + 4).min(area.width)), Constraint::Length(lines + 2));
    frame.render_widget(Clear, over);
    frame.render_widget(Paragraph::new(text).block(Block::bordered().title(" Help: any key goes back ")), over);
}

fn header(view: &View) -> Line<'static> {
    let show = view.show;
    let text = format!(
        "{}   request {}   write amplification {:.2}   {}",
        view.title,
        show.requests,
        show.amplification(),
        view.pace
    );
    Line::from(Span::styled(text, Style::new().add_modifier(Modifier::BOLD)))
}

fn chapter<'a>(view: &View<'a>) -> Paragraph<'a> {
    let (at, of) = view.place;
    let title = format!(" Guide {at}/{of}: {} ", view.chapter.title);
    Paragraph::new(view.chapter.text).wrap(Wrap { trim: true }).block(Block::bordered().title(title))
}
