//! The terminal: keys in, frames out.

use crate::args::StepBy;
use anyhow::{Context, Result};
use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Run, or pause.
    Run,
    /// Go one step.
    Step(StepBy),
    /// The chapter or event before.
    Back,
    /// Faster.
    Faster,
    /// Slower.
    Slower,
    /// Help.
    Help,
    /// Quit.
    Quit,
}

impl Key {
    fn of(event: &KeyEvent) -> Option<Self> {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        Some(match event.code {
            KeyCode::Char('c') if control => Self::Quit,
            KeyCode::Char('q') | KeyCode::Esc => Self::Quit,
            KeyCode::Char(' ') => Self::Run,
            KeyCode::Char('o') | KeyCode::Right => Self::Step(StepBy::Operation),
            KeyCode::Char('r') | KeyCode::Down | KeyCode::Enter => Self::Step(StepBy::Request),
            KeyCode::Char('c') => Self::Step(StepBy::Collection),
            KeyCode::Char('n') => Self::Step(StepBy::Chapter),
            KeyCode::Char('p') | KeyCode::Left | KeyCode::Up => Self::Back,
            KeyCode::Char('+' | '=') => Self::Faster,
            KeyCode::Char('-') => Self::Slower,
            KeyCode::Char('?' | 'h') => Self::Help,
            _ => return None,
        })
    }
}

/// Flash operations a second, by speed.
const SPEEDS: [u32; 9] = [1, 2, 4, 8, 20, 60, 200, 1000, 5000];
/// Frames a second while it runs.
const FRAMES: u32 = 20;

/// Whether a run goes on by itself, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    running: bool,
    speed: usize,
}

impl Pace {
    /// It waits for a key.
    pub const PAUSED: Self = Self { running: false, speed: 3 };

    /// In words.
    pub fn told(&self) -> String {
        let speed = SPEEDS[self.speed];
        let plural = if speed == 1 { "" } else { "s" };
        if self.running { format!("running, {speed} operation{plural} a second") } else { "paused".to_owned() }
    }
}

/// What can be stepped and drawn.
pub trait Scene {
    /// Draws a frame. Without `colours` letters alone have to tell pages apart.
    fn draw(&self, frame: &mut Frame, pace: &Pace, colours: bool);

    /// Goes one step; `false` if there is none.
    ///
    /// # Errors
    /// Those of the run.
    fn step(&mut self, step: StepBy) -> Result<bool>;

    /// A key was pressed that is not about pace.
    ///
    /// # Errors
    /// Those of the run.
    fn press(&mut self, key: Key) -> Result<()>;
}

/// A frame as text, with a line of dashes below.
pub fn text(scene: &impl Scene, (columns, lines): (u16, u16)) -> Result<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).context("cannot draw a frame")?;
    terminal.draw(|frame| scene.draw(frame, &Pace::PAUSED, false)).context("cannot draw a frame")?;
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for line in buffer.content().chunks(usize::from(columns)) {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&"-".repeat(usize::from(columns)));
    text.push('\n');
    Ok(text)
}

/// Shows a scene until its user quits.
pub fn run(scene: &mut impl Scene) -> Result<()> {
    let mut terminal =
        ratatui::try_init().context("cannot draw in this terminal; --frames 10 prints frames as text")?;
    let outcome = converse(&mut terminal, scene);
    ratatui::restore();
    outcome
}

fn converse(terminal: &mut ratatui::DefaultTerminal, scene: &mut impl Scene) -> Result<()> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut pace = Pace::PAUSED;
    let mut owed = 0.0;
    loop {
        terminal.draw(|frame| scene.draw(frame, &pace, colours)).context("cannot draw in this terminal")?;
        let begun = Instant::now();
        let wait = if pace.running { Duration::from_secs(1) / FRAMES } else { Duration::from_secs(3600) };
        if event::poll(wait).context("cannot read keys")?
            && let Event::Key(key) = event::read().context("cannot read keys")?
            && key.kind != KeyEventKind::Release
            && let Some(key) = Key::of(&key)
        {
            match key {
                Key::Quit => return Ok(()),
                Key::Run => pace.running = !pace.running,
                Key::Faster => pace.speed = (pace.speed + 1).min(SPEEDS.len() - 1),
                Key::Slower => pace.speed = pace.speed.saturating_sub(1),
                key => {
                    pace.running = false;
                    scene.press(key)?;
                }
            }
        }
        if pace.running {
            owed += begun.elapsed().as_secs_f64() * f64::from(SPEEDS[pace.speed]);
            while owed >= 1.0 && pace.running {
                owed -= 1.0;
                pace.running = scene.step(StepBy::Operation)?;
            }
        } else {
            owed = 0.0;
        }
    }
}
