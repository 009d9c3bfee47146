//! A run with its guide: what keys do to it, and what is drawn.

use super::draw::{self, View};
use super::guide::{self, Chapter};
use super::is_chapter;
use super::screen::{Key, Pace, Scene};
use super::show::{Moved, Show};
use crate::args::StepBy;
use anyhow::Result;
use ratatui::Frame;

/// A run with its guide.
pub struct Tour {
    show: Show,
    title: String,
    chapters: Vec<&'static Chapter>,
    /// The chapter that is read, and the furthest that the run came to.
    at: usize,
    reached: usize,
    message: Option<String>,
    help: bool,
}

impl Tour {
    /// A run before its first step.
    pub fn new(show: Show, title: String) -> Self {
        let chapters = guide::chapters(&show.seen);
        Self { show, title, chapters, at: 0, reached: 0, message: None, help: false }
    }

    /// The next chapter: goes on to what it is about, unless the run has been there.
    fn next(&mut self) -> Result<bool> {
        if self.at + 1 >= self.chapters.len() {
            self.message = Some("This was the last chapter. space runs on, q quits.".to_owned());
            return Ok(false);
        }
        self.at += 1;
        if self.at <= self.reached {
            return Ok(true);
        }
        self.reached = self.at;
        let comes = self.chapters[self.at].comes;
        let moved = self.show.until(|show, moved| comes.is_here(show, moved))?;
        if !comes.is_here(&self.show, moved) {
            self.message = Some("What this chapter is about did not come in this run.".to_owned());
        }
        Ok(true)
    }

    fn go(&mut self, step: StepBy) -> Result<bool> {
        self.message = None;
        if is_chapter(step) {
            return self.next();
        }
        let moved = match step {
            StepBy::Operation | StepBy::Chapter => self.show.operation()?,
            StepBy::Request => self.show.request()?,
            StepBy::Collection => self.show.collection()?,
        };
        if moved == Moved::End {
            self.message = Some("There are no more requests. q quits.".to_owned());
        }
        Ok(moved != Moved::End)
    }
}

impl Scene for Tour {
    fn draw(&self, frame: &mut Frame, pace: &Pace, colours: bool) {
        let view = View {
            show: &self.show,
            title: &self.title,
            chapter: self.chapters[self.at],
            place: (self.at + 1, self.chapters.len()),
            pace: pace.told(),
            message: self.message.as_deref(),
            help: self.help,
            colours,
        };
        draw::draw(frame, &view);
    }

    fn step(&mut self, step: StepBy) -> Result<bool> {
        self.go(step)
    }

    fn press(&mut self, key: Key) -> Result<()> {
        if self.help {
            self.help = false;
            return Ok(());
        }
        match key {
            Key::Step(step) => {
                self.go(step)?;
            }
            Key::Back => {
                self.at = self.at.saturating_sub(1);
                self.message = None;
            }
            Key::Help => self.help = true,
            Key::Run | Key::Faster | Key::Slower | Key::Quit => {}
        }
        Ok(())
    }
}
