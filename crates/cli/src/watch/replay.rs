//! What the explorer did, event by event: requests, cuts, mounts, and how it came out.

use super::screen::{Key, Pace, Scene};
use crate::args::StepBy;
use crate::crash;
use crate::error::usage;
use ::crash::{Event, Trace};
use anyhow::Result;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Wrap};

const HELP: &str = "\
o r → ↓   the next event
c         the next cut
n         the next mount
p ← ↑     the event before
space     run, or pause
+ -       faster, slower
q Esc     quit
";

const KEYS: &str = "space run/pause  r next event  c next cut  n next mount  p event before  +/- speed  ? help  q quit";

/// A replay and the event that is looked at.
pub struct Replay {
    id: String,
    trace: Trace,
    at: usize,
    help: bool,
}

impl Replay {
    /// Does again what an id stands for. The name of an FTL stands for one cut in generated work.
    pub fn new(id: &str, seed: u64) -> Result<Self> {
        let is_name = ftl::ftls::infos().iter().any(|info| info.name == id);
        let refused = |error: ::crash::ReplayError| {
            usage(format!("{error}; give an id that openftl crash printed, or the name of an FTL that can be mounted"))
        };
        let id = if is_name { ::crash::example(id, seed).map_err(refused)? } else { id.to_owned() };
        let trace = ::crash::trace(&id).map_err(refused)?;
        Ok(Self { id, trace, at: 0, help: false })
    }

    /// Places, one after the last event for the outcome.
    fn len(&self) -> usize {
        self.trace.events.len() + 1
    }

    /// Goes on to an event that is `wanted`, or to the outcome.
    fn to(&mut self, wanted: impl Fn(&Event) -> bool) -> bool {
        if self.at + 1 >= self.len() {
            return false;
        }
        let later = self.trace.events.iter().skip(self.at + 1).position(wanted);
        self.at = later.map_or(self.len() - 1, |later| self.at + 1 + later);
        true
    }

    fn outcome(&self) -> String {
        match &self.trace.failure {
            Some(failure) => crash::told(failure),
            None => "Everything goes well: what this id stands for breaks no promise (any more).".to_owned(),
        }
    }

    /// What the event is about, for those who have not met it.
    fn explained(&self) -> &'static str {
        match self.trace.events.get(self.at) {
            None => "The outcome. A broken promise is one that the FTL's row in openftl list ftls makes.",
            Some(Event::Format { .. }) => "The device is new: the FTL makes an empty disk of it.",
            Some(Event::Call { .. }) => {
                "The host asks for something, and the explorer's model notes what a later read may return. Operations \
                 are counted since power came on; power can be cut at each."
            }
            Some(Event::Cut { .. }) => {
                "Power goes in the middle of a flash operation. RAM is lost: the cache, Gecko's buffer, the \
                 directories. The operation may be done, not begun, or half done: a torn page."
            }
            Some(Event::Mount { .. }) => {
                "Power comes back. The FTL has flash alone to find everything again: spare areas say what each page \
                 holds and in which order pages were programmed. Each step's cost stands beside it."
            }
            Some(Event::Inspection { .. }) => {
                "The explorer reads every page and compares it with its model: a completed write has to be there."
            }
            Some(Event::Scenario { .. }) => "A scenario that is not told step by step.",
        }
    }

    fn list(&self, frame: &mut Frame, area: Rect) {
        let room = usize::from(area.height.saturating_sub(2));
        let first = self.at.saturating_sub(room / 2).min(self.len().saturating_sub(room));
        let lines: Vec<Line> = (first..self.len()).take(room).map(|at| self.line(at)).collect();
        let title = format!(" Events {} to {} of {} ", first + 1, (first + room).min(self.len()), self.len());
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
    }

    fn line(&self, at: usize) -> Line<'static> {
        let (text, colour) = match self.trace.events.get(at) {
            None => (if self.trace.failure.is_some() { "BROKEN" } else { "all is well" }.to_owned(), Color::Yellow),
            Some(event) => {
                let colour = match event {
                    Event::Cut { .. } => Color::Red,
                    Event::Mount { .. } => Color::Cyan,
                    Event::Inspection { .. } => Color::Green,
                    _ => Color::Reset,
                };
                (crash::event(event).lines().next().unwrap_or_default().to_owned(), colour)
            }
        };
        let mark = if at == self.at { '>' } else { ' ' };
        let style = Style::new().fg(colour);
        let style = if at == self.at { style.add_modifier(Modifier::BOLD) } else { style };
        Line::styled(format!("{mark} {text}"), style)
    }
}

impl Scene for Replay {
    fn draw(&self, frame: &mut Frame, pace: &Pace, _: bool) {
        let [top, list, detail, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(6),
            Constraint::Length(if frame.area().height >= 36 { 18 } else { 10 }),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let title = format!("openftl watch --replay {}   {}", self.id, pace.told());
        frame.render_widget(Paragraph::new(title).style(Style::new().add_modifier(Modifier::BOLD)), top);
        self.list(frame, list);
        let told =
            self.trace.events.get(self.at).map_or_else(|| self.outcome(), |event| unindented(&crash::event(event)));
        let text = format!("{}\n\n{told}", self.explained());
        let block = Block::bordered().title(" This event ");
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }).block(block), detail);
        frame.render_widget(Paragraph::new(KEYS).style(Style::new().add_modifier(Modifier::DIM)), keys);
        if self.help {
            super::draw::help(frame, frame.area(), HELP);
        }
    }

    fn step(&mut self, step: StepBy) -> Result<bool> {
        Ok(match step {
            StepBy::Operation | StepBy::Request => self.to(|_| true),
            StepBy::Collection => self.to(|event| matches!(event, Event::Cut { .. })),
            StepBy::Chapter => self.to(|event| matches!(event, Event::Mount { .. })),
        })
    }

    fn press(&mut self, key: Key) -> Result<()> {
        if self.help {
            self.help = false;
            return Ok(());
        }
        match key {
            Key::Step(step) => {
                self.step(step)?;
            }
            Key::Back => self.at = self.at.saturating_sub(1),
            Key::Help => self.help = true,
            Key::Run | Key::Faster | Key::Slower | Key::Quit => {}
        }
        Ok(())
    }
}

/// Lines without the space that all of them begin with.
fn unindented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let common = text.lines().filter(|line| !line.is_empty()).map(indent).min().unwrap_or(0);
    text.lines().map(|line| line.get(common..).unwrap_or_default()).fold(String::new(), |all, line| all + line + "\n")
}
