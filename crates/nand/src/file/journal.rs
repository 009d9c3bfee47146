//! The numbers of operations, and the anchors: a device has its own, or all devices of a file share
//! one journal.

use super::layout::{self, Anchor, OPS_END};
use super::medium::Medium;
use super::{UNANCHORED_MAX, held};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

/// Numbers operations, from any number of threads.
///
/// An operation that completed before another one began has the smaller number. So operations up to
/// any number are what a power cut of all devices may leave.
#[derive(Debug)]
pub(super) struct Journal<M> {
    /// The last number that was given.
    last: AtomicU64,
    /// Up to which number everything is on disk.
    anchored: AtomicU64,
    anchor: Mutex<Anchor>,
    /// Shared by each operation from its number to its last write.
    under_way: RwLock<()>,
    /// Where the anchors of several devices are.
    medium: Option<Mutex<M>>,
    /// Devices that are not closed yet.
    open: AtomicU32,
    /// Devices, each of which may be about to take a number.
    devices: u32,
}

/// The number of an operation, until its last write is done.
pub(super) struct Numbered<'a> {
    pub(super) op: u64,
    _under_way: RwLockReadGuard<'a, ()>,
}

impl<M: Medium> Journal<M> {
    /// The journal of one device, whose anchors are on the device's own medium.
    pub(super) fn alone(anchor: Anchor) -> Arc<Self> {
        Self::new(anchor, None, 1)
    }

    /// The journal of several devices; `medium` is that of the first of them.
    pub(super) fn joint(anchor: Anchor, medium: M, devices: u16) -> Arc<Self> {
        Self::new(anchor, Some(Mutex::new(medium)), devices.into())
    }

    fn new(anchor: Anchor, medium: Option<Mutex<M>>, devices: u32) -> Arc<Self> {
        debug_assert!(devices > 0 && anchor.op < OPS_END, "{devices} devices from {anchor:?} on");
        Arc::new(Self {
            last: AtomicU64::new(anchor.op),
            anchored: AtomicU64::new(anchor.op),
            anchor: Mutex::new(anchor),
            under_way: RwLock::new(()),
            medium,
            open: AtomicU32::new(devices),
            devices,
        })
    }

    /// A journal of one device that stands as this one does.
    pub(super) fn snapshot(&self) -> Arc<Self> {
        let copy = Self::alone(*held(&self.anchor));
        copy.last.store(self.last(), Ordering::Release);
        copy
    }

    /// Whether several devices share it.
    pub(super) const fn is_joint(&self) -> bool {
        self.medium.is_some()
    }

    /// The last number that was given.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Says which operation is the last, after those behind it were undone.
    pub(super) fn ends_at(&self, op: u64) {
        debug_assert!(op >= self.anchored(), "operation {op} is on disk and undone");
        debug_assert!(op - self.anchored() <= UNANCHORED_MAX);
        self.last.store(op, Ordering::Release);
    }

    /// Up to which number everything is on disk.
    pub(super) fn anchored(&self) -> u64 {
        self.anchored.load(Ordering::Acquire)
    }

    /// Whether an anchor is due before another number is given.
    pub(super) fn is_full(&self) -> bool {
        // Every other device may take a number first.
        self.last() + u64::from(self.devices - 1) >= self.anchored() + UNANCHORED_MAX
    }

    /// Takes the next number. Whoever has it does not write an anchor.
    pub(super) fn number(&self) -> Numbered<'_> {
        let under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner);
        let op = self.last.fetch_add(1, Ordering::AcqRel) + 1;
        debug_assert!(op - self.anchored() <= UNANCHORED_MAX);
        Numbered { op, _under_way: under_way }
    }

    /// The last number, after every operation up to it made its last write.
    pub(super) fn settled(&self) -> u64 {
        let _none = self.under_way.write().unwrap_or_else(PoisonError::into_inner);
        self.last()
    }

    /// Writes an anchor, unless everything up to `wanted` is on disk already. Operations of other
    /// devices go on.
    pub(super) fn advance(&self, own: &mut M, wanted: u64) -> io::Result<()> {
        let mut anchor = held(&self.anchor);
        if anchor.op >= wanted { Ok(()) } else { self.put(own, &mut anchor, false) }
    }

    /// Writes the first anchor after the devices were opened.
    pub(super) fn begin(&self, own: &mut M) -> io::Result<()> {
        self.put(own, &mut held(&self.anchor), false)
    }

    /// Closes a device. The last one writes that no operation follows.
    pub(super) fn close(&self, own: &mut M) -> io::Result<()> {
        let open = self.open.fetch_sub(1, Ordering::AcqRel);
        debug_assert!((1..=self.devices).contains(&open), "{open} of {} devices are open", self.devices);
        match open {
            1 => self.put(own, &mut held(&self.anchor), true),
            _ => Ok(()),
        }
    }

    fn put(&self, own: &mut M, anchor: &mut Anchor, clean: bool) -> io::Result<()> {
        let next = Anchor { generation: anchor.generation + 1, op: self.settled(), clean };
        debug_assert!(next.op >= anchor.op, "{next:?} forgets what {anchor:?} says");
        let at = layout::ANCHORS_AT[(next.generation % 2) as usize];
        let mut shared = self.medium.as_ref().map(held);
        let medium = shared.as_deref_mut().unwrap_or(own);
        medium.sync()?;
        medium.write_at(at, &next.encode())?;
        medium.sync()?;
        *anchor = next;
        self.anchored.store(next.op, Ordering::Release);
        Ok(())
    }
}
